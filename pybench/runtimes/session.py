# SPDX-License-Identifier: Apache-2.0
"""The protocol that every runtime's session follows, and the inputs it states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.measure import Replayer

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
        """The shape with the first free dimension as `batch` and, where the input is ids, the second as `tokens`.

        Raises InputError when a fixed size contradicts, or a further dimension is free.
        """
        if not self.shape:
            raise InputError(f"{source}: the input {self.name} is a scalar, so it has no batch dimension")
        wanted: list[int | None] = [batch, *self.shape[1:]]
        if self.dtype.kind == "i" and len(self.shape) == 2:
            wanted[1] = tokens
        for position, (fixed, size) in enumerate(zip(self.shape, wanted, strict=True)):
            what = "batch" if position == 0 else "seq_len"
            if size is None:
                raise InputError(
                    f"{source}: dimension {position} of the input {self.name} is free, and no factor sets it",
                    hint="export the model with that dimension fixed",
                )
            if fixed is not None and fixed != size:
                raise InputError(
                    f"{source}: the input {self.name} has {fixed} as its {what}, the case {size}",
                    hint=f"set {what}: {fixed}, or export the model with that dimension free",
                )
        return tuple(size for size in wanted if size is not None)


class Session(Protocol):
    """An opened model, ready to run. See the package's docstring."""

    device_uuid: str | None
    inputs: tuple[TensorSpec, ...]
    labels: dict[str, Any]
    model_bytes: int
    compile_s: float | None

    @property
    def device(self) -> str: ...

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]: ...

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate: ...

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> Replayer: ...

    def bind_feed(self) -> Launch: ...
