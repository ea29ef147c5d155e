# SPDX-License-Identifier: Apache-2.0
"""torch, eager: the module's operators one after the other, as PyTorch runs them without compilation.

`fp32` has TF32 off everywhere, by both of torch's interfaces. On a GPU convolutions run in
channels_last with cuDNN's benchmark; the callable waits for the device. Does not quantise, compile or capture graphs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from pybench import measure
from pybench.case import Case
from pybench.catalogue.precisions import allows_tf32
from pybench.catalogue.refusals import refuse_precision, refuse_transfers
from pybench.catalogue.runtimes import RUNTIMES, Runtime
from pybench.errors import PybenchError
from pybench.kernels.launches import profile_of_launches, profile_of_operators
from pybench.kernels.profile import Profile
from pybench.runtimes.device import chosen, narrow
from pybench.runtimes.launched import launched_by, operators_of
from pybench.runtimes.session import Arrays, Iterate, Launch, TensorSpec, Wait, ended

Held = tuple[Tensor, ...]  # the inputs on the device, in the order of the session's
Forward = Callable[..., Tensor]  # of the inputs
Specs = TensorSpec | tuple[TensorSpec, ...]
Loss = Callable[..., Tensor]  # of the tensors of a batch

NAME = "torch"
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class TorchSession:
    """An opened module. `module` stays reachable for the audit of its precision; `spec`: its input, or inputs."""

    def __init__(self, module: nn.Module, spec: Specs, precision: str, kind: str) -> None:
        self.module = module
        self.inputs = specs_of(spec)
        self.output_names: tuple[str, ...] = ()
        self.precision = precision
        self.kind = kind
        self.device_uuid = gpu_uuid() if kind == "cuda" else None
        self.model_bytes = _bytes(module)
        self.compile_s: float | None = None
        self.metadata: dict[str, str] = {}
        self._held: Held | None = None  # what was on the device last
        until_idle = ", from its first launch until the device is idle" if kind == "cuda" else ""
        self.labels: dict[str, Any] = {
            "runtime_version": torch.__version__,
            "layout": "channels_last" if self._channels_last else "contiguous",
            "iteration": f"one forward pass{until_idle}",
            **flags(),
        }

    @property
    def device(self) -> str:
        return self.device_uuid or "cpu"

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        held = self._moved(
            self._hosts(inputs)
        )  # as `bind` moves them: a compiler tells tensors of inference mode apart
        with torch.inference_mode():
            return [self._forward(held)(*held).float().cpu().numpy()]

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        """With `transfers`, each call copies the input from page-locked memory and the output back into it."""
        wait = self._wait
        hosts = self._hosts(inputs)
        if not transfers:
            held = self._moved(hosts)
            forward = self._forward(held)

            @torch.inference_mode()
            def iterate() -> None:
                forward(*held)
                wait()

            return iterate
        refuse_transfers(RUNTIMES[NAME], has_gpu=self.kind == "cuda")
        # In the model's type before the loop: torch would convert on the host, in pageable memory, in each iteration.
        pinned = [
            (host.to(DTYPES[self.precision]) if host.is_floating_point() else host).pin_memory() for host in hosts
        ]
        with torch.inference_mode():
            held = self._moved(hosts)
            forward = self._forward(held)
            landed = torch.empty_like(forward(*held), device="cpu", pin_memory=True)

        @torch.inference_mode()
        def iterate_with_copies() -> None:
            landed.copy_(forward(*self._moved(pinned, non_blocking=True)), non_blocking=True)
            wait()

        return iterate_with_copies

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> measure.Replayer:
        return measure.CallReplayer(self.bind(inputs, transfers=transfers))

    def bind_feed(self) -> Launch:
        mark = end_marker(self.kind)

        @torch.inference_mode()
        def launch(inputs: Arrays) -> Wait:
            held = self._moved(self._hosts(inputs))
            self._forward(held)(*held)
            return mark()

        return launch

    def profile(self) -> Profile:
        """What a forward pass on what was on the device last runs; nothing is measured after it."""
        if self.kind == "cuda":
            return profile_of_launches(launched_by(self._again()))
        return profile_of_operators(operators_of(self._again()))

    def _forward(self, held: Held) -> Forward:
        """A forward pass for inputs of the shapes of `held`. Compilers compile here, before anything is timed."""
        return self.module

    @property
    def _channels_last(self) -> bool:
        return self.kind == "cuda" and takes_planes(self.inputs)

    def _hosts(self, inputs: Arrays) -> list[Tensor]:
        return [host_tensor(inputs[spec.name]) for spec in self.inputs]

    def _moved(self, hosts: Iterable[Tensor], non_blocking: bool = False) -> Held:
        """The inputs on the device, in place of those before: two copies at once would count as the model's memory."""
        self._held = None
        self._held = tuple(self._to_device(host, non_blocking) for host in hosts)
        return self._held

    def _to_device(self, host: Tensor, non_blocking: bool = False) -> Tensor:
        dtype = DTYPES[self.precision] if host.is_floating_point() else host.dtype
        moved = host.to(device=self.kind, dtype=dtype, non_blocking=non_blocking)
        return moved.contiguous(memory_format=torch.channels_last) if self._channels_last else moved

    def _again(self) -> Callable[[], None]:
        """One more forward pass on what was on the device last; without such, nothing."""
        held = self._held

        @torch.inference_mode()
        def call() -> None:
            if held is not None:
                self._forward(held)(*held)
            self._wait()

        return call

    def _wait(self) -> None:
        if self.kind == "cuda":
            torch.cuda.current_stream().synchronize()


