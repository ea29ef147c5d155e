# SPDX-License-Identifier: Apache-2.0
"""Measuring the iterations of a workload: warm-up, timing window, energy window, and what they say as a `Result`.

    with Recorder(case, session.device_uuid, sensors=request.sensors) as recorder:
        recorder.warm_up(work)                  # a callable, or a measure.Replayer
        recorder.time(work)
        recorder.replay_for_energy(work)
    result = recorder.result(Amounts(samples=8))

The timing window is `iterations` long. Work that is replayed several deep is timed once more one at a time, in a window
of its own and under metrics of its own. Where `energy_window_s` is set, the same work is replayed in a window of its
own for that long; else the timing window serves for energy too. A part of the work can have a window, with energies per
what the part does. What a replayer does before each iteration is in no time of it. That is repeated alone in a window,
and its energy there is taken off that of the iterations. Every metric names its window. The board's power limit and
clocks are set before anything is sampled, and put back after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType

from pybench import measure
from pybench.case import Case
from pybench.case.factors import BOARD_SETTINGS
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.metrics import Amount
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.units import GIGA
from pybench.measure.quantity import Quantity
from pybench.measure.timing.cpu_time import own_cpu_s
from pybench.measure.timing.latency import LatencySummary
from pybench.measurement.doubts import BusyWatch, judge_energy, judge_timing, thread_cautions, weakest
from pybench.measurement.result import Result, Validity
from pybench.processes import usable_cpus

TIMING, ALONE, ENERGY, BEFORE = "timing", "timing_depth1", "energy", "before"
# trtexec warns from here on (samples/common/sampleReporting.cpp): the host then decides how fast the GPU is fed.
HOST_BOUND_SHARE = 0.8
OVERLOADED_SHARE = 0.95  # of the window in which something ran, with arrivals that do not wait for it


@dataclass(frozen=True, slots=True)
class Amounts:
    """What one iteration does; 0: nothing of that kind."""

    samples: int = 0
    tokens: int = 0
    copied_bytes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def of(self, iterations: int) -> dict[Amount, float]:
        """What so many iterations do."""
        return {
            "sample": self.samples * iterations,
            "token": self.tokens * iterations,
            "input_token": self.input_tokens * iterations,
            "output_token": self.output_tokens * iterations,
            "gb": self.copied_bytes * iterations / GIGA,
        }


Work = measure.Replayer | Callable[[], object]
Sensors = Mapping[str, measure.SensorProfile]


class Recorder:
    """One measurement of one process. `sensors`: what is known of the power sensors of GPUs, by UUID; `seed`: of
    arrivals at random. `times`: of the timed iterations, once there are.
    """

    def __init__(self, case: Case, device_uuid: str | None, *, sensors: Sensors | None = None, seed: int = 0) -> None:
        self.case = case
        self.on_gpu = device_uuid is not None
        self._board = measure.BoardSettings(device_uuid, {name: getattr(case, name) for name in BOARD_SETTINGS})
        self.times: measure.Times = measure.NO_TIMES
        self.alone: measure.Times | None = None
        self._arrivals = measure.Arrivals(case.arrivals, case.arrival_rate_per_s, seed)  # type: ignore[arg-type]
        self._session = measure.MeasuringSession(
            device_uuid, profile=(sensors or {}).get(device_uuid or "", measure.ASSUMED)
        )
        self._cautions: list[Caution] = []
        self._slow_energies: dict[str, Quantity] = {}
        self._energies: dict[str, dict[str, Quantity]] = {}  # by window
        self._energy_window = TIMING
        self._parts: dict[str, Amounts] = {}  # by window, what one iteration of it does
        self._is_apart = False  # whether something stands before each iteration
        self._cores = 0.0  # in use, on average over the timing window

    def __enter__(self) -> Recorder:
        with ExitStack() as entered:
            entered.enter_context(self._board)
            entered.enter_context(self._session)
            self._entered = entered.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._entered.__exit__(kind, error, traceback)
            return
        with self._entered:
            self._session.idle(measure.IDLE_AFTER, self.case.idle_window_s)
        self._slow_energies = self._session.slow_energies(TIMING, self.times)
        self._energies = {name: self._session.energy(name) for name in self._windows_of_energy}
        if self._is_apart:
            self._energies[self._energy_window] = self._session.energy_without(self._energy_window, BEFORE)
        for name in self._windows_of_energy:
            known = {(caution.code, caution.metric) for caution in self._cautions}
            found = self._session.cautions(name)
            self._cautions += [caution for caution in found if (caution.code, caution.metric) not in known]

    def warm_up(self, work: Work) -> None:
        """Idle power with everything loaded, then the case's warm-up iterations, unmeasured."""
        self._session.idle(measure.IDLE_BEFORE, self.case.idle_window_s)
        measure.as_replayer(work).replay(self.case.warmup_iterations)

    def measure_part(self, name: str, work: Work, amounts: Amounts) -> None:
        """A window for a part of the work, repeated in a closed loop: as long as the energy window, or where the case
        asks for none, `iterations` long. It comes before `time`, for what follows the last window is rest."""
        self._repeat(name, measure.as_replayer(work))
        self._parts[name] = amounts

    def _repeat(self, name: str, replayer: measure.Replayer) -> None:
        with self._session.window(name) as window:
            seconds = self.case.energy_window_s
            window.iterations = len(replayer.replay(1 if seconds > 0 else self.case.iterations, seconds))
        self._board.check()

    def time(self, work: Work) -> None:
        """The timing window; and, for work that a closed loop replays several deep, one of it alone."""
        replayer, watch = measure.as_replayer(work), BusyWatch()
        if replayer.before is not None:
            self._repeat(BEFORE, replayer.before)
            self._is_apart = True
        with self._session.window(TIMING) as window:
            begin_ns, begin_cpu_s = measure.monotonic_ns(), own_cpu_s()
            self.times = replayer.replay(self.case.iterations, arrivals=self._arrivals)
            window.iterations = len(self.times)
            self._cores = (own_cpu_s() - begin_cpu_s) / measure.seconds_since(begin_ns)
        self._board.check()
        if replayer.depth > 1 and self.times.due_ns is None:
            with self._session.window(ALONE) as window:
                self.alone = replayer.replay(self.case.iterations, depth=1)
                window.iterations = len(self.alone)
        self._cautions += watch.cautions()

    def replay_for_energy(self, work: Work) -> None:
        """The energy window, where the case asks for one of its own."""
        if self.case.energy_window_s <= 0:
            return
        with self._session.window(ENERGY) as window:
            replayer = measure.as_replayer(work)
            window.iterations = len(replayer.replay(1, self.case.energy_window_s, arrivals=self._arrivals))
        self._board.check()
        self._energy_window = ENERGY

    @property
    def _windows_of_energy(self) -> tuple[str, ...]:
        """The one that the run's energy is of, that of what is taken off it, then those of parts."""
        return (self._energy_window, *((BEFORE,) if self._is_apart else ()), *self._parts)

    @property
    def timed_s(self) -> float:
        """From the begin of the first timed iteration to the end of the last."""
        return self.times.span_s

    def result(self, amounts: Amounts) -> Result:
        """Everything the windows say, after the session has ended."""
        latency = measure.summarise_latency(self.times.latency_ns)
        steady = measure.judge_steadiness(self.times.latency_ns)
        result = Result()
        result.metrics |= self._latency_metrics(latency) | self._throughputs(amounts)
        result.metrics |= self._energy_metrics(amounts)
        result.metrics |= self._energy_delays(result.metrics)
        result.metrics |= self._session.memory()
        how = "processor time of the worker, its sampler included, and of what it has started"
        result.metrics["cpu_cores_ratio"] = Quantity(value=self._cores, window=TIMING, method=how)
        share = min(self._cores / usable_cpus(), 1.0)  # of clocks that are read one after another
        result.metrics["cpu_utilisation_ratio"] = Quantity(value=share, window=TIMING, method=how)
        if (utilisation := self._session.gpu_utilisation(self._energy_window)) is not None:
            result.metrics["gpu_utilisation_ratio"] = utilisation
        result.windows = {
            window.name: {"begin_ns": window.begin_ns, "end_ns": window.end_ns, "iterations": window.iterations}
            for window in self._session.windows
        }
        result.labels = {"steady": steady.label, "latency": self.times.definition, "arrivals": self._arrivals.title}
        result.measuring = {**self._session.facts(), "board_settings": self._board.facts()}
        result.energy_budget = self._session.energy_budget(*self._windows_of_energy)
        result.valid = {
            "timing": judge_timing(latency.p50_s),
            "energy": weakest(judge_energy(energies, self.on_gpu) for energies in self._energies.values()),
            "precision": Validity(None),
            "accuracy": Validity(None),
        }
        result.cautions = [
            *measure.latency_cautions(latency),
            *steady.cautions(),
            *pace_cautions(self.times, latency),
            *self._cautions,
            *self._board.cautions(),
            *thread_cautions(self.case),
        ]
        result.tables["iterations"] = self.times.columns(result.windows[TIMING]["begin_ns"])
        self._describe_core(result)
        if self.alone is not None:
            self._describe_alone(self.alone, result)
        self._session.write_channels(result.tables.__setitem__)
        return result

    def _latency_metrics(self, latency: LatencySummary) -> dict[str, Quantity]:
        values = {"mean": latency.mean_s, "p50": latency.p50_s, "p95": latency.p95_s, "p99": latency.p99_s}
        count, method = len(self.times), self.times.definition
        metrics = {
            f"latency_{name}_ms": Quantity(value=s * 1e3, window=TIMING, samples=count, method=method)
            for name, s in values.items()
        }
        if self.times.enqueue_ns is not None:
            enqueue_s = measure.summarise_latency(self.times.enqueue_ns).p50_s
            metrics["enqueue_p50_ms"] = Quantity(value=enqueue_s * 1e3, window=TIMING, samples=count)
        return metrics

    def _describe_core(self, result: Result) -> None:
        """How fast the core was that called the iterations, where it was probed."""
        probes_ns = self.times.probes_ns
        if probes_ns is None:
            return
        speed = measure.summarise_probes(probes_ns)
        if speed is None:
            why = Reason(ReasonCode.NOTHING_COUNTED, "each iteration was due when the one before ended")
            result.metrics["core_probe_mean_ms"] = Quantity(window=TIMING, reasons=(why,))
            return
        result.metrics["core_probe_mean_ms"] = Quantity(
            value=speed.mean_s * 1e3,
            window=TIMING,
            samples=speed.probes,
            method=f"without {speed.interrupted} that were interrupted",
        )
        result.cautions += speed.cautions()
        begin_ns, end_ns = probes_ns.T
        result.tables["core_probes"] = {"begin_ns": begin_ns, "end_ns": end_ns}

    def _describe_alone(self, alone: measure.Times, result: Result) -> None:
        """One replay at a time, as the host sees it: what a caller waits who has nothing else in flight."""
        latency = measure.summarise_latency(alone.host_ns)
        steady = measure.judge_steadiness(alone.host_ns)
        for name, seconds in (("p50", latency.p50_s), ("p99", latency.p99_s)):
            result.metrics[f"latency_depth1_{name}_ms"] = Quantity(
                value=seconds * 1e3,
                window=ALONE,
                samples=len(alone),
                method="from the launch until the host saw the end",
            )
        result.labels["steady_depth1"] = steady.label
        result.cautions += steady.cautions("latency_depth1_p50_ms")
        result.tables["iterations_depth1"] = alone.columns(result.windows[ALONE]["begin_ns"])

    def _throughputs(self, amounts: Amounts) -> dict[str, Quantity]:
        count = len(self.times)
        rates = {"throughput_samples_per_s": amounts.samples, "throughput_tokens_per_s": amounts.tokens}
        metrics = {
            name: Quantity(value=each * count / self.timed_s, window=TIMING, samples=count)
            for name, each in rates.items()
            if each
        }
        if amounts.copied_bytes:
            copying_s = float((self.times.end_ns - self.times.begin_ns).sum()) * 1e-9
            moved = amounts.copied_bytes * count
            metrics["bandwidth_gb_per_s"] = Quantity(value=moved / GIGA / copying_s, window=TIMING, samples=count)
        return metrics

    def _energy_metrics(self, amounts: Amounts) -> dict[str, Quantity]:
        windows = {window.name: window for window in self._session.windows}
        metrics = self._energies[self._energy_window] | self._slow_energies
        for name, each in {self._energy_window: amounts, **self._parts}.items():
            energies, done = self._energies[name], each.of(windows[name].iterations)
            for metric in self.case.catalogue.metrics.values():
                count = done[metric.per] if metric.per is not None and metric.of in energies else 0
                if count and metric.of is not None:
                    energy = energies[metric.of]
                    metrics[metric.name] = energy.inverse(count) if metric.is_inverse else energy.scaled(1 / count)
        return metrics

    def _energy_delays(self, found: Mapping[str, Quantity]) -> dict[str, Quantity]:
        """Energy-delay products of those energies and latencies that are found, in J s."""
        rows = [row for row in self.case.catalogue.metrics.values() if row.energy in found and row.delay in found]
        return {row.name: found[str(row.energy)].times(found[str(row.delay)], factor=1e-3) for row in rows}


