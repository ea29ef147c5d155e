# SPDX-License-Identifier: Apache-2.0
"""How many multiply-adds a sample of a user's ONNX file takes: for `estimate`, before anything has run.

A worker counts the convolutions and matrix products of the file, as `pybench inspect` shows them. Nothing is said of a
file in which something else multiplies, or may, nor of one without such products: its time is elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pybench.case import Case
from pybench.errors import PybenchError
from pybench.machine.opening import count_flops
from pybench.onnx_file.facts import not_counted
from pybench.onnx_file.faults import read_sound
from pybench.onnx_file.inputs import Misfit, fed_shapes, fixed_batch, parse_sizes

FLOPS_OF_MULTIPLY_ADD = 2


def count_multiply_adds(cases: Sequence[Case], files: Mapping[str, str]) -> dict[str, float]:
    """Case's id -> multiply-adds of a sample, of the cases whose model is an ONNX file that can be counted.

    `files`: value of a factor -> absolute path. Each file is counted once for all precisions and batches.
    """
    counted: dict[tuple[str, str | None, int], float | None] = {}
    found: dict[str, float] = {}
    for case in cases:
        if not case.names_onnx:
            continue
        question = (str(case.model), case.shapes, case.seq_len)
        if question not in counted:
            counted[question] = _of_a_sample(Path(files[str(case.model)]), case)
        number = counted[question]
        if number is not None:
            found[case.id] = number
    return found


def _of_a_sample(path: Path, case: Case) -> float | None:
    try:
        model = read_sound(path)
        if not_counted(model):
            return None
        batch = fixed_batch(model.graph.fed) or 1
        fed = fed_shapes(model.graph.fed, batch, case.seq_len, parse_sizes(case.shapes) if case.shapes else {})
        return count_flops(path, fed) / (FLOPS_OF_MULTIPLY_ADD * batch) or None
    except (PybenchError, Misfit):  # the runs will tell
        return None
