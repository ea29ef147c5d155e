# SPDX-License-Identifier: Apache-2.0
"""What was read of one board's power over time: every channel as it came, on one clock.

`read_trace` opens a folder of recorded channels (CSV, times in microseconds from a common origin):

    samples.csv   t_us, power_w                                driver's sample buffer (nvmlDeviceGetSamples)
    counter.csv   t_call_us, t_return_us, energy_j             energy counter, both ends of the call
    polled.csv    t_us, power_average_w, power_instant_w       fields 185 and 186
    clocks.csv    t_us, sm_mhz, temperature_c, event_reasons   NVML's clocks event bit mask

Any of them may be absent, or compressed (`samples.csv.gz`). It corrects nothing; what cannot be used at all (repeated
time stamps, failed reads) is left out by the readers of a channel.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from pybench.errors import InputError
from pybench.measure.board.nvml import THROTTLE_BITS

Times = NDArray[np.int64]
Numbers = NDArray[np.float64]

LARGEST_US = 9e15  # 285 years: what int64 nanoseconds hold
NEAREST_NS = (
    1_000_000  # two samples nearer than 1 ms say nothing of power: the lag's inverse blows their noise up by 13
)


@dataclass(frozen=True, slots=True)
class SampleChannel:
    """The driver's own samples: int64 [n] ns of one clock, as stamped; float64 [n] W."""

    time_ns: Times
    power_w: Numbers

    def ordered(self) -> SampleChannel:
        """In order of time, finite, and none repeated: the driver gives a sample twice now and then."""
        order = np.argsort(self.time_ns, kind="stable")
        order = order[np.isfinite(self.power_w[order])]
        time_ns, power_w = self.time_ns[order], self.power_w[order]
        while np.any(near := np.diff(time_ns) < NEAREST_NS):
            # Of a row of near ones every other goes, so that a channel that is dense throughout is thinned, not lost.
            row = np.arange(len(near)) - np.maximum.accumulate(np.where(near, -1, np.arange(len(near))))
            kept = np.concatenate(([True], ~(near & (row % 2 == 1))))
            time_ns, power_w = time_ns[kept], power_w[kept]
        return SampleChannel(time_ns, power_w)


@dataclass(frozen=True, slots=True)
class CounterChannel:
    """The energy counter as read: arrays of one length, in order of time; energy in J is NaN where the read failed."""

    call_ns: Times
    return_ns: Times
    energy_j: Numbers

    def readable(self) -> CounterChannel:
        """Without the failed reads."""
        good = np.isfinite(self.energy_j)
        return CounterChannel(self.call_ns[good], self.return_ns[good], self.energy_j[good])


@dataclass(frozen=True, slots=True)
class PolledChannel:
    """Power fields as polled: int64 [n] ns in order; float64 [n] W each, NaN where a field was not there."""

    time_ns: Times
    instant_w: Numbers
    average_w: Numbers


@dataclass(frozen=True, slots=True)
class StatesSeen:
    """What a board's state was during windows.

    throttling: int64 [m], every bit of THROTTLE_BITS that was set at any time
    most_processes: int64 [m], the largest number of processes on the board (0: not told)
    """

    throttling: NDArray[np.int64]
    most_processes: NDArray[np.int64]

    def throttle_words(self, window: int | np.intp) -> list[str]:
        """In words, what lowered the clocks during one of the windows."""
        return [words for bit, words in THROTTLE_BITS.items() if self.throttling[window] & bit]


@dataclass(frozen=True, slots=True)
class StateChannel:
    """The board's state: int64 [n] ns in order; NVML's clocks event reasons as a bit mask, processes on the board (NaN:
    not told)."""

    time_ns: Times
    throttle_reasons: Numbers
    process_count: Numbers

    def seen(self, begin_ns: Times, end_ns: Times) -> StatesSeen:
        """In each window, and one reading either side of it, so that a short window sees one too."""
        throttling, most_processes = (np.zeros(len(begin_ns), np.int64) for _ in range(2))
        if len(self.time_ns) == 0:
            return StatesSeen(throttling, most_processes)
        first = np.maximum(np.searchsorted(self.time_ns, begin_ns) - 1, 0)
        last = np.minimum(np.searchsorted(self.time_ns, end_ns) + 1, len(self.time_ns))

        def ever(flagged: NDArray[np.bool_]) -> NDArray[np.bool_]:
            so_far = np.concatenate(([0], np.cumsum(flagged)))
            inside: NDArray[np.bool_] = so_far[last] > so_far[first]
            return inside

        mask = np.nan_to_num(self.throttle_reasons).astype(np.int64)
        for bit in THROTTLE_BITS:
            throttling |= np.where(ever(mask & bit != 0), bit, 0)
        for count in np.unique(self.process_count[np.isfinite(self.process_count)]):  # in rising order
            most_processes[ever(self.process_count == count)] = round(count)
        return StatesSeen(throttling, most_processes)