def record(
    case: Case,
    work: Work,
    amounts: Amounts,
    device_uuid: str | None,
    *,
    sensors: Sensors | None = None,
    seed: int = 0,
) -> Result:
    """All steps for a workload whose iterations need nothing between the windows."""
    with Recorder(case, device_uuid, sensors=sensors, seed=seed) as recorder:
        recorder.warm_up(work)
        recorder.time(work)
        recorder.replay_for_energy(work)
    return recorder.result(amounts)


def pace_cautions(times: measure.Times, latency: LatencySummary) -> list[Caution]:
    """Doubts about how the work was fed: a host as slow as the GPU, arrivals faster than the work."""
    cautions = []
    if times.due_ns is not None and times.busy_share > OVERLOADED_SHARE:
        detail = f"busy for {times.busy_share:.0%} of the window"
        cautions.append(Caution(CautionCode.OVERLOADED, detail, "latency_mean_ms"))
    if times.due_ns is None and times.enqueue_ns is not None:
        enqueue_s = measure.summarise_latency(times.enqueue_ns).p50_s
        if enqueue_s > HOST_BOUND_SHARE * latency.p50_s:
            detail = f"launches took {enqueue_s * 1e3:.3g} ms, the GPU {latency.p50_s * 1e3:.3g} ms (medians)"
            cautions.append(Caution(CautionCode.HOST_BOUND, detail, "throughput_samples_per_s"))
    return cautions