class TrainingPass:
    """Forward pass and loss as a runtime executes them in training. `loss`: the tensors of a batch on the device -> a
    scalar with gradients. `compile_s`: spent to make it ready; None: nothing of that kind is done. `is_eager`: whether
    operators run one after the other, so that torch tells what they save. `replays`: whether a step replays a graph."""

    is_eager = True
    replays = False

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.compile_s: float | None = None
        self.labels: dict[str, Any] = {}

    def make_ready(self, gradients: Callable[[], object]) -> None:
        """Before the first step. `gradients`: one forward and backward pass of the case's shape, awaited."""

    def begin(self) -> None:
        """Before each step: what the last one has put out is no longer of use."""

    def kept(self, loss: Tensor) -> Tensor:
        """A loss without gradients that the next step leaves as it is."""
        return loss.detach()


def open_training(loss: Loss, case: Case, kind: str, threads: int) -> TrainingPass:
    """Nothing is compiled: operators run one after the other."""
    return TrainingPass(loss)


def open_case(
    given: Callable[[], nn.Module], spec: Specs, case: Case, threads: int, *, deterministic: bool = False
) -> TorchSession:
    """`given` builds the module; refused precisions and devices are told before that."""
    kind = set_up(case.precision, threads, case.device)
    return open_session(given(), spec, precision=case.precision, kind=kind, deterministic=deterministic)


def open_session(
    module: nn.Module, spec: Specs, *, precision: str, kind: str, deterministic: bool = False
) -> TorchSession:
    """Moves `module` (evaluation mode, FP32) to the device and precision of the case, after `set_up` returned `kind`.

    `deterministic`: cuDNN takes algorithms whose outputs repeat, instead of those that a benchmark finds fastest.
    """
    return TorchSession(prepare(module, spec, precision, kind, deterministic), spec, precision, kind)


def prepare(module: nn.Module, spec: Specs, precision: str, kind: str, deterministic: bool) -> nn.Module:
    """The module where and as it runs; sets how cuDNN chooses its algorithms."""
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = kind == "cuda" and not deterministic
    module = module.eval().to(device=kind, dtype=DTYPES[precision])
    is_ordered = kind == "cuda" and takes_planes(specs_of(spec))
    return module.to(memory_format=torch.channels_last) if is_ordered else module


def specs_of(spec: Specs) -> tuple[TensorSpec, ...]:
    """The inputs of a module, of which most have one."""
    return spec if isinstance(spec, tuple) else (spec,)