_NO_TIMES, _NO_NUMBERS = np.empty(0, np.int64), np.empty(0, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """All channels of one board. A channel that was not recorded is empty."""

    samples: SampleChannel = SampleChannel(_NO_TIMES, _NO_NUMBERS)
    counter: CounterChannel = CounterChannel(_NO_TIMES, _NO_TIMES, _NO_NUMBERS)
    polled: PolledChannel = PolledChannel(_NO_TIMES, _NO_NUMBERS, _NO_NUMBERS)
    states: StateChannel = StateChannel(_NO_TIMES, _NO_NUMBERS, _NO_NUMBERS)


def read_trace(folder: Path) -> Trace:
    """The channels of a recorded folder. Raises InputError, naming file and line, for what cannot be read."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder", hint="give a folder with samples.csv and counter.csv")
    samples = read_columns(folder / "samples.csv", ("t_us", "power_w"))
    counter = read_columns(folder / "counter.csv", ("t_call_us", "t_return_us", "energy_j"))
    polled = read_columns(folder / "polled.csv", ("t_us", "power_average_w", "power_instant_w"))
    clocks = read_columns(folder / "clocks.csv", ("t_us", "event_reasons"))
    if samples is None and counter is None and polled is None:
        raise InputError(
            f"{folder}: no power was recorded in this folder", hint="it needs samples.csv, counter.csv or polled.csv"
        )
    channels: dict[str, SampleChannel | CounterChannel | PolledChannel | StateChannel] = {}
    if samples is not None:
        channels["samples"] = SampleChannel(to_ns(samples["t_us"]), samples["power_w"])
    if counter is not None:
        channels["counter"] = CounterChannel(
            to_ns(counter["t_call_us"]), to_ns(counter["t_return_us"]), counter["energy_j"]
        )
    if polled is not None:
        channels["polled"] = PolledChannel(to_ns(polled["t_us"]), polled["power_instant_w"], polled["power_average_w"])
    if clocks is not None:
        unknown = np.full(len(clocks["t_us"]), np.nan)
        channels["states"] = StateChannel(to_ns(clocks["t_us"]), clocks["event_reasons"], unknown)
    return Trace(**channels)  # type: ignore[arg-type]


def seconds_since(origin_ns: int, times_ns: Times) -> Numbers:
    """Times of the clock as seconds after `origin_ns`."""
    return np.asarray((times_ns - origin_ns) * 1e-9, np.float64)


def to_ns(microseconds: Numbers) -> Times:
    """Whole nanoseconds."""
    return np.round(microseconds * 1000).astype(np.int64)


def read_columns(path: Path, names: tuple[str, ...], *, in_order: bool = True) -> dict[str, Numbers] | None:
    """Columns of a CSV file, or of the same compressed (`path`.gz), as float64, NaN for an empty cell; None without it.

    The first column is a time, as is every other that ends in `_us`: those have no empty cell, and with `in_order` the
    first never goes back. Raises InputError, naming file and line, for anything else.
    """
    if not path.is_file():
        path = path.with_name(path.name + ".gz")
        if not path.is_file():
            return None
    lines: list[int] = []
    values: list[list[float]] = []
    with _opened(path) as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        missing = [name for name in names if name not in header]
        if missing:
            raise InputError(
                f"{path}: no column {', '.join(missing)}", hint=f"the columns needed are {', '.join(names)}"
            )
        places = [header.index(name) for name in names]
        for row in rows:
            if not row:
                continue
            try:
                if len(row) != len(header):
                    raise ValueError(f"{len(row)} cells under {len(header)} columns")
                values.append([float(row[place]) if row[place].strip() else np.nan for place in places])
            except ValueError as error:
                raise InputError(f"{path}:{rows.line_num}: {error}", hint="every cell must be a number") from error
            lines.append(rows.line_num)
    table = np.array(values, np.float64).reshape(-1, len(names))
    for column, name in enumerate(names):
        if column == 0 or name.endswith("_us"):
            for row_index in np.flatnonzero(~(np.abs(table[:, column]) < LARGEST_US)):
                raise InputError(f"{path}:{lines[row_index]}: {name} is no time", hint="microseconds, as a number")
    for row_index in np.flatnonzero(np.diff(table[:, 0]) < 0) if in_order else ():
        raise InputError(f"{path}:{lines[row_index + 1]}: {names[0]} goes back", hint="sort the file by time")
    return {name: table[:, index] for index, name in enumerate(names)}


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file's text. Raises InputError where it cannot be read, also while it is being read."""
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", newline="", encoding="utf-8-sig", errors="replace") as file:
            yield file
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise InputError(f"{path}: {error}", hint="it should be a CSV file, as text or compressed by gzip") from error
