# SPDX-License-Identifier: Apache-2.0
"""How often each case runs: the plan's number, an entry's own number, and the workload's limit."""

from __future__ import annotations

import pytest

from pybench.case import Case, Repetitions
from pybench.case.repetitions import Stop, StoppingRule

NOOP, OTHER = Case(workload="noop"), Case(workload="noop", iterations=1)
ACCURACY = Case(workload="accuracy", model="digits-cnn", runtime="torch")
MIXED = Repetitions(5, {OTHER.id: 7})


def test_a_number_of_its_own_replaces_the_usual_one() -> None:
    assert [MIXED.of(case) for case in (NOOP, OTHER)] == [5, 7]
    assert MIXED.runs([NOOP, OTHER]) == 12


def test_a_workload_limits_every_number() -> None:
    assert MIXED.of(ACCURACY) == 2
    assert Repetitions(1, {ACCURACY.id: 9}).of(ACCURACY) == 2
    assert Repetitions(1).of(ACCURACY) == 1


def test_there_are_as_many_blocks_as_the_most_frequent_case_has_runs() -> None:
    assert MIXED.blocks([NOOP, OTHER, ACCURACY]) == 7
    assert MIXED.blocks([NOOP]) == 5
    assert MIXED.blocks([ACCURACY]) == 2
    assert MIXED.blocks([]) == 0


@pytest.mark.parametrize(
    ("cases", "text"),
    [([NOOP], "5 repetitions"), ([OTHER, NOOP], "5 or 7 repetitions"), ([NOOP, ACCURACY], "5 repetitions")],
)
def test_the_numbers_are_said_as_the_plan_states_them(cases: list[Case], text: str) -> None:
    assert MIXED.text(cases) == text
    assert Repetitions(1).text(cases) == "1 repetition"


def test_stored_numbers_are_read_again_and_those_of_older_campaigns_too() -> None:
    assert Repetitions.from_json(MIXED.as_json()) == MIXED
    assert Repetitions(4).as_json() == {"repetitions": 4}
    assert Repetitions.from_json({"repetitions": 4, "name": "older"}) == Repetitions(4)


RULE = StoppingRule(60, 1200.0)


def test_a_rule_has_the_largest_number_until_the_campaign_stops() -> None:
    until = Repetitions.until(RULE)
    assert (until.of(NOOP), until.of(ACCURACY), until.text([NOOP]), until.most) == (
        60, 2, "at most 60 repetitions", "at most ",
    )  # fmt: skip
    stopped = until.stopped(Stop(8, "decided"))
    assert (stopped.of(NOOP), stopped.of(ACCURACY), stopped.text([NOOP]), stopped.most) == (8, 2, "8 repetitions", "")
    assert stopped.stopped(None) == until
    assert Repetitions(5).stopped(Stop(3, "decided")) == Repetitions(5)


def test_a_rule_is_stored_as_the_plan_writes_it_and_a_stop_is_not() -> None:
    stored = {"repetitions": 60, "stopping": {"until": "decided", "at_most": 60, "within_s": 1200.0}}
    until = Repetitions.until(RULE)
    assert until.as_json() == until.stopped(Stop(8, "decided")).as_json() == stored
    assert Repetitions.from_json(stored) == until
    with pytest.raises(ValueError, match="until bored"):
        Repetitions.from_json({"repetitions": 60, "stopping": {"until": "bored", "at_most": 60}})


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (Stop(8, "decided"), "stopped after block 8 of at most 60: decided"),
        (Stop(60, "blocks"), "not decided after 60 blocks"),
        (Stop(12, "time"), "not decided within 1200 s: stopped after block 12 of at most 60"),
    ],
)
def test_how_it_stopped_is_one_sentence(stop: Stop, text: str) -> None:
    assert RULE.told(stop) == text
