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
    parts[0].extend(parts[1])
    assert parts[0] == whole
    assert [list(counts) for counts in parts[0].values()] == [list(counts) for counts in whole.values()]
