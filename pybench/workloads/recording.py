# SPDX-License-Identifier: Apache-2.0
"""Measuring the iterations of a workload: warm-up, timing window, energy window, and what they say as a `Result`.

    with Recorder(case, session.device_uuid) as recorder:
        recorder.warm_up(iterate)
        recorder.time(iterate)
        recorder.replay_for_energy(iterate)
    result = recorder.result(Amounts(samples=8))

The timing window is `iterations` long. Where `energy_window_s` is set, the same work is replayed in a window of its
own for that long; else the timing window serves for energy too. Every metric names its window. The board's power limit
and clocks are set before anything is sampled, and put back after it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench import measure
from pybench.case import BOARD_SETTINGS, Case
from pybench.cautions import Caution
from pybench.measure.quantity import Quantity
from pybench.units import GIGA
from pybench.workloads.doubts import BusyWatch, judge_energy, judge_timing, thread_cautions
from pybench.workloads.result import Measured, Result, Verdict

TIMING, ENERGY = "timing", "energy"
ENERGIES = ("gpu_energy", "gpu_net_energy", "cpu_energy")  # what is also told for one sample, token, GB
RATED = ("gpu_energy", "cpu_energy")  # what tokens are also told for a joule of


@dataclass(frozen=True, slots=True)
class Amounts:
    """What one iteration does; 0: nothing of that kind."""

    samples: int = 0
    tokens: int = 0
    copied_bytes: int = 0


class Recorder:
    """One measurement of one process. `times_ns`: int64 [iterations, 2], begin and end of each timed one."""

    def __init__(self, case: Case, device_uuid: str | None) -> None:
        self.case = case
        self.on_gpu = device_uuid is not None
        self.times_ns: npt.NDArray[np.int64] = np.empty((0, 2), np.int64)
        self._board = measure.BoardSettings(device_uuid, {name: getattr(case, name) for name in BOARD_SETTINGS})
        self._session = measure.Session(device_uuid)
        self._cautions: list[Caution] = []
        self._energies: list[Quantity] = []
        self._energy_window = TIMING

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
        self._energies = self._session.energy(self._energy_window)
        self._cautions += self._session.cautions(self._energy_window)

    def warm_up(self, iterate: Callable[[], None]) -> None:
        """Idle power with everything loaded, then the case's warm-up iterations, unmeasured."""
        self._session.idle(measure.IDLE_BEFORE, self.case.idle_window_s)
        for _ in range(self.case.warmup_iterations):
            iterate()

    def time(self, iterate: Callable[[], None]) -> None:
        """The timing window."""
        watch = BusyWatch()
        with self._session.window(TIMING) as window:
            self.times_ns = measure.time_calls(iterate, iterations=self.case.iterations)
            window.iterations = len(self.times_ns)
        self._board.check()
        self._cautions += watch.cautions()

    def replay_for_energy(self, iterate: Callable[[], None]) -> None:
        """The energy window, where the case asks for one of its own."""
        if self.case.energy_window_s <= 0:
            return
        with self._session.window(ENERGY) as window:
            window.iterations = len(measure.time_calls(iterate, iterations=1, minimum_s=self.case.energy_window_s))
        self._board.check()
        self._energy_window = ENERGY

    @property
    def timed_s(self) -> float:
        """From the begin of the first timed iteration to the end of the last."""
        return float(self.times_ns[-1, 1] - self.times_ns[0, 0]) * 1e-9

    def result(self, amounts: Amounts) -> Result:
        """Everything the windows say, after the session has ended."""
        latency = measure.summarise_latency(self.times_ns)
        steady = measure.judge_steadiness(self.times_ns)
        result = Result()
        result.metrics |= self._latency_metrics(latency) | self._throughputs(amounts)
        result.metrics |= self._energy_metrics(amounts)
        result.metrics |= {quantity.name: measured(quantity) for quantity in self._session.memory()}
        result.windows = {
            window.name: {"begin_ns": window.begin_ns, "end_ns": window.end_ns, "iterations": window.iterations}
            for window in self._session.windows
        }
        result.labels = {"steady": steady.label}
        result.measuring = {**self._session.facts(), "board_settings": self._board.facts()}
        result.energy_budget = self._session.energy_budget(self._energy_window)
        result.valid = {
            "timing": judge_timing(latency.p50_s),
            "energy": judge_energy(self._energies, self.on_gpu),
            "precision": Verdict(None),
            "accuracy": Verdict(None),
        }
        result.cautions = [
            *measure.latency_cautions(latency), *steady.cautions(), *self._cautions, *self._board.cautions(),
            *thread_cautions(self.case),
        ]  # fmt: skip
        result.tables["iterations"] = {"begin_ns": self.times_ns[:, 0], "end_ns": self.times_ns[:, 1]}
        self._session.write_channels(result.tables.__setitem__)
        return result

    def _latency_metrics(self, latency: Any) -> dict[str, Measured]:
        values = {"mean": latency.mean_s, "p50": latency.p50_s, "p95": latency.p95_s, "p99": latency.p99_s}
        count = len(self.times_ns)
        return {
            f"latency_{name}_ms": Measured(value=s * 1e3, window=TIMING, samples=count) for name, s in values.items()
        }

    def _throughputs(self, amounts: Amounts) -> dict[str, Measured]:
        count = len(self.times_ns)
        rates = {"throughput_samples_per_s": amounts.samples, "throughput_tokens_per_s": amounts.tokens}
        metrics = {
            name: Measured(value=each * count / self.timed_s, window=TIMING, samples=count)
            for name, each in rates.items()
            if each
        }
        if amounts.copied_bytes:
            copying_s = float((self.times_ns[:, 1] - self.times_ns[:, 0]).sum()) * 1e-9
            moved = amounts.copied_bytes * count
            metrics["bandwidth_gb_per_s"] = Measured(value=moved / GIGA / copying_s, window=TIMING, samples=count)
        return metrics

    def _energy_metrics(self, amounts: Amounts) -> dict[str, Measured]:
        window = next(window for window in self._session.windows if window.name == self._energy_window)
        done = {
            "sample": amounts.samples * window.iterations,
            "token": amounts.tokens * window.iterations,
            "gb": amounts.copied_bytes * window.iterations / GIGA,
        }
        metrics = {}
        for quantity in self._energies:
            metrics[quantity.name] = measured(quantity)
            stem, estimate = quantity.name.removesuffix("_j"), ""
            if stem.endswith("_estimate"):
                stem, estimate = stem.removesuffix("_estimate"), "_estimate"
            for unit, count in done.items():
                if count and stem in ENERGIES and (unit != "gb" or stem.startswith("gpu")):
                    name = f"{stem}_per_{unit}{estimate}_j"
                    metrics[name] = measured(quantity.scaled(name, 1 / count))
            if done["token"] and not estimate and stem in RATED:
                name = f"{stem.removesuffix('_energy')}_tokens_per_s_per_w"
                metrics[name] = _tokens_per_joule(quantity, done["token"])
        return metrics


