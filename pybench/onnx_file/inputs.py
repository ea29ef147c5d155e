# SPDX-License-Identifier: Apache-2.0
"""Which sizes an input is fed with: its leading dimension is the batch, the second of token ids is the sequence.

The one rule, for a plan that judges a file before it runs and for a session that feeds what it opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pybench.catalogue.models import SHORTEST_SEQUENCE
from pybench.onnx_file.graph import Value

# Types of tensors that runtimes are fed with. ONNX has more. A runtime may refuse bfloat16, which numpy does not have.
FED = frozenset(
    {
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "bool",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    }
)
_DIMENSIONS_OF_IDS = 2  # dimensions of token ids: batch and sequence


class Misfit(Exception):
    """An input that a case cannot feed. `factor`: of the case, if it is the one to change."""

    def __init__(self, what: str, hint: str, factor: str = "model") -> None:
        super().__init__(what)
        self.what, self.hint, self.factor = what, hint, factor


@dataclass(frozen=True, slots=True)
class FreeDimension:
    """A dimension that no factor sets. `name`: as the file states it; None: it has only a position."""

    input: str
    position: int
    name: str | None

    @property
    def key(self) -> str:
        """`INPUT.DIM`, as sizes name it."""
        return f"{self.input}.{self.name or self.position}"


class FreeDimensions(Misfit):
    """All dimensions of a model's inputs that nothing sets."""

    def __init__(self, free: Sequence[FreeDimension]) -> None:
        self.free = tuple(free)
        by_input: dict[str, list[FreeDimension]] = {}
        for one in free:
            by_input.setdefault(one.input, []).append(one)
        what = "; ".join(_free_text(name, same) for name, same in by_input.items())
        sizes: dict[str, list[str]] = {}
        for one in {one.name or one.key: one for one in reversed(free)}.values():  # a name once, where it is first
            sizes.setdefault(one.input, []).insert(0, f"{one.name or _quoted(one.position)}: 224")
        stated = ", ".join(f"{name}: {{{', '.join(sizes[name])}}}" for name in by_input if name in sizes)
        super().__init__(what, f"set its size, as in `shapes: {{{stated}}}`; the leading dimension is the batch")


def _free_text(name: str, free: Sequence[FreeDimension]) -> str:
    places = " and ".join(f"{one.position} ({one.name})" if one.name else str(one.position) for one in free)
    if len(free) == 1:
        return f"dimension {places} of the input {name} is free, and no factor sets it"
    return f"dimensions {places} of the input {name} are free, and no factor sets them"


def fed_shapes(
    inputs: Sequence[Value],
    batch: int,
    tokens: int,
    sizes: Mapping[str, int] | None = None,
    *,
    is_opened: bool = False,
) -> dict[str, tuple[int, ...]]:
    """Input -> its sizes. `sizes`: `INPUT.DIM` -> size of a free dimension, by its name or its position; `is_opened`:
    the inputs are a session's, and its file was judged before. In an engine all sizes are fixed, so one is the batch.

    A name means the same size in every input, as it does in the file. The free leading dimensions are the batch; where
    none is free, the batch is `fixed_batch`. The second dimension of ids is the sequence (`has_sequence`).

    Raises Misfit for what cannot be fed, or contradicts a factor or `sizes`.
    """
    if not inputs:
        raise Misfit(
            "it has no input: it computes constants", "export the model so that it reads its data from an input"
        )
    for value in inputs:
        _check(value)
    if not any(value.shape for value in inputs):
        raise Misfit("its inputs are scalars, so it has no batch dimension", "export the model with a batch dimension")
    fixed = batch if is_opened and batch in _fixed_leading(inputs).values() else fixed_batch(inputs)
    if fixed is None:
        check_fixed_batch(inputs)
    counts = {"batch": batch, "seq_len": tokens}
    shapes: dict[str, tuple[int, ...]] = {}
    free: list[FreeDimension] = []
    for before, value in zip(inputs, with_sizes(inputs, sizes or {}), strict=True):
        factors, stated = _factors(inputs, before, fixed), _set_positions(before, value)
        given = {place: (factor, counts[factor]) for place, factor in factors.items() if place not in stated}
        try:
            shapes[value.name] = _fed_shape(value.name, value.shape or (), given)
        except FreeDimensions as error:
            free += error.free
    if free:
        raise FreeDimensions(free)
    return shapes


def factor_of(inputs: Sequence[Value], key: str) -> str | None:
    """The factor that sets a free dimension, `batch` or `seq_len`; None: `sizes` do. Raises Misfit as `with_sizes`."""
    value, position = _dimension(inputs, key)
    return None if isinstance((value.shape or ())[position], int) else _factors(inputs, value).get(position)


