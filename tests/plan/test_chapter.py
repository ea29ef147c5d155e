# SPDX-License-Identifier: Apache-2.0
"""docs/user/plans.md: its tables are what the code says, its example is a plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pybench.catalogue.criteria import CRITERIA
from pybench.plan import Plan, keys

CHAPTER = (Path(__file__).parents[2] / "docs/user/plans.md").read_text(encoding="utf-8")


def test_the_table_of_criteria_is_the_list_of_criteria() -> None:
    rows = [line for line in section("Criteria") if line.startswith("| `")]
    expected = [f"| `{kind.name}` | {kind.meaning} | `{kind.metric}` |" for kind in CRITERIA.values()]
    assert rows == expected, "\n".join(expected)


def test_the_table_of_keys_names_every_key() -> None:
    rows = [line.split("`")[1] for line in section("Keys") if line.startswith("| `")]
    assert rows == list(keys.PLAN_KEYS)


def test_the_example_is_a_plan(load: Callable[..., Plan]) -> None:
    example = CHAPTER.partition("```yaml\n")[2].partition("```")[0]
    assert len(load(example, whole=True).cases) == 4


def section(title: str) -> list[str]:
    return CHAPTER.partition(f"\n## {title}\n")[2].partition("\n## ")[0].splitlines()
