# SPDX-License-Identifier: Apache-2.0
"""Facts of environments are counted as texts, in the order in which they come."""

from __future__ import annotations

from pybench.dataset.environments import EnvironmentFacts

FIRST = {"host": "a", "load_average": [0.5, 1.0], "gpu": {"name": "H200", "begin_ns": 5, "limit_w": None}}
SECOND = {"cpu": "EPYC", "gpu": {"name": "H200", "limit_w": 700.0}, "host": "b"}


def test_facts_are_counted_without_clocks_and_without_what_is_unknown() -> None:
    facts = EnvironmentFacts()
    facts.add(FIRST)
    facts.add(SECOND)
    facts.finish()
    assert {name: dict(counts) for name, counts in facts.items()} == {
        "host": {"a": 1, "b": 1},
        "load_average": {"0.5, 1.0": 1},
        "gpu.name": {"H200": 2},
        "cpu": {"EPYC": 1},
        "gpu.limit_w": {"700.0": 1},
    }
    assert list(facts) == ["host", "load_average", "gpu.name", "cpu", "gpu.limit_w"]
    assert facts.values_of("host") == ("a", "b")
    assert facts.values_of("kernel") == ()


def test_counts_of_two_parts_are_those_of_the_whole() -> None:
    whole, parts = EnvironmentFacts(), [EnvironmentFacts(), EnvironmentFacts()]
    for number, environment in enumerate((SECOND, FIRST, FIRST, SECOND)):
        whole.add(environment)
        parts[number // 2].add(environment)
    for facts in (whole, *parts):
        facts.finish()
    parts[0].extend(parts[1])
    assert parts[0] == whole
    assert [list(counts) for counts in parts[0].values()] == [list(counts) for counts in whole.values()]


def test_objects_that_come_again_are_counted_like_all_others_however_many_there_are() -> None:
    facts = EnvironmentFacts()
    runs = [
        {"packages": {"numpy": "2", "parts": {"blas": number % 100}}, "clock": {"mhz": number}} for number in range(300)
    ]
    for run in runs:
        facts.add(run)
    facts.finish()
    facts.finish()
    assert facts["packages.numpy"] == {"2": 300}
    assert facts["packages.parts.blas"] == {str(number): 3 for number in range(100)}
    assert facts.values_of("clock.mhz") == tuple(map(str, range(300)))
    assert set(facts["clock.mhz"].values()) == {1}
