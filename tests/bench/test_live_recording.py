# SPDX-License-Identifier: Apache-2.0
"""The recorder of live energy campaigns: its schedule, and its files from a replayed board. Its kernels need a GPU."""

from __future__ import annotations

import csv
import math
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.energy import record, schedule
from bench.energy.peers import TimedPeer, open_peers
from pybench import _native

PARTS = 3
FIRST = schedule.KERNEL_SETS["first"]


def read(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_the_parts_together_deal_every_kernel_the_windows_of_the_campaign() -> None:
    dealt = Counter(each[:2] for part in range(PARTS) for each in schedule.deal(part, PARTS, FIRST))
    expected = {(kernel, length): count for length, count in schedule.WINDOWS_PER_KERNEL.items() for kernel in FIRST}
    assert dealt == expected
    totals = {length: count * len(FIRST) for length, count in schedule.WINDOWS_PER_KERNEL.items()}
    assert all(totals[length] >= least for length, least in {0.2: 210, 0.5: 210, 1.0: 64, 5.0: 26}.items())


def test_every_peer_measures_a_third_of_the_windows_of_each_kernel_and_length() -> None:
    dealt = Counter(each for part in range(PARTS) for each in schedule.deal(part, PARTS, FIRST))
    for length, count in schedule.WINDOWS_PER_KERNEL.items():
        for kernel in FIRST:
            shares = [dealt[kernel, length, peer] for peer in schedule.PEERS]
            assert sum(shares) == count
            assert max(shares) - min(shares) <= 2


@pytest.mark.parametrize("seconds", [420.0, 1200.0])
def test_a_part_keeps_to_its_time_and_always_has_its_reference_windows(seconds: float) -> None:
    plan = schedule.plan_part(1, PARTS, seconds, seed=7, kernels=FIRST)
    assert schedule.total_s(plan) <= seconds
    references = Counter(window.kernel for window in plan if window.nominal_s == schedule.REFERENCE_S)
    assert references == dict.fromkeys(FIRST, schedule.REFERENCES)
    assert not any(window.peer for window in plan if window.nominal_s == schedule.REFERENCE_S)
    assert len(plan) > len(FIRST) + 20


def test_the_same_seed_and_part_give_the_same_order_and_another_part_another() -> None:
    first = schedule.plan_part(0, PARTS, 420, seed=1, kernels=FIRST)
    assert first == schedule.plan_part(0, PARTS, 420, seed=1, kernels=FIRST)
    assert first != schedule.plan_part(1, PARTS, 420, seed=1, kernels=FIRST)
    assert first != schedule.plan_part(0, PARTS, 420, seed=2, kernels=FIRST)


def test_a_part_beyond_the_last_is_refused() -> None:
    with pytest.raises(ValueError, match="part 3 of 3"):
        schedule.plan_part(3, PARTS, 420, seed=1, kernels=FIRST)


def test_the_channels_of_a_replayed_board_are_written_in_microseconds_and_si(replayed_gpu: str, tmp_path: Path) -> None:
    device = _native.open_nvml(replayed_gpu).devices()[0]
    origin_ns = _native.monotonic_raw_ns()
    with record.sampling(device, 1.0) as (sampler, counter):
        time.sleep(0.6)
    rows = record.write_channels(tmp_path, sampler, counter, origin_ns)
    tables = {name: read(tmp_path / f"{name}.csv") for name in rows}
    assert {name: len(next(iter(table.values()))) for name, table in tables.items()} == rows
    assert min(rows.values()) > 0
    for name, table in tables.items():
        times_us = np.array(table["t_call_us" if name.startswith("counter") else "t_us"], dtype=np.int64)
        assert np.all(np.diff(times_us) > 0)
        assert times_us[-1] < 100_000_000
    assert rows["counter"] > 4 * rows["counter_session"]
    assert 10 < max(map(float, tables["samples"]["power_w"])) < 1000
    assert 10 < max(map(float, tables["polled"]["power_instant_w"])) < 1000


def test_windows_carry_what_a_peer_measured_and_nan_where_none_did(tmp_path: Path) -> None:
    class Counting:
        version = "1"

        def begin(self, window: str) -> None:
            self.window = window

        def end(self, window: str) -> float:
            assert window == self.window
            return 12.5

    peer = TimedPeer(Counting())
    peer.begin("window 0")
    peer.end()
    windows = [
        recorded("memory", "zeus", peer, [(0.0, 0.0), (9.5, 0.0105), (10.0, 0.2)]),
        recorded("memory", "", None, [(0.0, 0.0), (10.0, 0.201)]),
    ]
    record.write_windows(tmp_path, windows, origin_ns=1_000_000_000)
    table, progress = read(tmp_path / "windows.csv"), read(tmp_path / "progress.csv")
    assert table["start_us"] == ["1000000", "1000000"]
    assert table["end_us"] == ["1200030", "1200030"]
    assert table["device_s"] == ["0.2", "0.201"]
    assert table["zeus_j"] == ["12.5", "nan"]
    assert table["codecarbon_j"] == ["nan", "nan"]
    assert [math.isnan(float(each)) for each in table["peer_begin_s"]] == [False, True]
    assert progress["window"] == ["0", "0", "0", "1", "1"]
    assert progress["iterations"] == ["0", "9.5", "10", "0", "10"]
    assert progress["time_us"] == ["1000000", "1010500", "1200000", "1000000", "1201000"]


def recorded(kernel: str, peer_name: str, peer: TimedPeer | None, marks: list[tuple[float, float]]) -> Any:
    return record.Recorded(
        plan=schedule.PlannedWindow(kernel, 0.2, 1.0, peer_name),
        run=SimpleNamespace(begin_ns=2_000_000_000, end_ns=2_200_030_000, iterations=10),  # type: ignore[arg-type]
        marks=[SimpleNamespace(iterations=done, after_begin_s=at) for done, at in marks],  # type: ignore[misc]
        peer=peer,
    )


def test_peers_that_do_not_run_here_are_named_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zeus", None)
    monkeypatch.setitem(__import__("sys").modules, "codecarbon", None)
    said: list[str] = []
    assert open_peers(0, said.append) == {}
    assert len(said) == 2
    assert said[0].startswith("zeus does not run here: ModuleNotFoundError")
