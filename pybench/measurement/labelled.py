# SPDX-License-Identifier: Apache-2.0
"""Labelled arrays of a user, as the inputs of an opened model take them; and which of its outputs they judge."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pybench.catalogue.tasks import Task
from pybench.errors import InputError
from pybench.measurement.result import RunRequest
from pybench.models.labelled import open_arrays
from pybench.models.samples import Samples, Split
from pybench.onnx_file.graph import read_graph
from pybench.runtimes.session import TensorSpec


def open_labelled(
    path: Path, sha256: str | None, split: Split, specs: Sequence[TensorSpec], task: Task | None = None
) -> Samples:
    """The samples of one split. `sha256`: of the file, as the case was made of it; `specs`: the model's inputs; `task`:
    None where nothing is judged. Raises InputError where the file is another, or its arrays do not fit the inputs."""
    if not path.is_file() or file_sha256(path) != sha256:
        what = "has changed" if path.is_file() else "is gone"
        raise InputError(
            f"{path} {what} since the plan was read",
            hint="run the plan again, by its file: samples that have changed are another case",
        )
    samples = open_arrays(path, split, [spec.name for spec in specs], task)
    first = samples.fed(specs[0].name, np.arange(1))
    for spec in specs:
        own, taken = first[spec.name].shape[1:], spec.shape[1:]
        if len(own) != len(taken) or any(size not in (None, mine) for size, mine in zip(taken, own, strict=True)):
            wanted = ", ".join("n" if size is None else str(size) for size in (None, *taken))
            raise InputError(
                f"{spec.name} of {path} is of [n, {', '.join(map(str, own))}], the model takes [{wanted}]",
                hint="store one row a sample, of the shape that the model takes",
            )
    return samples


def file_sha256(path: Path) -> str:
    """64 hexadecimal digits, of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def judged_output(request: RunRequest, own: Sequence[str]) -> int:
    """The place of the output that is judged, among those that a session returns. `own`: its `output_names`. Raises
    InputError for a name that the model does not have.

    The first output of the user's file is judged where the case names none. Other files that are made of it have
    outputs in its order, but an engine has an order of its own.
    """
    name, path = request.case.output, request.files.get("model")
    if path is None or (name is None and len(own) < 2):
        return 0
    names = [value.name for value in read_graph(path).outputs]
    name, returned = name or names[0], own or names
    if name not in returned:
        raise InputError(f"the model has no output {name}", hint=f"its outputs are {', '.join(returned)}")
    return returned.index(name)
