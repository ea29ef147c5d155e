# SPDX-License-Identifier: Apache-2.0
"""Whether labelled arrays of a user fit the model of a case and its task: known before the first run.

The file is described in `pybench.models.labelled`. Headers of its arrays tell names, types and shapes; numbers are read
after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pybench.case import Case
from pybench.case.factors import DATA
from pybench.catalogue.data_sets import GROUPS, IDS, LABELS, TRAIN
from pybench.catalogue.tasks import REGRESSION, TASKS, Task
from pybench.errors import InputError
from pybench.onnx_file.graph import OnnxModel, Value
from pybench.onnx_file.inputs import Misfit, fed_shapes, has_sequence
from pybench.onnx_file.ranges import IntegerRange
from pybench.onnx_file.stored_arrays import (
    StoredArray,
    count_distinct,
    count_zero_rows,
    extremes,
    not_finite,
    out_of_range,
    read_headers,
)
from pybench.plan.fed_inputs import inputs_of, ranges_of, sizes_of

FACTOR = "data"
_DIMENSIONS_OF_IDS = 2  # batch and sequence
_MOST_CLASSES = 1 << 20  # more than any vocabulary has; the run lists them


@dataclass(frozen=True, slots=True)
class _File:
    """A user's file. `arrays`: what it contains, by name; `samples`: rows that judge or calibrate."""

    path: Path
    arrays: Mapping[str, StoredArray]
    samples: int


def completed(case: Case, model: OnnxModel | None, path: Path) -> Case:
    """A case that judges with what its samples tell: the task, where labels are floats, and the length of sequences.
    What is wrong with the file is told by `labelled_misfit`."""
    try:
        arrays = read_headers(path)
    except InputError:
        return case
    labels = arrays.get(LABELS)
    told = REGRESSION.name if labels is not None and labels.element.startswith("float") else None
    tokens = _tokens(inputs_of(case, model), arrays)
    return case.with_factors(task=case.task or told, seq_len=tokens or case.seq_len)


def labelled_misfit(case: Case, model: OnnxModel | None, path: Path) -> Misfit | None:
    """The first thing that does not fit, or None. `model`: the user's ONNX file; None for other models, of which a
    library's are not known before they run."""
    try:
        arrays = read_headers(path)
        if case.images is not None:
            raise Misfit("`images` are samples, too", "remove one of the two", FACTOR)
        inputs = inputs_of(case, model)
        file = _File(path, arrays, _count_samples(arrays, inputs))
        _check_names(file, inputs)
        _check_inputs(file, case, inputs, ranges_of(case, model))
        _check_groups(file, inputs)
        if case.workload_row.by_task:
            _check_judged(file, case, _judged_output(case, model))
    except Misfit as misfit:
        return misfit
    except InputError as error:
        return Misfit(error.message, error.hint or "store it again with numpy.savez", FACTOR)
    return None


def _tokens(inputs: Sequence[Value], arrays: Mapping[str, StoredArray]) -> int | None:
    """The length of sequences of ids: the model's own or, where it takes any length, the file's. A library's model,
    whose inputs are not known, takes what the file has."""
    inputs = inputs or [
        Value(name, "tensor", stored.element, (None,) * len(stored.shape))
        for name, stored in arrays.items()
        if name not in (LABELS, GROUPS, IDS)
    ]
    for value in inputs:
        shape, stored = value.shape or (), arrays.get(value.name)
        if not has_sequence(inputs, value):
            continue
        if isinstance(shape[1], int):
            return shape[1]
        if stored is not None and len(stored.shape) == _DIMENSIONS_OF_IDS:
            return stored.shape[1]
    return None


def _count_samples(arrays: Mapping[str, StoredArray], inputs: Sequence[Value]) -> int:
    """Rows of `labels`. Raises Misfit where they are too few."""
    if any(value.name == LABELS for value in inputs):
        what = f"the model has an input called {LABELS}, which is what the truth is called"
        raise Misfit(what, "rename the input of the model", FACTOR)
    labels = arrays.get(LABELS)
    if labels is None:
        raise Misfit(f"it has no array {LABELS}", f"store the truth of each sample as `{LABELS}`", FACTOR)
    least = _least_units(arrays)
    if not labels.shape or labels.shape[0] < least:
        what = f"{LABELS} is {_sizes(labels.shape)}, and at least {least} samples are needed"
        raise Misfit(what, "store one row a sample, in the order of the inputs", FACTOR)
    return labels.shape[0]


def _least_units(arrays: Mapping[str, StoredArray]) -> int:
    """How many samples or groups there have to be: two judge, and one calibrates unless it has arrays of its own."""
    return 2 if any(TRAIN + name in arrays for name in arrays) else 3


