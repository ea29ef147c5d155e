# SPDX-License-Identifier: Apache-2.0
"""The protocol that every runtime's session follows, and the inputs it states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.measure import Replayer
from pybench.onnx_file.graph import Value
from pybench.onnx_file.inputs import Misfit, fed_shape, fed_shapes

Arrays = Mapping[str, npt.NDArray[Any]]
Iterate = Callable[[], None]
Wait = Callable[[], None]  # returns when what was launched has ended
Launch = Callable[[Arrays], Wait]  # each launch is waited for before the next


def ended() -> None:
    """The `Wait` of a pass that had ended when its launch returned."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input: `shape` has None where any size is taken (batch, sequence)."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]

    def resolved(self, batch: int, tokens: int, source: str) -> tuple[int, ...]:
        """The shape with the leading dimension as `batch` and, where the input is ids, the second as `tokens`.

        Raises InputError when a fixed size contradicts, or a further dimension is free.
        """
        with refused(source):
            return fed_shape(self.name, self.shape, self.dtype.kind == "i", batch, tokens)

    @property
    def value(self) -> Value:
        """The input as an ONNX file declares it."""
        return Value(self.name, "tensor", self.dtype.name, self.shape)


def resolved(specs: Sequence[TensorSpec], batch: int, tokens: int, source: str) -> dict[str, tuple[int, ...]]:
    """Input -> its shape with these sizes. Raises InputError where one cannot be fed so, or none has a batch."""
    with refused(source):
        return fed_shapes([spec.value for spec in specs], batch, tokens)


@contextmanager
def refused(source: str) -> Iterator[None]:
    """A misfit between a model and what it is fed, as an InputError that names the model."""
    try:
        yield
    except Misfit as misfit:
        raise InputError(f"{source}: {misfit.what}", hint=misfit.hint) from misfit


def module_spec(name: str, shape: tuple[int | None, ...], takes_ids: bool) -> TensorSpec:
    """The input of a torch module, stated for it: modules do not say."""
    return TensorSpec(name, np.dtype(np.int64 if takes_ids else np.float32), shape)


class Session(Protocol):
    """An opened model, ready to run. See the package's docstring."""

    device_uuid: str | None
    inputs: tuple[TensorSpec, ...]
    labels: dict[str, Any]
    metadata: dict[str, str]
    model_bytes: int
    compile_s: float | None

    @property
    def device(self) -> str: ...

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]: ...

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate: ...

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> Replayer: ...

    def bind_feed(self) -> Launch: ...
