# SPDX-License-Identifier: Apache-2.0
"""Inputs that are made up for a model, by what it says that it takes: seeded random ones, or zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.catalogue.code import named_code
from pybench.catalogue.models import MODELS, Model
from pybench.models.zoo.feeds import KEY, ModelInputs, feeds_from_text
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.ranges import UNKNOWN, IntegerRange, integer_ranges
from pybench.runtimes.session import TensorSpec, resolved

Arrays = dict[str, npt.NDArray[Any]]
Ranges = Mapping[str, IntegerRange]  # by input; others take what `UNKNOWN` says

_NONE: Ranges = {}


def random_arrays(
    specs: Sequence[TensorSpec],
    model: str,
    batch: int,
    tokens: int,
    seed: int,
    models: Mapping[str, Model] = MODELS,
    ranges: Ranges = _NONE,
) -> Arrays:
    """Standard normal floats and uniform integers, an array for each input; equal seeds give equal arrays.

    `model`: a name of one of `models`, whose ids are known, or how messages call a user's file, of which `ranges` are
    known. Raises InputError where a shape contradicts `batch` or `tokens`.
    """
    known = models.get(model)
    if known is not None and known.drawn_by is not None:
        drawn = named_code(known.drawn_by)(batch, seed)
        return {spec.name: drawn.astype(spec.dtype) for spec in specs}
    if known is not None and known.vocabulary is not None:
        ranges = dict.fromkeys((spec.name for spec in specs), IntegerRange(0, known.vocabulary))
    return arrays_of(specs, resolved(specs, batch, tokens, model), seed, ranges)


def arrays_of(
    specs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]], seed: int, ranges: Ranges = _NONE
) -> Arrays:
    """The same for inputs whose sizes are known."""
    generator = np.random.default_rng(seed)
    arrays: Arrays = {}
    for spec in specs:
        shape = shapes[spec.name]
        if is_floating(spec):
            arrays[spec.name] = generator.standard_normal(shape, dtype=np.float32).astype(spec.dtype)
        else:
            taken = taken_by(spec, ranges)
            arrays[spec.name] = generator.integers(taken.least, taken.below, shape).astype(spec.dtype)
    return arrays


def zero_arrays(specs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]], ranges: Ranges = _NONE) -> Arrays:
    """Zeros; where the graph accepts no zero, the least number that it does."""
    return {
        spec.name: np.full(shapes[spec.name], 0 if is_floating(spec) else taken_by(spec, ranges).least, spec.dtype)
        for spec in specs
    }


def is_floating(spec: TensorSpec) -> bool:
    """Whether an input takes floating-point numbers. bfloat16 is no kind of numpy's own."""
    return spec.dtype.kind == "f" or spec.dtype.name == "bfloat16"


def taken_by(spec: TensorSpec, ranges: Ranges) -> IntegerRange:
    """The integers that an input takes; a type may have fewer than the graph."""
    found = ranges.get(spec.name, UNKNOWN)
    most = 1 if spec.dtype.kind == "b" else int(np.iinfo(spec.dtype).max)
    return replace(found, below=min(found.below, most + 1))


def fed_ranges(files: Mapping[str, Path], metadata: Mapping[str, str]) -> dict[str, IntegerRange]:
    """What integer inputs of a model may be fed with. `metadata`: of what was opened, which says it of a library's
    model; else the user's own ONNX file says it, where there is one."""
    if KEY not in metadata:
        return file_ranges(files.get("model"))
    return library_ranges(feeds_from_text(metadata[KEY]))


def library_ranges(feeds: ModelInputs) -> dict[str, IntegerRange]:
    """What integer inputs of a library's model may be fed with."""
    return {
        feed.name: IntegerRange(feed.least, feed.below, feed.about) for feed in feeds.inputs if feed.below is not None
    }


def file_ranges(path: Path | None) -> dict[str, IntegerRange]:
    """What integer inputs of an ONNX file may be fed with; nothing for a built-in model, which has none."""
    return {} if path is None else integer_ranges(read_graph(path))