def _check_names(file: _File, inputs: Sequence[Value]) -> None:
    """Whether each input has an array, and each array an input. What a library's model takes, the run tells."""
    if not inputs:
        return
    own = [value.name for value in inputs]
    trained = [TRAIN + name for name in own] if any(TRAIN + name in file.arrays for name in own) else []
    for name in (*own, *trained):
        if name not in file.arrays:
            hint = f"the model's inputs are {', '.join(own)}"
            raise Misfit(f"it has no array {name}", hint, FACTOR)
    for name in file.arrays:
        if name not in {*own, *trained, LABELS, GROUPS, IDS}:
            hint = f"its inputs are {', '.join(own)}; further arrays are {LABELS}, {GROUPS}, {IDS} and {TRAIN}INPUT"
            raise Misfit(f"the model has no input {name}", hint, FACTOR)


def _check_inputs(file: _File, case: Case, inputs: Sequence[Value], ranges: Mapping[str, IntegerRange]) -> None:
    """Types, shapes and numbers of what the model is fed with."""
    if not inputs:
        return
    tokens = _tokens(inputs, file.arrays) or case.seq_len
    is_engine = case.runtime_row is not None and case.runtime_row.opens == "engine"  # samples tell how exact it is
    if tokens != case.seq_len and (is_engine or case.inputs == DATA):
        what = f"its sequences have {tokens} ids, and the case has seq_len {case.seq_len}"
        raise Misfit(what, f"set seq_len: {tokens}", "seq_len")
    shapes = fed_shapes(inputs, case.batch, tokens, sizes_of(case))
    trained = next((file.arrays[TRAIN + value.name] for value in inputs if TRAIN + value.name in file.arrays), None)
    counts = {"": file.samples} | ({} if trained is None else {TRAIN: (trained.shape or (0,))[0]})
    if 0 in counts.values():
        raise Misfit(f"the arrays {TRAIN}... have no rows", "store samples in them, or leave them out", FACTOR)
    for prefix, count in counts.items():
        for value in inputs:
            if not shapes[value.name] or shapes[value.name][0] != case.batch:
                what = f"the input {value.name} of the model is {_sizes(shapes[value.name])}, without a batch"
                raise Misfit(what, "export the model so that each input has a row for each sample", FACTOR)
            name, expected = prefix + value.name, (count, *shapes[value.name][1:])
            _check_array(file, name, value, expected)
            _raise_first(_unfit_numbers(file, name, value, ranges))


def _check_array(file: _File, name: str, value: Value, expected: tuple[int, ...]) -> None:
    stored = file.arrays[name]
    if value.element == "bfloat16":
        hint = "export the model with a float32 input"
        raise Misfit(f"the input {value.name} is bfloat16, which numpy stores no arrays of", hint, FACTOR)
    if stored.element != value.element:
        what = f"{name} is {stored.element}, the model takes {value.element}"
        raise Misfit(what, f'store it as that: array.astype("{value.element}")', FACTOR)
    if stored.shape != expected:
        what = f"{name} is {_sizes(stored.shape)}, and {_sizes(expected)} is needed"
        raise Misfit(
            what, f"store one row a sample, as many as {LABELS} has, of the shape that the model takes", FACTOR
        )


def _unfit_numbers(file: _File, name: str, value: Value, ranges: Mapping[str, IntegerRange]) -> Iterator[Misfit]:
    stored = file.arrays[name]
    if value.name in ranges:
        yield from out_of_range(file.path, name, stored, ranges[value.name])
    elif stored.element.startswith("float"):
        yield from not_finite(file.path, name, stored, stored.element)


def _check_groups(file: _File, inputs: Sequence[Value]) -> None:
    """Ids and groups: one a sample; ids differ, and groups are several."""
    own = {value.name for value in inputs}
    for name in (IDS, GROUPS):
        stored = file.arrays.get(name)
        if stored is None or name in own:
            continue
        if stored.shape != (file.samples,) or not stored.element.startswith(("int", "uint", "text")):
            what = f"{name} is {stored.element} {_sizes(stored.shape)}, not integers or text of [{file.samples}]"
            raise Misfit(what, "store one a sample, or leave the array out", FACTOR)
        found = count_distinct(file.path, name, stored)
        if name == IDS and found < file.samples:
            what = f"{name} has {found} different values for {file.samples} samples"
            raise Misfit(what, "give each sample an id of its own, or leave the array out", FACTOR)
        least = _least_units(file.arrays)
        if name == GROUPS and found < least:
            what = (
                f"{name} has {found} different values, and at least {least} are needed: intervals are of whole groups"
            )
            raise Misfit(what, f"store samples of more groups, or leave {GROUPS} out", FACTOR)


