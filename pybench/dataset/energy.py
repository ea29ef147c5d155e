# SPDX-License-Identifier: Apache-2.0
"""What a run stored about the energy of its GPU board, typed: the budget (energy.json) and the power channels as read.

The budget of every run is read with the campaign; channels are large and read for the runs that are drawn. Format:
docs/formats/rundir.md. Nothing is computed here: `pybench.analysis.findings.joules` and `.power` do that.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.energy import WINDOW_FIELDS
from pybench.campaign.layout import ENERGY_COUNTER, POWER_POLLED, POWER_SAMPLES
from pybench.catalogue.reasons import Reason, reason_from_text
from pybench.errors import CorruptError

Numbers = NDArray[np.float64]

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyWindow:
    """One window of energy.json. Times are seconds after the session's begin; `u_...` standard uncertainties;
    `parts_j` add in squares to `u_within_j`; `plain_j`: method -> what it says of the same window."""

    window: str
    begin_s: float
    end_s: float
    iterations: int
    method: str
    scope: str
    energy_j: float | None
    u_within_j: float | None
    u_absolute_j: float | None
    parts_j: Mapping[str, float | None]
    valid: bool
    reasons: tuple[Reason, ...]
    plain_j: Mapping[str, float | None]
    idle_before_w: float | None
    idle_after_w: float | None
    net_j: float | None = None
    u_net_j: float | None = None
    tail_j: float | None = None
    u_tail_j: float | None = None
    tail_end_s: float | None = None

    @classmethod
    def of(cls, stored: Sequence[Any]) -> EnergyWindow:
        """The values of `WINDOW_FIELDS` as energy.json has them."""
        values = dict(zip(WINDOW_FIELDS, stored, strict=True))
        return cls(**values | {"reasons": tuple(map(reason_from_text, values["reasons"]))})


@dataclass(frozen=True, slots=True)
class RunEnergy:
    """energy.json of one run.

    directory: of the run
    sensor: the profile as stored
    windows: those whose energy was stored
    spans: name of every window of the run -> (begin, end) in seconds after the session's begin
    power_limit_w: of the board, as the run found it; None: it was not stored
    """

    directory: RunDirectory
    sensor: Mapping[str, Any]
    windows: tuple[EnergyWindow, ...]
    spans: Mapping[str, tuple[float, float]]
    power_limit_w: float | None = None


class BoardEnergies(Mapping[tuple[str, int], RunEnergy]):
    """(case id, block) -> energy.json of that run, checked when it was read, made of bytes each time it is asked for.

    A report shows one run of each case. The objects of all runs would take a third of the memory of a dataset.
    """

    def __init__(self, campaign: CampaignDirectory) -> None:
        self._campaign = campaign
        self._kept: dict[tuple[str, int], tuple[int, Mapping[str, Any], bytes]] = {}
        """(attempt, sensor, windows with spans and limit)"""

    def add(self, directory: RunDirectory, sensor: Mapping[str, Any], rest: list[Any]) -> None:
        """What `pybench.campaign.energy.check_energy` found of a run. `sensor`: shared by runs; `rest`: its windows,
        spans and limit."""
        self._kept[directory.case_id, directory.block] = (directory.attempt, sensor, marshal.dumps(rest))

    def extend(self, other: BoardEnergies) -> None:
        self._kept |= other._kept

    def __getitem__(self, key: tuple[str, int]) -> RunEnergy:
        attempt, sensor, rest = self._kept[key]
        windows, spans, limit_w = marshal.loads(rest)
        directory = self._campaign.attempt(*key, attempt)
        times = {name: (begin_s, end_s) for name, (begin_s, end_s) in spans.items()}
        return RunEnergy(directory, sensor, tuple(map(EnergyWindow.of, windows)), times, limit_w)

    def first(self, key: tuple[str, int], *names: str) -> tuple[Any, ...]:
        """Fields of the first window of a run, as energy.json has them."""
        (window, *_), *_ = marshal.loads(self._kept[key][-1])
        return tuple(window[WINDOW_FIELDS.index(name)] for name in names)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


@dataclass(frozen=True, slots=True)
class PowerRecording:
    """The power channels of one run: float64 in order of time, in s after the session's begin, in W and in joules.

    A channel that was not recorded is empty; failed readings are left out. `counter_s`: [n, 2], call and return."""

    samples_s: Numbers
    samples_w: Numbers
    instant_s: Numbers
    instant_w: Numbers
    counter_s: Numbers
    counter_j: Numbers


def read_recording(directory: RunDirectory) -> PowerRecording:
    """The power channels of a run. Raises CorruptError, naming the file, for one that cannot be read."""
    samples_s, samples_w = _read_channel(directory.file(POWER_SAMPLES), "power_w")
    instant_s, instant_w = _read_channel(directory.file(POWER_POLLED), "power_instant_w")
    counter_s, counter_j = _read_channel(directory.file(ENERGY_COUNTER), "energy_j")
    return PowerRecording(samples_s[:, 1], samples_w, instant_s.mean(axis=1), instant_w, counter_s, counter_j)


def _read_channel(file: Path, value: str) -> tuple[Numbers, Numbers]:
    """Begin and end of each reading, float64 [n, 2] s, and its value, [n]; those without a value are left out.

    No readings without the file. An instant begins and ends at once.
    """
    if not file.exists():
        return np.empty((0, 2)), np.empty(0)
    try:
        table = pl.read_csv(file, infer_schema=False)  # other columns may be of any kind
        times_s = _times_s(table)
        values = table[value].cast(pl.Float64).to_numpy()
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise CorruptError(f"{file} cannot be read: {str(error).splitlines()[0]}") from error
    kept = np.isfinite(times_s).all(axis=1) & np.isfinite(values)
    return times_s[kept], values[kept]


def _times_s(table: pl.DataFrame) -> Numbers:
    """Begin and end of each row; a table of an older pybench has them, and one of now has gaps and lengths.

    Raises PolarsError for a table that has neither, text in their place, or a row without a gap: the times of all rows
    after it would be lost.
    """
    older = [name for name in ("call_s", "time_s", "return_s") if name in table.columns]
    if older:
        times_s: Numbers = table.select(pl.col(older[0], older[-1]).cast(pl.Float64)).to_numpy()
        return times_s[:, [0, -1]]
    intervals = table.select(pl.col(name).cast(pl.Int64) for name in ("gap_ns", "call_ns") if name in table.columns)
    if any(intervals.null_count().row(0)):
        raise pl.exceptions.NoDataError("a row without a gap or a length")
    gap_ns = intervals["gap_ns"].to_numpy()
    length_ns = intervals["call_ns"].to_numpy() if "call_ns" in table.columns else np.zeros_like(gap_ns)
    end_ns = np.cumsum(gap_ns + length_ns)
    return np.column_stack((end_ns - length_ns, end_ns)) / _NS_PER_S  # in numpy: polars rounds a quotient twice
