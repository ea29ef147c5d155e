# SPDX-License-Identifier: Apache-2.0
"""The protocol that every runtime's session follows, and the inputs it states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pybench.errors import InputError
from pybench.measure import Replayer
from pybench.onnx_file.graph import Value, read_graph
from pybench.onnx_file.inputs import Misfit, fed_shapes

Arrays = Mapping[str, npt.NDArray[Any]]
Iterate = Callable[[], None]
Wait = Callable[[], None]  # returns when what was launched has ended
Launch = Callable[[Arrays], Wait]  # each launch is waited for before the next

L2_SIZES = 4  # of what overwrites the L2 cache: more than one, because replacement in it is not strictly by age
_MIB = 1 << 20


def flushing_label(l2_bytes: int) -> str:
    """How the L2 cache is emptied before each iteration, as the label `cache`."""
    return f"{L2_SIZES * l2_bytes / _MIB:g} MiB are written before each iteration, {L2_SIZES} times the L2 cache"


def ended() -> None:
    """The `Wait` of a pass that had ended when its launch returned."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input.

    name: by which it is fed
    dtype: of its elements
    shape: sizes of its dimensions; None where any size is taken (batch, sequence)
    names: of its dimensions in an ONNX file; None where it has none. Empty: they are not known
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]
    names: tuple[str | None, ...] = ()

    def resolved(self, batch: int, tokens: int, source: str) -> tuple[int, ...]:
        """The shape with the leading dimension as `batch` and, where the input is ids, the second as `tokens`.

        Raises InputError when a fixed size contradicts, or a further dimension is free.
        """
        return resolved([self], batch, tokens, source)[self.name]

    @property
    def value(self) -> Value:
        """The input as an ONNX file declares it."""
        names = self.names or (None,) * len(self.shape)
        sizes = (name if size is None else size for size, name in zip(self.shape, names, strict=True))
        return Value(self.name, "tensor", self.dtype.name, tuple(sizes))


def with_names(specs: Sequence[TensorSpec], path: Path) -> tuple[TensorSpec, ...]:
    """The inputs with the names of dimensions in their ONNX file, for a runtime that does not tell them. The file is
    read where a dimension behind the first is free."""
    if not any(None in spec.shape[1:] for spec in specs):
        return tuple(specs)
    shapes = {value.name: value.shape or () for value in read_graph(path).fed}
    return tuple(
        replace(spec, names=tuple(size if isinstance(size, str) else None for size in shapes[spec.name]))
        if len(shapes.get(spec.name, ())) == len(spec.shape)
        else spec
        for spec in specs
    )


def resolved(specs: Sequence[TensorSpec], batch: int, tokens: int, source: str) -> dict[str, tuple[int, ...]]:
    """Input -> its shape with these sizes. Raises InputError where one cannot be fed so, or none has a batch."""
    with refused(source):
        return fed_shapes([spec.value for spec in specs], batch, tokens, is_opened=True)


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
    """An opened model, ready to run. The package's docstring shows how one is used.

    device_uuid: of the GPU that it runs on; None on the CPU
    inputs: in the order in which the model takes them
    output_names: in the order of what `run` returns; empty where there are no names, or this is the order of the file
    labels: facts for run.json that are no numbers, such as providers; work that is bound or run may add some
    metadata: short texts that an ONNX file carries; empty for other models
    model_bytes: size of what is executed, the metric of this name
    compile_s: spent so far to make the model ready, in s; None: nothing of that kind is done
    """

    device_uuid: str | None
    inputs: tuple[TensorSpec, ...]
    output_names: tuple[str, ...]
    labels: dict[str, Any]
    metadata: dict[str, str]
    model_bytes: int
    compile_s: float | None

    @property
    def device(self) -> str:
        """`cpu`, or the UUID of a GPU."""
        ...

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        """One pass over arrays [N, ...] by input name. Returns the outputs on the host: float32 or int64, [N, ...]."""
        ...

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        """A call that does one pass over these inputs, and returns when its outputs exist.

        The inputs stay on the device, unless each call is to include the copies of inputs and outputs (`transfers`).
        Raises UnsupportedError where the runtime cannot include them.
        """
        ...

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> Replayer:
        """The same work as of `bind`, repeated and timed from C++ where the runtime can."""
        ...

    def bind_feed(self) -> Launch:
        """A call that copies its inputs to the device, starts a pass over them and leaves the outputs there."""
        ...


class ReadingSession(Session, Protocol):
    """A session of a runtime that reads and tokenizes text itself (`Runtime.own_path`).

    text_bytes: of the documents that have ended in what was fed so far
    wait_ns: how long no batch was ready, of what was fed so far
    """

    text_bytes: int
    wait_ns: int

    @property
    def peak_host_bytes(self) -> int | None:
        """The largest resident set of the process that reads; None where nothing says."""
        ...

    def feed(self, options: Mapping[str, Any], files: list[bytes]) -> Replayer:
        """Begins to tokenize `files`, in this order and without an end. `options`: `feed_options` of the path."""
        ...

    def first_ids(self) -> bytes:
        """The ids of the first batches, as `<u4`."""
        ...

    def close(self) -> None:
        """Ends the process that reads."""
        ...
