# SPDX-License-Identifier: Apache-2.0
"""What a case feeds to its model, as the factor `inputs` says: random numbers, zeros, a user's arrays, or its data.

Everything is made before the model is measured, and the same arrays are fed in each iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pybench import preprocess
from pybench.case import Case
from pybench.case.data import content_of, data_of, data_set_of, preprocessing_of, task_of
from pybench.case.factors import DATA, NORMAL, ZEROS, is_built_in
from pybench.errors import InputError
from pybench.measurement.feed import corpus_of, tokenizer_of
from pybench.measurement.inputs import Arrays, Ranges, fed_ranges, is_floating, random_arrays, taken_by, zero_arrays
from pybench.measurement.labelled import open_labelled
from pybench.measurement.model import OpenedModel
from pybench.measurement.result import RunRequest
from pybench.models.images import Images, Shape, open_images
from pybench.models.samples import Samples, open_samples
from pybench.onnx_file.inputs import image_shape as shape_of_images
from pybench.onnx_file.ranges import IntegerRange
from pybench.runtimes.session import TensorSpec, refused, resolved

RANDOM = "seeded random: standard normal floats, uniform ids"


@dataclass(frozen=True, slots=True)
class Supply:
    """`arrays`: by input; `described`: what they are, for people."""

    arrays: Arrays
    described: str


@dataclass(frozen=True, slots=True)
class TextIds:
    """The first batch of a case's corpus. `ids`: int64 [batch, seq_len], each below `vocabulary`."""

    ids: Any
    vocabulary: int
    described: str


def takes_text_ids(case: Case) -> bool:
    """Whether a case feeds ids of its corpus, which a model has to be opened for."""
    row = case.model_row
    return case.inputs == DATA and row is not None and row.takes_text


def text_ids(request: RunRequest) -> TextIds:
    """One batch of the corpus, tokenized in Python: every path gives the same ids."""
    case = request.case
    tokenizer, corpus = tokenizer_of(request), corpus_of(request)
    with preprocess.open_batches(
        "python", tokenizer, corpus, case.batch, case.seq_len, epochs=0, hash_ids=False
    ) as stream:
        slot = stream.take()
        ids = slot.ids.astype(np.int64)
        stream.give_back(slot.index)
    described = f"the first {case.batch} x {case.seq_len} ids of the corpus {case.corpus}, by {case.tokenizer}"
    return TextIds(ids, preprocess.vocabulary_size(tokenizer), described)


def supply(request: RunRequest, opened: OpenedModel, ids: TextIds | None = None) -> Supply:
    """The arrays of a case. `ids`: of its text. Raises InputError where they do not fit the model."""
    case, specs = request.case, opened.session.inputs
    ranges = fed_ranges(request.files, opened.metadata)
    if ids is not None:
        return Supply({specs[0].name: ids.ids}, ids.described)
    if case.inputs == NORMAL:
        arrays = random_arrays(
            specs, opened.name, case.batch, case.seq_len, request.seed, case.catalogue.models, ranges
        )
        return Supply(arrays, RANDOM + _ranges_text(specs, ranges))
    shapes = resolved(specs, case.batch, case.seq_len, opened.name)
    if case.inputs == ZEROS:
        return Supply(zero_arrays(specs, shapes, ranges), "zeros" + _least_text(ranges))
    if case.inputs == DATA and case.data is not None:
        return _labelled(request, opened, shapes)
    if case.inputs == DATA:
        return _images(request, opened)
    return Supply(_stored(request.files["inputs"], specs, shapes), f"the arrays of {case.inputs}")


def image_source(request: RunRequest) -> Any:
    """A built-in name, or the path that the case names. Raises InputError when there is neither."""
    case = request.case
    name = data_of(case)
    if name is None:
        raise InputError(
            f"{case.workload} of {case.model} needs labelled images", hint="set `images` to a folder of class folders"
        )
    return name if is_built_in("images", name) else request.files["images"]


