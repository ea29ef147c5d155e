# SPDX-License-Identifier: Apache-2.0
"""The loads of the live comparison, each a short sequence of CUDA graphs that is replayed again and again.

`memory` moves bytes, `matrix_cap` runs into the power cap, so its clocks move. `resnet50_fp16_b32` is a network, and
`tiny_launches` is bound by launches. The two bursts alternate between nearly full and nearly idle power, faster and
slower than the sensor's own averaging. A second set, on which nothing was ever tuned, has attention, a Fourier
transform, gathered rows and a decoding loop.

One iteration is one pass through the sequence, `steps`; every iteration does the same work on the same data. Data are
random, since zeros draw less power, and so are the network's weights: nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torchvision
from torch.nn import functional

from pybench.catalogue.models import TOKENIZER_IDS
from pybench.measure import monotonic_ns
from pybench.models.building import build

MARK_S = 0.01  # between two marks of the work done
BURST_S = 0.005
BURST_50_S = 0.05
BURST_50_PIECES = 5  # so that a mark every 10 ms is possible
CALIBRATION_S = 1.5  # long enough for clocks to settle under most loads; also warms the board up


class CapturedWork:
    """A CUDA graph together with the work it was captured from.

    A graph knows its tensors by address only, and each capture hands the caching allocator's free memory back to the
    driver. Without the reference, a replay would run on freed memory (and can crash inside the driver).
    """

    def __init__(self, graph: torch.cuda.CUDAGraph, work: Callable[[], object]) -> None:
        self.replay = graph.replay
        self._kept = (graph, work)


Steps = tuple[CapturedWork, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Work done by a time after the first kernel's start. `iterations` may be a fraction: part of the way through."""

    iterations: float
    after_begin_s: float


@dataclass(frozen=True, slots=True)
class WindowRun:
    """One window as run. Begin and end are on the host's raw clock; the device is idle just before and just after."""

    begin_ns: int
    end_ns: int
    iterations: int


class Load:
    """A kernel, captured and calibrated. `run` does the work, `marks` then says when how much of it was done."""

    def __init__(self, name: str, what: str, steps: Steps) -> None:
        self.name = name
        self.what = what
        self._steps = steps
        self.iteration_s = seconds_per_pass(steps)
        self._steps_per_mark = max(1, round(MARK_S * len(steps) / self.iteration_s))
        self._events: list[torch.cuda.Event] = []  # kept: creating one costs more than recording it

    def run(self, duration_s: float) -> WindowRun:
        """About `duration_s` of work: a number of whole iterations fixed beforehand, so that no clock steers it."""
        iterations = max(1, round(duration_s / self.iteration_s))
        while len(self._events) < iterations * len(self._steps) // self._steps_per_mark + 2:
            self._events.append(torch.cuda.Event(enable_timing=True))
        torch.cuda.synchronize()
        begin_ns = monotonic_ns()
        events = iter(self._events)
        next(events).record()
        done = 0
        for _ in range(iterations):
            for step in self._steps:
                step.replay()
                done += 1
                if done % self._steps_per_mark == 0:
                    next(events).record()
        next(events).record()
        torch.cuda.synchronize()
        return WindowRun(begin_ns, monotonic_ns(), iterations)

    def marks(self, run: WindowRun) -> list[Mark]:
        """When which share of the last `run` was done, by the device's clock, which keeps time with the host's to ppm.

        The first event is recorded on an idle device some 10 us after `begin_ns`; that is the error of these times.
        """
        steps = run.iterations * len(self._steps)
        done = [*range(0, steps + 1, self._steps_per_mark), steps]
        first = self._events[0]
        return [
            Mark(count / len(self._steps), first.elapsed_time(event) / 1e3)
            for count, event in zip(done, self._events[: len(done)], strict=True)
        ]