def record(case: Case, iterate: Callable[[], None], amounts: Amounts, device_uuid: str | None) -> Result:
    """All steps for a workload whose iterations need nothing between the windows."""
    with Recorder(case, device_uuid) as recorder:
        recorder.warm_up(iterate)
        recorder.time(iterate)
        recorder.replay_for_energy(iterate)
    return recorder.result(amounts)


def measured(quantity: Quantity) -> Measured:
    """A quantity as it is stored."""
    estimated = quantity.lower is not None and quantity.upper is not None
    return Measured(
        value=quantity.value,
        window=quantity.window,
        u_standard=quantity.u_within,
        u_absolute=quantity.u_absolute,
        interval=(quantity.lower, quantity.upper) if estimated else None,  # type: ignore[arg-type]
        method=quantity.method,
        reason="; ".join(quantity.reasons) or None,
    )


def _tokens_per_joule(quantity: Quantity, tokens: float) -> Measured:
    """Tokens a second for one watt, which is tokens for one joule; its relative uncertainty is the energy's."""
    if not quantity.value:
        reason = "; ".join(quantity.reasons) or "no energy was counted in the window"
        return Measured(window=quantity.window, method=quantity.method, reason=reason)
    value = tokens / quantity.value
    within, absolute = (
        None if u_j is None else value * u_j / quantity.value for u_j in (quantity.u_within, quantity.u_absolute)
    )
    return Measured(value=value, window=quantity.window, u_standard=within, u_absolute=absolute, method=quantity.method,
                    reason="; ".join(quantity.reasons) or None)  # fmt: skip