def judging_samples(request: RunRequest, opened: OpenedModel) -> Samples:
    """What the outputs of a case are scored on: its arrays or images, or what its model is judged on. Raises InputError
    when there is nothing, or the model does not take it."""
    case = request.case
    if case.data is not None:
        path, specs = request.files["data"], opened.session.inputs
        return open_labelled(path, content_of(case), "validation", specs, task_of(case))
    row, data_set = opened.row, data_set_of(case)
    if row is not None and data_set is not None and data_set.open is not None:
        return open_samples(data_set.name, "validation", row)
    return _judging_images(request, opened).as_samples()


def _judging_images(request: RunRequest, opened: OpenedModel) -> Images:
    return open_images(image_source(request), "validation", image_shape(opened), preprocessing_of(request.case))


def image_shape(opened: OpenedModel) -> Shape:
    """(channels, height, width) of the model's one input. Raises InputError for a model that takes no images."""
    if opened.row is not None and opened.row.takes_images:
        channels, height, width = opened.row.shape
        return channels, height, width
    return shape_of_images_for(opened.name, opened.session.inputs)


def shape_of_images_for(model: str, specs: Sequence[TensorSpec]) -> Shape:
    """The same of a model without a row, by its inputs."""
    with refused(model):
        return shape_of_images([spec.value for spec in specs])


def _images(request: RunRequest, opened: OpenedModel) -> Supply:
    """Images that judge, evenly spaced over their classes; over and over where there are fewer than the batch."""
    case, spec = request.case, opened.session.inputs[0]
    images = _judging_images(request, opened).limited(case.batch)
    pixels = images.load_all()[np.arange(case.batch) % len(images)]
    described = f"{len(images)} validation images of {data_of(case)}"
    return Supply({spec.name: pixels.astype(spec.dtype)}, described)


def _labelled(request: RunRequest, opened: OpenedModel, shapes: Mapping[str, tuple[int, ...]]) -> Supply:
    """Samples that judge, evenly spaced over their order; over and over where there are fewer than the batch. Raises
    InputError where their sequences have another length than the case's."""
    case, specs = request.case, opened.session.inputs
    samples = judging_samples(request, opened).limited(case.batch)
    fed = samples.fed(specs[0].name, np.arange(case.batch) % len(samples))
    for spec in specs:
        own, wanted = list(fed[spec.name].shape), list(shapes[spec.name])
        if own != wanted:
            raise InputError(
                f"{spec.name} of {case.data} is {own}, this case feeds {wanted}",
                hint="set seq_len to the length of its sequences",
            )
    arrays = {spec.name: fed[spec.name].astype(spec.dtype) for spec in specs}
    return Supply(arrays, f"{len(samples)} samples of {case.data}")


def _stored(path: Path, specs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """A user's arrays, which the plan has checked. A precision may have changed the floating type of an input."""
    arrays: Arrays = {}
    with np.load(path, allow_pickle=False) as archive:
        for spec in specs:
            if spec.name not in archive.files or archive[spec.name].shape != shapes[spec.name]:
                raise InputError(
                    f"{path} has no array {spec.name} of {list(shapes[spec.name])}",
                    hint="write the file for these inputs, and run the plan again with another --out",
                )
            array = archive[spec.name]
            is_raw = spec.dtype.name == "bfloat16" and array.dtype.itemsize == spec.dtype.itemsize
            arrays[spec.name] = array.view(spec.dtype) if is_raw else array.astype(spec.dtype)
    return arrays


def _ranges_text(specs: Sequence[TensorSpec], ranges: Ranges) -> str:
    """What integer inputs of a user's file are drawn from; empty where nothing is known."""
    taken = {spec.name: taken_by(spec, ranges) for spec in specs if not is_floating(spec) and spec.name in ranges}
    return "".join(f"; {name}: {_range_text(one)}, by {one.node}" for name, one in taken.items())


def _range_text(taken: IntegerRange) -> str:
    most = taken.below - 1
    return f"all {most}" if taken.least == most else f"{taken.least} to {most}"


def _least_text(ranges: Ranges) -> str:
    above = {name: one for name, one in ranges.items() if one.least > 0}
    return "".join(f"; {name}: {one.least}, as {one.node} takes no zero" for name, one in above.items())