def _judged_output(case: Case, model: OnnxModel | None) -> Value | None:
    """The output that is judged; None where only the run tells. Raises Misfit where several could be."""
    if model is None:
        if case.output is not None:
            raise Misfit(f"{case.model} is no ONNX file of your own, whose outputs have names", "remove it", "output")
        return None
    named = {value.name: value for value in model.graph.outputs}
    known = f"its outputs are {', '.join(named)}"
    if case.output is not None and case.output not in named:
        raise Misfit(f"the model has no output {case.output}", known, "output")
    if case.output is None and len(named) > 1:
        what = f"the model has {len(named)} outputs, and nothing says which of them `{LABELS}` are of"
        raise Misfit(what, f"set `output`: {known}", "output")
    return next(iter(named.values())) if case.output is None else named[case.output]


def _check_judged(file: _File, case: Case, output: Value | None) -> None:
    """Labels against the task, and against the output that is judged."""
    labels = file.arrays[LABELS]
    if not labels.element.startswith(("int", "uint", "float")):
        hint = "store values, or classes from 0 in the order of the model's outputs"
        raise Misfit(f"{LABELS} are {labels.element}, not integers or floats", hint, FACTOR)
    if case.task is None:
        what = f"{LABELS} are {labels.element}, which tells no task"
        raise Misfit(what, f"set `task`: {', '.join(TASKS)}", "task")
    task = TASKS[case.task]
    of_classes = task.classes is not None
    if of_classes and labels.element.startswith("float"):
        what = f"{LABELS} are {labels.element}, and {task.name} takes integers"
        raise Misfit(what, 'store classes: labels.astype("int64")', FACTOR)
    if not task.takes(len(labels.shape) + of_classes):
        wanted = ", ".join(size for size in task.output if not of_classes or size != task.output[task.classes or 0])
        hint = "store them as that, or set another `task`"
        raise Misfit(f"{LABELS} are {_sizes(labels.shape)}, and {task.name} takes [{wanted}]", hint, FACTOR)
    if output is not None and output.shape is not None:
        _check_output(task, labels, output, output.shape)
    if labels.element.startswith("float"):
        _raise_first(not_finite(file.path, LABELS, labels, labels.element, can_be_mask=False))
    if of_classes:
        _check_classes(file, task, output)


def _check_output(task: Task, labels: StoredArray, output: Value, shape: tuple[int | str | None, ...]) -> None:
    """Whether labels have the dimensions of the output, without those of its classes."""
    stated = _sizes(tuple(size or "?" for size in shape))
    if not output.element.startswith("float") or not task.takes(len(shape)):
        what = f"{task.name} judges floats of [{', '.join(task.output)}]"
        hint = "set `output` or `task` to another, or export the model with such an output"
        raise Misfit(f"{what}, and {output.name} is {output.element} {stated}", hint, "output")
    rest = [size for i, size in enumerate(shape[1:], 1) if task.classes is None or i != task.classes % len(shape)]
    own: list[int | str | None] = list(labels.shape[1:])
    if task.classes is None:  # a value is one value, whether it has dimensions of size 1 or not
        rest, own = [size for size in rest if size != 1], [size for size in own if size != 1]
    differ = any(isinstance(size, int) and size != mine for size, mine in zip(rest, own, strict=False))
    if len(rest) != len(own) or differ:
        what = f"{LABELS} are {_sizes(labels.shape)}, and {output.name}, which they are of, is {stated}"
        raise Misfit(what, f"for {task.name}, store labels of [{', '.join(map(str, ['n', *rest]))}]", FACTOR)


def _check_classes(file: _File, task: Task, output: Value | None) -> None:
    """Whether the output has a score for each label, and each sample a label that is scored."""
    labels = file.arrays[LABELS]
    least, most, _ = extremes(file.path, LABELS, labels)
    if least < 0:
        what = f"{LABELS} are classes from 0, and the smallest is {least}"
        raise Misfit(what, "number them in the order of the model's outputs", FACTOR)
    place = task.classes or 0
    told = None if output is None or output.shape is None else output.shape[place]
    if output is not None and isinstance(told, int) and most >= told:
        what = f"{LABELS} reach {most}, and {output.name} is of {told} {task.output[place]}"
        raise Misfit(what, "export the model with a score for each of them, or correct the labels", FACTOR)
    if most >= _MOST_CLASSES:
        what = f"{LABELS} reach {most}, and at most {_MOST_CLASSES} classes can be told apart"
        raise Misfit(what, "number the classes from 0, without gaps", FACTOR)
    if task.has_background and (empty := count_zero_rows(file.path, LABELS, labels)):
        what = f"{empty} of {file.samples} samples are of class 0 alone, the background, which has no score"
        raise Misfit(what, "leave these samples out", FACTOR)


def _raise_first(misfits: Iterator[Misfit]) -> None:
    found = next(misfits, None)
    if found is not None:
        raise Misfit(found.what, found.hint, FACTOR)


def _sizes(shape: Sequence[int | str]) -> str:
    return f"[{', '.join(map(str, shape))}]"