def _factors(inputs: Sequence[Value], value: Value, fixed: int | None = None) -> dict[int, str]:
    """Position -> the factor of its size. A free dimension that is called like a leading dimension is the batch, too,
    and one that is called like the second of ids is the sequence. `fixed`: the batch that the file has fixed."""
    named = {each.shape[1]: "seq_len" for each in inputs if each.shape and _is_ids(each)}
    named |= {each.shape[0]: "batch" for each in inputs if each.shape}
    shape = value.shape or ()
    found = {place: named[stated] for place, stated in enumerate(shape) if isinstance(stated, str) and stated in named}
    if _is_led(value) or (shape and shape[0] == fixed):
        found[0] = "batch"
    return found | ({1: "seq_len"} if has_sequence(inputs, value) else {})


def takes_ids(inputs: Sequence[Value]) -> bool:
    """Whether an input has a dimension that `seq_len` sets."""
    return any(has_sequence(inputs, value) for value in inputs)


def has_sequence(inputs: Sequence[Value], value: Value) -> bool:
    """Whether `seq_len` is the second dimension of an input: of ids where it is free, or fixed at one length for all
    ids (`fixed_seq_len`). Another fixed one is no sequence, and stays as it is."""
    return _is_ids(value) and (not isinstance((value.shape or ())[1], int) or fixed_seq_len(inputs) is not None)


def fixed_seq_len(inputs: Sequence[Value]) -> int | None:
    """The one length of sequences that a file takes; None where ids leave it free, differ in it, are single numbers, or
    there are none."""
    lengths = {(value.shape or ())[1] for value in inputs if _is_ids(value)}
    length = lengths.pop() if len(lengths) == 1 else None
    return length if isinstance(length, int) and length >= SHORTEST_SEQUENCE else None


def _is_ids(value: Value) -> bool:
    return value.element.startswith("int") and len(value.shape or ()) == _DIMENSIONS_OF_IDS


def check_sizes(inputs: Sequence[Value], sizes: Mapping[str, int]) -> None:
    """Raises Misfit where a size is what a factor of its own sets: the batch, or the sequence of ids."""
    for key, size in sizes.items():
        factor = factor_of(inputs, key)
        if factor is not None:
            raise Misfit(f"{key} is what `{factor}` sets", f"leave it out, and write {factor}: {size}", "shapes")


def _is_led(value: Value) -> bool:
    """Whether the leading dimension is free."""
    return bool(value.shape) and not isinstance((value.shape or (0,))[0], int)


def _fed_shape(name: str, shape: Sequence[int | str | None], given: Mapping[int, tuple[str, int]]) -> tuple[int, ...]:
    """Sizes of one input; a scalar has none. `given`: position -> the factor that sets its size, and that size.

    Raises Misfit where a fixed size contradicts, or a further dimension is free.
    """
    free = [
        FreeDimension(name, position, stated if isinstance(stated, str) else None)
        for position, stated in enumerate(shape)
        if position not in given and not isinstance(stated, int)
    ]
    if free:
        raise FreeDimensions(free)
    for position, (factor, wanted) in given.items():
        stated = shape[position]
        if isinstance(stated, int) and stated != wanted:
            raise Misfit(
                f"the input {name} has {stated} as its {factor}, the case {wanted}",
                f"set {factor}: {stated}, or export the model with that dimension free",
                factor,
            )
    return tuple(given[position][1] if position in given else int(size or 0) for position, size in enumerate(shape))


def _quoted(position: int) -> str:
    """A position as YAML writes it where a key has to be text."""
    return f'"{position}"'


def with_sizes(inputs: Sequence[Value], sizes: Mapping[str, int]) -> list[Value]:
    """The inputs with the stated sizes put in. Raises Misfit for a dimension that is not there, or is not free."""
    by_place: dict[tuple[str, int], int] = {}
    by_name: dict[str, int] = {}
    for key, size in sizes.items():
        value, position = _dimension(inputs, key)
        stated = (value.shape or ())[position]
        if isinstance(stated, int) and stated != size:
            raise Misfit(f"{key} is {stated} in the file, and {size} is asked for", "leave it out", "shapes")
        if isinstance(stated, str) and by_name.setdefault(stated, size) != size:
            what = f"the dimension {stated} is {by_name[stated]} and {size} at once"
            raise Misfit(what, "a name is one size in the whole file: state it once", "shapes")
        by_place[value.name, position] = size
    return [
        replace(
            value,
            shape=tuple(
                by_place.get((value.name, position), by_name.get(stated, stated) if isinstance(stated, str) else stated)
                for position, stated in enumerate(value.shape or ())
            ),
        )
        for value in inputs
    ]


