# SPDX-License-Identifier: Apache-2.0
"""Which sizes an input is fed with: its leading dimension is the batch, the second of token ids is the sequence.

The one rule, for a plan that judges a file before it runs and for a session that feeds what it opened.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.onnx_file.graph import Value

# Types of tensors that numpy has, and that every runtime is fed with. ONNX has more.
FED = frozenset(
    {"float16", "float32", "float64", "bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)
_DIMENSIONS_OF_IDS = 2  # dimensions of token ids: batch and sequence


class Misfit(Exception):
    """An input that a case cannot feed. `factor`: of the case, if it is the one to change."""

    def __init__(self, what: str, hint: str, factor: str = "model") -> None:
        super().__init__(what)
        self.what, self.hint, self.factor = what, hint, factor


def fed_shapes(inputs: Sequence[Value], batch: int, tokens: int) -> dict[str, tuple[int, ...]]:
    """Input -> its sizes. Raises Misfit for what cannot be fed, or contradicts `batch` or `tokens`."""
    if not inputs:
        raise Misfit(
            "it has no input: it computes constants", "export the model so that it reads its data from an input"
        )
    for value in inputs:
        _check(value)
    if not any(value.shape for value in inputs):
        raise Misfit("its inputs are scalars, so it has no batch dimension", "export the model with a batch dimension")
    return {
        value.name: fed_shape(value.name, value.shape or (), value.element.startswith("int"), batch, tokens)
        for value in inputs
    }


def fed_shape(name: str, shape: Sequence[int | str | None], integers: bool, batch: int, tokens: int) -> tuple[int, ...]:
    """Sizes of one input; a scalar has none. `shape`: what is no number is free; `integers`: signed ones, as ids are.

    Raises Misfit where a fixed size contradicts, or a further dimension is free.
    """
    given = {0: ("batch", batch)} if shape else {}
    if integers and len(shape) == _DIMENSIONS_OF_IDS:
        given[1] = ("seq_len", tokens)
    for position, stated in enumerate(shape):
        if position not in given and not isinstance(stated, int):
            called = f" ({stated})" if isinstance(stated, str) else ""
            raise Misfit(
                f"dimension {position}{called} of the input {name} is free, and no factor sets it",
                "export the model with that dimension fixed; the leading dimension is the batch",
            )
    for position, (factor, wanted) in given.items():
        stated = shape[position]
        if isinstance(stated, int) and stated != wanted:
            raise Misfit(
                f"the input {name} has {stated} as its {factor}, the case {wanted}",
                f"set {factor}: {stated}, or export the model with that dimension free",
                factor,
            )
    return tuple(given[position][1] if position in given else int(size or 0) for position, size in enumerate(shape))


def image_shape(inputs: Sequence[Value]) -> tuple[int, int, int]:
    """(channels, height, width) of the one input of a model of images. Raises Misfit for a model that takes none."""
    shape = (inputs[0].shape or ()) if inputs else ()
    sizes = [size for size in shape[1:] if isinstance(size, int)]
    if len(inputs) != 1 or len(shape) != 4 or len(sizes) != 3 or not inputs[0].element.startswith("float"):
        taken = ", ".join(f"{value.name} {list(value.shape or ())} {value.element}" for value in inputs)
        raise Misfit(
            f"it takes {taken}, not images",
            "accuracy needs one float input [batch, channels, height, width], free in its batch at most",
        )
    channels, height, width = sizes
    return channels, height, width


def _check(value: Value) -> None:
    again = "export the model with tensors of a fixed number of dimensions as its inputs"
    if value.form != "tensor":
        raise Misfit(f"the input {value.name} is no tensor but {value.form or 'of an unknown form'}", again)
    if value.element not in FED:
        hint = "export the model with an input of one of these, and a Cast behind it"
        raise Misfit(f"the input {value.name} is {value.element}, and what is fed is {', '.join(sorted(FED))}", hint)
    if value.shape is None:
        raise Misfit(f"the input {value.name} states no number of dimensions", again)
    if 0 in value.shape:
        position = value.shape.index(0)
        raise Misfit(f"dimension {position} of the input {value.name} has size 0, so nothing is computed of it", again)
