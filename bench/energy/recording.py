# SPDX-License-Identifier: Apache-2.0
"""A recorded part as `record.py` writes it, or any folder with at least samples, counter and windows in those columns.

A file may be compressed (NAME.csv.gz). What a folder lacks is empty, or NaN in a column.
"""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pybench import _native
from pybench.errors import InputError
from pybench.measure.energy.gpu_sampler import COUNTER_INTERVAL_S
from pybench.measure.energy.trace import (
    CounterChannel,
    Numbers,
    PolledChannel,
    Times,
    Trace,
    read_columns,
    read_trace,
    to_ns,
)

POLLS_APART_NS = 100_000_000  # as papers and tools poll
VISITS_APART_NS = round(COUNTER_INTERVAL_S * 1e9)
TRACK_NS = 100_000_000  # as a session tracks when it begins
TUNING, REPORTED = "tuning", "reported"
HALVES = (TUNING, REPORTED)


@dataclass(frozen=True)
class Windows:
    """One array entry a window: begin and end on the trace's clock, the work done, and what other tools said in J."""

    kernel: NDArray[np.str_]
    nominal_s: Numbers
    begin_ns: Times
    end_ns: Times
    iterations: Numbers
    peers_j: dict[str, Numbers]

    def of_half(self, half: str) -> NDArray[np.bool_]:
        """Windows with an odd number (from 0) are for tuning, the others are reported; `all` means both."""
        odd: NDArray[np.bool_] = np.arange(len(self.begin_ns)) % 2 == 1
        return odd if half == TUNING else ~odd if half == REPORTED else np.ones(len(odd), bool)


@dataclass(frozen=True)
class Recording:
    """`board`: recordings with the same one may be judged together. `progress`: for each window times in s and the
    iterations done by then."""

    name: str
    board: str
    trace: Trace
    windows: Windows
    progress: list[tuple[Numbers, Numbers]]

    def edges_ns(self, chosen: NDArray[np.bool_]) -> Times:
        """Begin and end of the chosen windows, int64 [n, 2], in order of time."""
        edges = np.stack([self.windows.begin_ns[chosen], self.windows.end_ns[chosen]], axis=1)
        return np.asarray(edges[np.argsort(edges[:, 0])], np.int64)

    def with_session_counter(self) -> Trace:
        """With only those readings of the counter that a session of pybench would have made: when its schedule is due,
        and just outside both edges of each window. Recorded readings are 7 ms apart, so they come as much later.
        """
        dense = self.trace.counter
        edges = np.unique(np.concatenate(self.edge_readings()))
        schedule = _native.CounterSchedule(VISITS_APART_NS)
        schedule.track(int(dense.call_ns[0]), int(dense.call_ns[0]) + TRACK_NS)
        chosen, last, edge = [], -1, 0
        while True:
            due = max(int(np.searchsorted(dense.call_ns, schedule.due_ns)), last + 1)
            is_edge = edge < len(edges) and edges[edge] <= due
            last = int(edges[edge]) if is_edge else due
            edge += is_edge
            if last >= len(dense.call_ns):
                break
            chosen.append(last)
            reading = (int(dense.call_ns[last]), int(dense.return_ns[last]), 1e3 * float(dense.energy_j[last]))
            schedule.note(*reading, not is_edge)
        seldom = CounterChannel(dense.call_ns[chosen], dense.return_ns[chosen], dense.energy_j[chosen])
        return replace(self.trace, counter=seldom)

    def edge_readings(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each window, the last reading of the counter that ends before it and the first that begins after it."""
        counter = self.trace.counter
        before = np.searchsorted(counter.return_ns, self.windows.begin_ns, side="right") - 1
        after = np.searchsorted(counter.call_ns, self.windows.end_ns)
        last = len(counter.call_ns) - 1
        return np.clip(before, 0, last), np.clip(after, 0, last)

    def polled_at_10_hz(self) -> Trace:
        """With only as many polls as a poller at 10 Hz would have made."""
        polled = self.trace.polled
        if len(polled.time_ns) == 0:
            return self.trace
        slots = (polled.time_ns - polled.time_ns[0]) // POLLS_APART_NS
        first = np.concatenate(([True], np.diff(slots) > 0))
        thinned = PolledChannel(polled.time_ns[first], polled.instant_w[first], polled.average_w[first])
        return replace(self.trace, polled=thinned)


def read_recording(folder: Path) -> Recording:
    """Raises InputError, naming the file, where samples, counter or windows are missing or cannot be read."""
    trace = read_trace(folder)
    if len(trace.samples.time_ns) == 0 or len(trace.counter.call_ns) == 0:
        raise InputError(f"{folder}: no samples or no counter", hint="a recording to compare needs both")
    windows = _read_windows(folder)
    meta = folder / "meta.json"
    board = json.loads(meta.read_text())["uuid"] if meta.is_file() else folder.name
    return Recording(folder.name, board, trace, windows, _read_progress(folder, windows))


def _read_windows(folder: Path) -> Windows:
    path = folder / "windows.csv"
    compressed = folder / "windows.csv.gz"
    if path.is_file():
        text = path.read_text()
    elif compressed.is_file():
        text = gzip.decompress(compressed.read_bytes()).decode()
    else:
        raise InputError(f"{path}: no such file", hint="energy is judged by the work done in windows")
    rows = list(csv.DictReader(text.splitlines()))

    def numbers(name: str) -> Numbers:
        return np.array([float(row.get(name) or "nan") for row in rows])

    return Windows(
        np.array([row.get("kernel", "the kernel") for row in rows]),
        numbers("nominal_s"),
        to_ns(numbers("start_us")),
        to_ns(numbers("end_us")),
        numbers("iterations"),
        {"Zeus": numbers("zeus_j"), "CodeCarbon": numbers("codecarbon_j")},
    )


def _read_progress(folder: Path, windows: Windows) -> list[tuple[Numbers, Numbers]]:
    marks = read_columns(folder / "progress.csv", ("time_us", "window", "iterations"))
    if marks is not None:
        of_window = [marks["window"] == number for number in range(len(windows.begin_ns))]
        return [(marks["time_us"][mine] * 1e-6, marks["iterations"][mine]) for mine in of_window]
    edges_s = np.stack([windows.begin_ns, windows.end_ns], axis=1) * 1e-9
    return [(edge_s, np.array([0.0, done])) for edge_s, done in zip(edges_s, windows.iterations, strict=True)]
