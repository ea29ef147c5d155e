# SPDX-License-Identifier: Apache-2.0
"""Whether an ONNX file of the user's takes what a case feeds, in the precision that it asks for.

Only what the file itself tells: whether a runtime has an operator, or takes a version, is for the runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.case import Case
from pybench.case.data import data_set_of, task_of
from pybench.case.factors import is_idle
from pybench.case.quantising import stores_weights
from pybench.catalogue.precisions import floating_type, is_single, quantised_type
from pybench.onnx_file.batch import freed, rewriting
from pybench.onnx_file.faults import called
from pybench.onnx_file.graph import OnnxGraph, OnnxModel, Value, first_with_body
from pybench.onnx_file.inputs import (
    Misfit,
    batch_to_rewrite,
    check_fixed_batch,
    check_sizes,
    fed_shapes,
    image_shape,
    parse_sizes,
    with_sizes,
)
from pybench.onnx_file.node_names import matched, rewritten_names
from pybench.onnx_file.products import MATRIX_PRODUCTS, NOT_FP32, floating_types, is_quantised, lower_type


def misfit_of(model: OnnxModel, case: Case, *, of_images: bool) -> Misfit | None:
    """The first thing that does not fit, or None. `of_images`: whether the workload takes models of images only.

    Runtimes of torch take no ONNX file, which the machine tells.
    """
    if case.runtime_row is None or case.runtime_row.opens == "module":
        return None
    inputs: Sequence[Value] = model.graph.fed
    try:
        if case.fixed_batch is not None and case.fixed_batch != case.batch:
            _check_rewriting(model.graph, case.fixed_batch, case.batch)
            inputs = freed(inputs, case.fixed_batch)
        sizes = parse_sizes(case.shapes) if case.shapes else {}
        check_sizes(inputs, sizes)
        fed_shapes(inputs, case.batch, case.seq_len, sizes)
        _check_outputs(model.graph.outputs)
        if of_images:
            image_shape(with_sizes(inputs, sizes))
            _check_scores(model.graph.outputs[0], case)
        _check_precision(model, case.precision)
        _check_single(model, case)
        _check_kept(model, case)
        if stores_weights(case):
            _check_products(model)
    except Misfit as misfit:
        return misfit
    return None


def _check_rewriting(graph: OnnxGraph, fixed: int, batch: int) -> None:
    """What is known before the file is rewritten for another batch: the rest shows when both files are run."""
    check_fixed_batch(graph.fed)
    own = batch_to_rewrite(graph.fed, batch)
    if own != fixed:
        what = f"its batch is fixed at {own}" if own is not None else f"it takes batch {batch} as it is"
        raise Misfit(f"{what}, and `fixed_batch` is {fixed}", "leave `fixed_batch` out", "fixed_batch")
    beside = next((value for value in graph.fed if not value.leads and len(value.shape or ()) > 1), None)
    if beside is not None:  # nobody knows whether its leading dimension would follow
        leading = (beside.shape or (0,))[0]
        what = f"its batch is fixed at {fixed}, and cannot be {batch}: {beside.name} leads with {leading}"
        raise Misfit(what, f"set batch: {fixed}, or export the model with its batch free", "batch")
    obstacle = rewriting(graph, fixed).obstacle
    if obstacle is not None:
        what = f"its batch is fixed at {fixed}, and cannot be {batch}: {obstacle.node} {obstacle.why}"
        raise Misfit(what, f"set batch: {fixed}, or export the model with its batch free", "batch")


def _check_outputs(outputs: Sequence[Value]) -> None:
    """What an iteration writes lies in memory that is allocated before: tensors of numbers."""
    for value in outputs:
        if value.form not in ("", "tensor"):
            hint = "export the model with tensors as its outputs (skl2onnx: options={'zipmap': False})"
            raise Misfit(f"the type of the output {value.name} is {value.form}, not tensor", hint)
        if value.element == "string":
            raise Misfit(f"the output {value.name} is string", "export the model with numbers as its outputs")


def _check_scores(output: Value, case: Case) -> None:
    """Whether the output that is judged has the dimensions that the task of the case's images needs, and its classes.
    A file that does not state them may have them."""
    task, row, shape = task_of(case), data_set_of(case), output.shape
    if task is None or shape is None:
        return
    if len(shape) != len(task.output):
        stated = ", ".join(str(size or "?") for size in shape)
        what = f"{task.name} judges an output of [{', '.join(task.output)}], and {output.name} is [{stated}]"
        raise Misfit(what, "export the model with scores of that shape as its first output, or use workload: infer")
    if row is None or row.classes is None:
        return
    told = shape[task.output.index("classes")]
    if isinstance(told, int) and told < row.classes:
        what = f"it tells {told} classes apart, and {row.name} has {row.classes}"
        raise Misfit(what, f"judge a model on {row.unit}s of the classes that it was trained on", "images")


def _check_precision(model: OnnxModel, precision: str) -> None:
    """Lower precisions are made of FP32, but for what is in the type already; and of graphs that have none inside."""
    floating, quantised = floating_type(precision), quantised_type(precision)
    if (floating == "fp32" and quantised is None) or (quantised is not None and is_quantised(model.graph)):
        return
    found = floating_types(model.graph) - {"fp32", floating if quantised is None else "fp32"}
    if found:
        raise Misfit(f"it {NOT_FP32.format(' and '.join(sorted(found)))}", "export the model in FP32", "precision")
    if outer := first_with_body(model):
        what = f"{called(outer)} has graphs inside, and no lower precision is made of such a file"
        raise Misfit(what, "run it in fp32, or export the model without If, Loop and Scan", "precision")


def _check_single(model: OnnxModel, case: Case) -> None:
    """A file all in FP16 or BF16 is not FP32, where the runtime is sure to multiply in the file's type. One without
    kernels of that type casts to FP32, and the run's audit judges the weights."""
    row, own = case.runtime_row, lower_type(model.graph)
    is_whole = not model.functions and first_with_body(model) is None  # products inside are not seen
    if row is None or own is None or not is_whole or not is_single(case.precision):
        return
    may_have_gpu = (True, False) if case.device == "auto" else (case.device != "cpu",)
    backends = [row.backend(case.provider, has_gpu) for has_gpu in may_have_gpu]
    executed = [row.precisions if backend is None else backend.precisions for backend in backends]
    if all(precisions.get(own, "on_some_cpus") != "on_some_cpus" for precisions in executed):
        what = f"all its weights are {own}, and it multiplies in {own}, not in {case.precision}"
        raise Misfit(what, f"use precision: {own}, or export the model in FP32", "precision")


def _check_kept(model: OnnxModel, case: Case) -> None:
    """Whether nodes that stay in FP32 are in the file. What is quantised already is taken as it is, and keeps none."""
    is_taken = quantised_type(case.precision) is not None and is_quantised(model.graph)
    if case.keep_error_max is not None and is_taken:
        what = "it is quantised already, and nodes to keep in FP32 are searched while a file in FP32 is quantised"
        raise Misfit(what, "name the model's file in FP32", "keep_error_max")
    if case.keep_fp32 is None or is_idle("keep_fp32", case) or is_taken:
        return
    names = rewritten_names(model, batch_is_freed=case.fixed_batch is not None)
    if names is not None:
        matched(case.keep_fp32, names)


def _check_products(model: OnnxModel) -> None:
    """Weights alone are stored smaller where a matrix product reads them."""
    if model.functions or any(node.op in MATRIX_PRODUCTS for node in model.graph.nodes):
        return
    what = "it has no matrix product, and weight-only stores the weights of nothing else"
    raise Misfit(what, "use another quantiser", "quantiser")