def takes_planes(specs: tuple[TensorSpec, ...]) -> bool:
    """Whether the one input is of images."""
    return len(specs) == 1 and len(specs[0].shape) == 4


def set_up(
    precision: str, threads: int, device: str, *, runtime: Runtime = RUNTIMES[NAME], training: bool = False
) -> str:
    """Threads, device and TF32 for this process; returns `cpu` or `cuda`. `runtime`: the row of which runtime of torch.

    Raises UnsupportedError for a precision or device that is not there.
    """
    narrow(device)
    torch.set_num_threads(threads)
    kind = chosen(device, torch.cuda.is_available(), runtime.name)
    capability = float("{}.{}".format(*torch.cuda.get_device_capability())) if kind == "cuda" else None
    refuse_precision(runtime, None, precision, has_gpu=kind == "cuda", capability=capability, training=training)
    allow_tf32(allows_tf32(precision))
    return kind


def allow_tf32(allowed: bool) -> None:
    """Sets TF32 for matrix products, convolutions and recurrent layers, on every backend.

    First by the old interface, then by that of torch >= 2.9. After the new one alone, torch's own code that still reads
    the old one (its exporter and compiler do) raises, because the two disagree. What such code would be told of the old
    one's end, once a process, is told here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed
        _set_by_new_interface(allowed)
        old = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    if old != (allowed, allowed):
        raise PybenchError(f"torch did not set TF32 to {allowed}: it says {old} of matrix products and convolutions")


def _set_by_new_interface(allowed: bool) -> None:
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        return
    word = "tf32" if allowed else "ieee"
    torch.backends.cuda.matmul.fp32_precision = word
    for backend in (_cudnn("conv"), _cudnn("rnn")):
        backend.fp32_precision = word
    for name in ("matmul", "conv", "rnn"):  # oneDNN may use bf16 or tf32 inside FP32 on some CPUs
        backend = getattr(torch.backends.mkldnn, name, None)
        if backend is not None and hasattr(backend, "fp32_precision"):
            backend.fp32_precision = "ieee"


def flags() -> dict[str, Any]:
    """The switches that decide what FP32 means, read back."""
    matmul = torch.backends.cuda.matmul
    if hasattr(matmul, "fp32_precision"):
        return {"matmul_fp32_precision": matmul.fp32_precision, "conv_fp32_precision": _cudnn("conv").fp32_precision}
    words = {True: "tf32", False: "ieee"}
    return {
        "matmul_fp32_precision": words[bool(matmul.allow_tf32)],
        "conv_fp32_precision": words[bool(torch.backends.cudnn.allow_tf32)],
    }


def _cudnn(operation: str) -> Any:
    """cuDNN's switches for one kind of operation; torch makes them at run time, out of a type checker's sight."""
    return getattr(torch.backends.cudnn, operation)


def gpu_uuid() -> str:
    """`GPU-...` of the current device, as NVML writes it."""
    return f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"


def end_marker(kind: str) -> Callable[[], Wait]:
    """On `cuda` a call marks what has been launched so far, and gives what waits for that and for nothing behind it.

    One event serves every mark, so each has to be waited for before the next. On `cpu` there is nothing to wait for.
    """
    if kind == "cpu":
        return lambda: ended
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def mark() -> Wait:
        event.record()
        return event.synchronize

    return mark


def shapes_of(held: Iterable[Tensor]) -> tuple[tuple[int, ...], ...]:
    """What compilers and graphs are made for."""
    return tuple(tuple(tensor.shape) for tensor in held)


def host_tensor(array: npt.NDArray[Any] | Tensor) -> Tensor:
    """An array as a tensor in the host's memory, without a copy where it may be written. A tensor stays as it is."""
    if isinstance(array, Tensor):
        return array  # of a feed that has brought it to the device already
    # A batch of ids may lie in memory that another process writes and this one only reads; torch cannot express that.
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _bytes(module: nn.Module) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in (*module.parameters(), *module.buffers()))