def capture(work: Callable[[], object], repeats: int = 1) -> CapturedWork:
    """A graph of `repeats` calls of `work`, after some on a side stream that allocate and choose algorithms."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            work()
    torch.cuda.synchronize()
    return CapturedWork(graph, work)


def seconds_per_pass(steps: Steps) -> float:
    """The time of one pass through `steps`, the mean over about CALIBRATION_S."""

    def mean_s(passes: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(passes):
            for step in steps:
                step.replay()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3 / passes

    mean_s(2)
    return mean_s(max(3, round(CALIBRATION_S / mean_s(3))))


def prepare(kernels: str) -> dict[str, Load]:
    """Captures and calibrates every kernel of a set of `schedule.KERNEL_SETS`, by name; some 20 s, which also warm the
    board up."""
    torch.manual_seed(20260101)
    torch.backends.cudnn.benchmark = True
    loads = {"first": first_set, "second": second_set}[kernels]()
    return {load.name: load for load in loads}


def first_set() -> tuple[Load, ...]:
    device = torch.device("cuda")
    words = torch.randn(64 * 1024 * 1024, device=device)  # [67108864] float32: 256 MiB
    few = torch.randn(1024, device=device)  # [1024] float32: 4 KiB
    sums, few_sums = torch.empty_like(words), torch.empty_like(few)
    left, right = (torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in range(2))
    product = torch.empty_like(left)

    def multiply() -> None:
        torch.matmul(left, right, out=product)

    product_graph = capture(multiply)
    product_s = seconds_per_pass((product_graph,))

    def spin(seconds: float) -> None:
        torch.cuda._sleep(round(seconds * spins_per_s))

    def burst() -> None:
        for _ in range(max(1, round(BURST_S / product_s))):
            multiply()
        spin(BURST_S)

    spins_per_s = 1e7 / seconds_per_pass((capture(lambda: torch.cuda._sleep(10_000_000)),))
    piece_s = BURST_50_S / BURST_50_PIECES
    busy, idle = capture(multiply, max(1, round(piece_s / product_s))), capture(lambda: spin(piece_s))
    return (
        Load("memory", "8 adds, 256 MiB to 256 MiB", (capture(lambda: torch.add(words, 1.0, out=sums), 8),)),
        Load("matrix_cap", "one 8192 x 8192 x 8192 bf16 matrix product", (product_graph,)),
        Load("resnet50_fp16_b32", "torchvision's ResNet-50, fp16, channels last, batch 32", (capture(_network()),)),
        Load("tiny_launches", "300 adds of 4 KiB", (capture(lambda: torch.add(few, 1.0, out=few_sums), 300),)),
        Load("bursts", "5 ms of the matrix product, then 5 ms of one spinning thread", (capture(burst),)),
        Load("bursts_50", "the same with 50 ms", (*[busy] * BURST_50_PIECES, *[idle] * BURST_50_PIECES)),
    )


def second_set() -> tuple[Load, ...]:
    device = torch.device("cuda")
    query, key, value = (torch.randn(16, 16, 2048, 64, device=device, dtype=torch.half) for _ in range(3))
    signal = torch.randn(256, 65536, device=device, dtype=torch.complex64)  # 128 MiB
    table = torch.randn(1024 * 1024, 64, device=device)  # [rows, 64] float32: 256 MiB, five times the L2
    rows = torch.randint(len(table), (1024 * 1024,), device=device)
    gathered = torch.empty(len(rows), table.shape[1], device=device)

    def attend() -> object:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    def gather() -> object:
        return torch.index_select(table, 0, rows, out=gathered)

    return (
        Load("attention", "causal attention in FP16, 16 x 16 heads, 2,048 tokens, width 64", (capture(attend),)),
        Load("fft", "256 transforms of 65,536 complex numbers", (capture(lambda: torch.fft.fft(signal)),)),
        Load("gather", "1,048,576 random rows of 256 bytes", (capture(gather, 4),)),
        Load("decode", "64 tokens of TinyLM-large in FP16 from a cache, one sequence", (capture(_decoding()),)),
    )


def _decoding() -> Callable[[], object]:
    """64 steps of a decoding loop after a prompt of 64 tokens, each fed with the likeliest token of the step before."""
    model = build("tinylm-large").cuda().half().eval()
    prompt = torch.randint(TOKENIZER_IDS, (1, 64), device="cuda")
    with torch.no_grad():
        cache = model.new_cache(1, 128)
        first = model.extend(prompt, cache, 0).argmax(-1, keepdim=True)

    def decode() -> object:
        ids = first
        with torch.no_grad():
            for past in range(64, 128):
                ids = model.extend(ids, cache, past).argmax(-1, keepdim=True)
        return ids

    return decode


def _network() -> Callable[[], object]:
    """ResNet-50 for inference. A few passes in training mode first, so that its batch norms fit its random weights."""
    model = torchvision.models.resnet50(weights=None).cuda().half().to(memory_format=torch.channels_last)
    images = torch.randn(32, 3, 224, 224, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)
    with torch.no_grad():
        for _ in range(30):
            model(images)
    model.eval()

    def infer() -> object:
        with torch.no_grad():
            return model(images)

    if not bool(torch.isfinite(infer()).all()):  # type: ignore[arg-type]
        raise RuntimeError("the network's output is not finite, so its power would not be a network's")
    return infer
