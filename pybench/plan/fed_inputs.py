# SPDX-License-Identifier: Apache-2.0
"""Whether what `inputs` names is there, and fits the model of a case: known before the first run."""

from __future__ import annotations

from pathlib import Path

from pybench.case import Case
from pybench.case.data import data_of
from pybench.case.factors import DATA
from pybench.catalogue.models import Model
from pybench.onnx_file.batch import freed
from pybench.onnx_file.graph import OnnxModel, Value
from pybench.onnx_file.inputs import Misfit, fed_shapes, image_shape, parse_sizes, with_sizes
from pybench.onnx_file.ranges import IntegerRange, integer_ranges
from pybench.onnx_file.stored_arrays import FACTOR, misfit_of_arrays


def misfit_of_inputs(case: Case, model: OnnxModel | None, arrays: Path | None) -> Misfit | None:
    """The first thing that does not fit, or None. `model`: the user's ONNX file, None for a built-in model; `arrays`:
    the file that `inputs` names, None where it names none.

    What does not fit whatever is fed is told elsewhere (`own_models`).
    """
    try:
        if case.inputs == DATA:
            return _misfit_of_data(case, model)
        if arrays is None:
            return None
        inputs = inputs_of(case, model)
        shapes = fed_shapes(inputs, case.batch, case.seq_len, sizes_of(case))
        return misfit_of_arrays(arrays, inputs, shapes, ranges_of(case, model))
    except Misfit as misfit:
        return misfit


def input_of(row: Model) -> Value:
    """The one input of a built-in model: ids, or samples of floats. Batch and sequence are free."""
    shape: tuple[int | None, ...] = (None, None) if row.takes_ids else (None, *row.shape)
    return Value(row.input, "tensor", "int64" if row.takes_ids else "float32", shape)


def _misfit_of_data(case: Case, model: OnnxModel | None) -> Misfit | None:
    row = case.model_row
    if case.data is not None or (row is not None and row.takes_text):
        return None  # labelled arrays are looked at as such (`labelled`)
    hint = "write `inputs: FILE.npz`, with an array for each input"
    if row is not None and not row.takes_images:
        return Misfit(f"there is no data for {row.name}", hint, FACTOR)
    if data_of(case) is None:
        what = f"{case.model} comes with no images, and `images` names none"
        return Misfit(what, "set `images`: digits, synthetic-100, or a path", FACTOR)
    if model is None:
        return None
    try:
        image_shape(with_sizes(model.graph.fed, sizes_of(case)))
    except Misfit as misfit:
        return Misfit(misfit.what, hint, FACTOR)
    return None


def inputs_of(case: Case, model: OnnxModel | None) -> tuple[Value, ...]:
    """The inputs of a user's file, or the one of a built-in model."""
    if model is not None:
        return model.graph.fed if case.fixed_batch is None else tuple(freed(model.graph.fed, case.fixed_batch))
    return () if case.model_row is None else (input_of(case.model_row),)


def ranges_of(case: Case, model: OnnxModel | None) -> dict[str, IntegerRange]:
    """The integers that inputs accept, as far as they are known."""
    if model is not None:
        return integer_ranges(model.graph)
    row = case.model_row
    if row is None or row.vocabulary is None:
        return {}
    return {row.input: IntegerRange(0, row.vocabulary, f"the vocabulary of {row.name}")}


def sizes_of(case: Case) -> dict[str, int]:
    """The sizes that the case states of free dimensions."""
    return parse_sizes(case.shapes) if case.shapes else {}