def _dimension(inputs: Sequence[Value], key: str) -> tuple[Value, int]:
    """The input and the position that `INPUT.DIM` names. The name of an input may contain dots."""
    name, _, wanted = key.rpartition(".")
    value = next((value for value in inputs if value.name == name), None)
    if value is None:
        known = ", ".join(value.name for value in inputs)
        raise Misfit(f"{key} names no input of the model", f"its inputs are {known}", "shapes")
    shape = value.shape or ()
    for position, stated in enumerate(shape):
        if wanted in (stated, str(position)):
            return value, position
    known = ", ".join(str(size or position) for position, size in enumerate(shape)) or "no dimension"
    raise Misfit(f"{key}: the input {name} has {known}", "write a dimension's name or its position", "shapes")


def _set_positions(before: Value, after: Value) -> frozenset[int]:
    """Positions that were free and are not any more."""
    pairs = zip(before.shape or (), after.shape or (), strict=True)
    return frozenset(position for position, (old, new) in enumerate(pairs) if old != new)


def fixed_batch(inputs: Sequence[Value]) -> int | None:
    """The one batch that a file takes: the leading size of the inputs that lead, beside which a 1 is broadcast. None
    where a leading dimension is free, there are none, or they contradict each other (`check_fixed_batch`)."""
    sizes = set(_fixed_leading(inputs).values())
    return max(sizes) if sizes and len(sizes - {1}) <= 1 else None


def check_fixed_batch(inputs: Sequence[Value]) -> None:
    """Raises Misfit where leading dimensions are fixed at several sizes above 1: none of them is the batch."""
    leading = _fixed_leading(inputs)
    if leading and fixed_batch(inputs) is None:
        found = ", ".join(f"{name} {size}" for name, size in leading.items())
        what = f"the leading dimensions of its inputs are fixed at different sizes ({found}), so none is the batch"
        raise Misfit(what, "export the model with its batch free")


def _fixed_leading(inputs: Sequence[Value]) -> dict[str, int]:
    """Input that leads -> its leading size; empty where one of them is free."""
    leading = {value.name: value.shape[0] for value in inputs if value.shape and value.leads}
    fixed = {name: size for name, size in leading.items() if isinstance(size, int)}
    return fixed if len(fixed) == len(leading) else {}


def batch_to_rewrite(inputs: Sequence[Value], batch: int) -> int | None:
    """The one batch that a file takes, where that is another than `batch`; None: the file takes it as it is."""
    fixed = fixed_batch(inputs)
    return None if fixed == batch else fixed


def sizes_text(sizes: Mapping[str, int]) -> str:
    """The inverse of `parse_sizes`, in the order of the names: equal sizes have equal texts."""
    return ",".join(f"{key}={size}" for key, size in sorted(sizes.items()))


def parse_sizes(text: str) -> dict[str, int]:
    """`image.height=224,image.width=224` as a mapping. Raises ValueError, with what is wrong, for anything else."""
    sizes: dict[str, int] = {}
    for part in text.split(","):
        key, separator, size = part.strip().rpartition("=")
        if not separator or not key.rpartition(".")[0] or not size.isdecimal():
            raise ValueError(f"{part!r} is not of the form INPUT.DIM=N")
        if int(size) < 1:
            raise ValueError(f"{part!r}: a size is at least 1")
        if sizes.setdefault(key, int(size)) != int(size):
            raise ValueError(f"{key} is given twice")
    return sizes


def image_shape(inputs: Sequence[Value]) -> tuple[int, int, int]:
    """(channels, height, width) of the one input of a model of images. Raises Misfit for a model that takes none."""
    shape = (inputs[0].shape or ()) if inputs else ()
    sizes = [size for size in shape[1:] if isinstance(size, int)]
    if len(inputs) != 1 or len(shape) != 4 or len(sizes) != 3 or not inputs[0].element.startswith("float"):
        taken = ", ".join(f"{value.name} {list(value.shape or ())} {value.element}" for value in inputs)
        raise Misfit(
            f"it takes {taken}, not images of [batch, channels, height, width]",
            "give a model with one float input of that shape, free in its batch at most",
        )
    channels, height, width = sizes
    return channels, height, width


def _check(value: Value) -> None:
    again = "export the model with tensors of a fixed number of dimensions as its inputs"
    if value.form != "tensor":
        raise Misfit(f"the type of the input {value.name} is {value.form or 'unknown'}, not tensor", again)
    if value.element not in FED:
        hint = "export the model with an input of one of these, and a Cast behind it"
        raise Misfit(f"the input {value.name} is {value.element}, and what is fed is {', '.join(sorted(FED))}", hint)
    if value.shape is None:
        raise Misfit(f"the input {value.name} states no number of dimensions", again)
    if 0 in value.shape:
        position = value.shape.index(0)
        what = f"dimension {position} of the input {value.name} has size 0, so nothing is computed of it"
        raise Misfit(what, "export the model with a size of at least 1 there, or with a free dimension")
