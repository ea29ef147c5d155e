# SPDX-License-Identifier: Apache-2.0
"""The comparison of fed models runs, here on the CPU; its figures need a GPU."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

pytest.importorskip("torch")

from bench.tokenizer import fed

if TYPE_CHECKING:
    from pybench.measurement.feed import TokenFeed

SMALL = [
    "--device=cpu", "--batch=1", "--seq-len=32", "--threads=1", "--model=tinylm-small", "--corpus-limit-bytes=300000",
    "--blocks=3", "--rounds=1", "--turn=2", "--alone=0.1",
]  # fmt: skip


def test_a_path_and_a_copy_of_none_are_compared_with_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fed, "WARM_UP_S", 0.1)
    fed.main(SMALL)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["path"] for row in rows] == ["go_rust", "none"]
    for row in rows:
        ratio, lower, upper = row["throughput_over_none"]
        assert lower <= ratio <= upper
        assert row["turns"] == 2 * 3 * 8
        second, first = row["path_opened_second_first"]
        assert ratio == pytest.approx((second * first) ** 0.5, rel=1e-3)
        for spent in (row["none"], row["in_turn"], *row["alone"]):
            assert 0 < spent["wait_share"] < 0.5
            assert spent["take_us"] == pytest.approx(1e3 * spent["ms_an_iteration"] * spent["wait_share"], rel=0.1)


@pytest.mark.parametrize("first", [0, 1])
def test_whichever_side_is_opened_first_none_is_the_first_side(first: int) -> None:
    options = argparse.Namespace(
        runtime="torch", device="cpu", batch=1, seq_len=32, threads=1, corpus_limit_bytes=300_000
    )
    with contextlib.ExitStack() as stack:
        sides = fed.open_sides("tinylm-small", ("none", "go_rust"), first, options, stack)
        assert [side.feed.corpus.total_bytes > 0 for side in sides] == [False, True]


def test_a_path_that_takes_twice_as_long_has_half_the_throughput() -> None:
    feed = cast("TokenFeed", SimpleNamespace(wait_s=0.0))
    sides = [fed.Side(feed, lambda: time.sleep(0.002)), fed.Side(feed, lambda: time.sleep(0.004))]
    spent = [fed.Spent(), fed.Spent()]
    ratio = fed.block(sides, spent, argparse.Namespace(rounds=2, turn=3))
    assert ratio == pytest.approx(spent[0].ns / spent[1].ns)
    assert 0.3 < ratio < 0.8
    assert [side.iterations for side in spent] == [2 * 4 * 3] * 2


def test_each_side_has_as_many_turns_and_a_straight_drift_and_a_parabola_meet_both_alike() -> None:
    for power in (0, 1, 2):
        first, second = (sum(at**power for at, side in enumerate(fed.ORDER) if side == index) for index in (0, 1))
        assert first == second


def test_the_interval_is_students_on_logarithms() -> None:
    # ln 0.98, ln 1, ln 1.02: mean -0.000200, s 0.020003, t(0.975, 2) 4.302653
    assert fed.interval([0.98, 1.0, 1.02]) == pytest.approx([0.9999, 0.9514, 1.0508], abs=2e-4)


@pytest.mark.parametrize("option", ["--blocks=1", "--turn=0", "--alone=0"])
def test_too_little_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fed.main([*SMALL, option])
    assert "at least" in capsys.readouterr().err
