# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from pybench.case import Case, Repetitions
from pybench.errors import UsageError
from pybench.runner.schedule import Shard, block_order, parse_shard, planned_runs, run_seed
from tests.runner.conftest import noop_cases


def test_every_block_holds_every_case_once() -> None:
    cases = noop_cases(9)
    for block in range(1, 6):
        assert sorted(case.id for case in block_order(cases, 1, block)) == sorted(case.id for case in cases)


def test_the_order_depends_on_seed_and_block_and_not_on_the_order_of_the_plan() -> None:
    cases = noop_cases(9)
    assert block_order(cases, 1, 1) == block_order(cases[::-1], 1, 1)
    assert block_order(cases, 1, 1) != block_order(cases, 1, 2)
    assert block_order(cases, 1, 1) != block_order(cases, 2, 1)


def test_the_order_is_the_same_on_every_machine() -> None:
    """A change of these digits would reorder campaigns that are half done."""
    assert run_seed(20260101, "ab" * 32, 3) == 5062374132571360459
    assert [case.iterations for case in block_order(noop_cases(5), 20260101, 1)] == [5, 1, 2, 4, 3]


def test_each_case_comes_first_about_equally_often() -> None:
    cases = noop_cases(4)
    first = [block_order(cases, 5, block)[0].iterations for block in range(1, 401)]
    assert all(70 <= first.count(number) <= 130 for number in (1, 2, 3, 4))  # 100 expected, sd 8.7


def test_shards_keep_whole_blocks_and_share_all_of_them() -> None:
    cases = noop_cases(3)
    shards = [list(planned_runs(cases, 1, Repetitions(7), Shard(index, 3))) for index in (1, 2, 3)]
    whole = list(planned_runs(cases, 1, Repetitions(7)))
    assert sorted((run.case.id, run.block) for shard in shards for run in shard) == sorted(
        (run.case.id, run.block) for run in whole
    )
    assert not {run.block for run in shards[0]} & {run.block for run in shards[1]}


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/2", ""])
def test_a_malformed_shard_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="not of the form I/N"):
        parse_shard(text)


def test_accuracy_runs_twice_however_many_repetitions_there_are() -> None:
    accuracy = Case(workload="accuracy", model="digits-cnn", runtime="torch")
    blocks = [run.block for run in planned_runs([accuracy, *noop_cases(1)], 1, Repetitions(5)) if run.case == accuracy]
    assert blocks == [1, 2]
    assert len(list(planned_runs([accuracy], 1, Repetitions(1)))) == 1
