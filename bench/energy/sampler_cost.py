# SPDX-License-Identifier: Apache-2.0
"""What the sampler costs: CPU time of its threads, and whether GPU work beside it gets slower.

    python3 -P bench/energy/sampler_cost.py [--seconds 205] [--sessions 3] [--uuid GPU-...]
                                             [--replay LIBRARY --trace FOLDER]

First part: sessions of 30 s of sampling as a run does it (power at 10 Hz, the driver's buffer, state at 5 Hz, the
energy counter's ticks kept). The CPU time that each thread used is from /proc/self/task. Printed are the mean over
sessions, and the dearest one, since luck decides how many readings find the ticks.

Second part: GPU work in pairs with and without the sampler, order ABBA BAAB and so on. The kinds of work are adds in
memory, convolutions, small kernels and matrix products, and CUDA graphs of 0.75 s. Printed is the mean of the pairs'
log ratios with a 95 % interval by Student's t. The kinds together are weighted by their own precision: products run at
the power cap, where clocks wander by a percent, and would drown what the others show. It takes as many pairs as the
seconds allow, 60 and more in 205 s. Without torch or a GPU the second part is left out, and says so. With a replay
library (native/tests) the first part runs anywhere, and shows the sampler's own cost without the driver's.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pybench import measure
from pybench.measure.energy.gpu_sampler import GpuSampler, Unavailable, open_gpu
from pybench.measure.session import TRACK_S

POWER_INTERVAL_S = 0.1  # Session's own
IDLE_S = 30.0
SESSIONS = 3
PAIR_HALF_S = 0.75  # s: of work on either side of a pair
LEAST_PAIRS = 60
PAUSE_S = 0.02
SCAN_S = 3.0
BOUND_CPU, BOUND_EFFECT = 0.005, 0.001  # 1: of a core; of the work's time
THREADS = ("power", "energy counter", "state")  # in the order in which the sampler starts them


@dataclass(frozen=True)
class Cpu:
    """CPU seconds by thread."""

    seconds: dict[int, float]

    @classmethod
    def now(cls) -> Cpu:
        return cls({int(task.name): _cpu_s(task) for task in Path("/proc/self/task").iterdir()})


def _cpu_s(task: Path) -> float:
    """CPU time of one thread in s: by the scheduler, to the ns, where the kernel tells that; else in clock ticks."""
    try:
        return int((task / "schedstat").read_text().split()[0]) * 1e-9
    except (OSError, IndexError):
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of_sampling(gpu: GpuSampler, seconds: float) -> list[tuple[str, float, float]]:
    """(thread, CPU share in the whole time, and after its first 2 s) of each thread that the sampler started."""
    before = Cpu.now()
    begin = time.monotonic()
    gpu.start()
    gpu.track_counter(TRACK_S)
    time.sleep(2.0)
    settled, settled_at = Cpu.now(), time.monotonic()
    time.sleep(max(0.0, seconds - 2.0))
    after, end = Cpu.now(), time.monotonic()
    gpu.stop()
    started = sorted(set(after.seconds) - set(before.seconds))
    names = THREADS if len(started) == len(THREADS) else tuple(str(thread) for thread in started)
    return [
        (
            name,
            after.seconds[thread] / (end - begin),
            (after.seconds[thread] - settled.seconds.get(thread, 0.0)) / (end - settled_at),
        )
        for name, thread in zip(names, started, strict=True)
    ]


def sample_sessions(
    uuid: str, library: str | None, count: int, seconds: float
) -> tuple[list[list[tuple[str, float, float]]], list[dict[str, Any]]]:
    """Of each session, which finds the counter's ticks anew, what `cpu_of_sampling` gives, and the sampler's facts."""
    shares, facts = [], []
    for _ in range(count):
        gpu = open_gpu(uuid, POWER_INTERVAL_S, library)
        if isinstance(gpu, Unavailable):
            raise SystemExit(f"nothing to sample: {gpu.reason}")
        shares.append(cpu_of_sampling(gpu, seconds))
        facts.append(gpu.facts())
    return shares, facts


def print_cpu(sessions: list[list[tuple[str, float, float]]], seconds: float) -> None:
    first = f"first {seconds:g} s"
    print(f"CPU of the sampler's threads, % of one core, {len(sessions)} sessions")
    print(f"  {'mean':42} {first:>14} {'once settled':>14}")
    shares = np.array([[row[1:] for row in session] for session in sessions])  # [session, thread, whole or settled]
    for (name, _, _), (whole, settled) in zip(sessions[0], 100 * shares.mean(axis=0), strict=True):
        print(f"  {name:42} {whole:14.3f} {settled:14.3f}")
    together = shares.sum(axis=1)
    whole, settled = together.mean(axis=0)
    verdict = "within" if settled < BOUND_CPU else "ABOVE"
    print(f"  {'together':42} {100 * whole:14.3f} {100 * settled:14.3f}   {verdict} the bound of {100 * BOUND_CPU:g} %")
    for name, (whole, settled) in (("least", together.min(axis=0)), ("most", together.max(axis=0))):
        print(f"  {'together, ' + name:42} {100 * whole:14.3f} {100 * settled:14.3f}")


def print_losses(facts: list[dict[str, Any]]) -> None:
    """What the sampler says of itself, session by session."""
    for name in ("power_samples_lost", "missed_ticks", "counter_tick_s", "counter_tick_known_within_s"):
        print(f"  {name:42} {', '.join(f'{each.get(name)}' for each in facts)}")


def gpu_work() -> dict[str, Callable[[], None]]:
    """By name: about PAIR_HALF_S of GPU work each, as a number of replays of a CUDA graph that is fixed beforehand."""
    import torch

    torch.manual_seed(0)
    matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) * 0.01
    image = torch.randn(32, 256, 56, 56, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last)
    filters = torch.nn.Conv2d(256, 256, 3, padding=1, bias=False, device="cuda", dtype=torch.float16)
    filters = filters.to(memory_format=torch.channels_last)
    small = torch.zeros(1024, device="cuda")
    large = torch.zeros(2**26, device="cuda")  # 256 MiB: far beyond the cache

    def adds() -> None:
        large.add_(1.0)

    def products() -> None:
        torch.mm(matrix, matrix)

    def convolutions() -> None:
        with torch.no_grad():
            filters(image)

    def launches() -> None:
        for _ in range(100):
            small.add_(1.0)

    return {work.__name__: _repeated(work) for work in (adds, convolutions, launches, products)}


def _repeated(work: Callable[[], None]) -> Callable[[], None]:
    import torch

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    def replay(times: int) -> None:
        for _ in range(times):
            graph.replay()
        torch.cuda.synchronize()

    replay(10)
    begin = time.monotonic()
    replay(50)
    each_s = (time.monotonic() - begin) / 50
    count = max(1, round(PAIR_HALF_S / each_s))
    replay(count)  # warm
    return lambda: replay(count)


def timed_s(work: Callable[[], None], gpu: GpuSampler | None) -> float:
    """The time of the work alone; the sampler, if any, is started before and stopped after."""
    if gpu is not None:
        gpu.start()
    time.sleep(PAUSE_S)
    begin_ns = measure.monotonic_ns()
    work()
    seconds = (measure.monotonic_ns() - begin_ns) * 1e-9
    if gpu is not None:
        gpu.stop()
    return seconds


def compare(uuid: str, seconds: float) -> None:
    works = gpu_work()
    gpu = open_gpu(uuid, POWER_INTERVAL_S, None)
    if isinstance(gpu, Unavailable):
        print(f"left out: GPU work with and without the sampler ({gpu.reason})")
        return
    cpu_of_sampling(gpu, SCAN_S)  # finds the counter's ticks, once, as a session does before its first window
    ratios: dict[str, list[float]] = {name: [] for name in works}
    until = time.monotonic() + seconds
    pair = 0
    while time.monotonic() + 2 * len(works) * PAIR_HALF_S < until:
        for name, work in works.items():
            # ABBA BAAB: a drift that is linear over two pairs cancels, and so does any of that period.
            sampled_first = pair % 4 in (1, 2)
            halves = {first: timed_s(work, gpu if first else None) for first in (sampled_first, not sampled_first)}
            ratios[name].append(math.log(halves[True] / halves[False]))
        pair += 1
    print(f"\nGPU work with the sampler against without it, time, pairs of {PAIR_HALF_S:g} s")
    effects = [effect_of(np.array(logs)) for logs in ratios.values()]
    for name, effect in zip(ratios, effects, strict=True):
        print_effect(name, effect)
    print_effect("together, weighted", pooled(effects))


@dataclass(frozen=True)
class Effect:
    """A mean log ratio with its standard error and the degrees of freedom that this is known with."""

    mean: float
    u_mean: float
    freedom: float
    pairs: int


def effect_of(logs: np.ndarray) -> Effect:
    """Of one kind of work. `logs`: one log ratio a pair, two at least."""
    u_mean = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return Effect(float(logs.mean()), u_mean, len(logs) - 1, len(logs))


def pooled(effects: list[Effect]) -> Effect:
    """Means weighted by 1/u^2; degrees of freedom by Welch and Satterthwaite."""
    weights = np.array([effect.u_mean**-2 for effect in effects])
    shares = weights / weights.sum()
    freedom = 1 / float((shares**2 / np.array([effect.freedom for effect in effects])).sum())
    mean = float((shares * np.array([effect.mean for effect in effects])).sum())
    return Effect(mean, float(weights.sum()) ** -0.5, freedom, sum(effect.pairs for effect in effects))


def print_effect(name: str, effect: Effect) -> None:
    from scipy import stats

    half = float(stats.t.ppf(0.975, effect.freedom)) * effect.u_mean
    low, high = (100 * math.expm1(effect.mean + side * half) for side in (-1, 1))
    verdict = "within" if max(abs(low), abs(high)) <= 100 * BOUND_EFFECT else "not shown to be within"
    few = "" if effect.pairs >= LEAST_PAIRS else f" (fewer than {LEAST_PAIRS} pairs)"
    print(
        f"  {name:20} {effect.pairs:4} pairs   {100 * math.expm1(effect.mean):+.4f} %   "
        f"95 % interval {low:+.4f} to {high:+.4f} %   {verdict} {100 * BOUND_EFFECT:g} %{few}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=205.0, help="for everything together")
    parser.add_argument("--uuid", help="of the GPU; the first one where left out")
    parser.add_argument("--replay", type=Path, help="the replay library, in NVML's place")
    parser.add_argument("--trace", type=Path, help="what it plays")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="whose CPU time is looked at")
    parser.add_argument("--idle-s", type=float, default=IDLE_S, help="length of each of them")
    options = parser.parse_args()
    begin = time.monotonic()
    library = None if options.replay is None else str(options.replay)
    if options.trace is not None:
        os.environ["PYBENCH_REPLAY_TRACE"] = str(options.trace)
    known = measure.gpus(library)
    uuid = options.uuid or (known.gpus[0].uuid if known.gpus else "")
    sessions, facts = sample_sessions(uuid, library, options.sessions, options.idle_s)
    print(f"{facts[0]['name']}, driver {facts[0]['driver_version']}")
    print_cpu(sessions, options.idle_s)
    print_losses(facts)
    try:
        import torch

        on_gpu = torch.cuda.is_available() and library is None
    except ImportError:
        on_gpu = False
    if not on_gpu:
        print("left out: GPU work with and without the sampler (needs torch, a GPU and no replay)")
        return
    compare(uuid, options.seconds - (time.monotonic() - begin))


if __name__ == "__main__":
    main()
