# SPDX-License-Identifier: Apache-2.0
"""docs/user/plans.md: its table of keys names what plans may contain, its example is a plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pybench.plan import Plan, keys

CHAPTER = (Path(__file__).parents[2] / "docs/user/plans.md").read_text(encoding="utf-8")


def test_the_table_of_keys_names_every_key() -> None:
    rows = [line.split("`")[1] for line in section("Keys") if line.startswith("| `")]
    assert rows == list(keys.PLAN_KEYS)


def test_the_example_is_a_plan(load: Callable[..., Plan]) -> None:
    example = CHAPTER.partition("```yaml\n")[2].partition("```")[0]
    assert len(load(example, whole=True).cases) == 4


def section(title: str) -> list[str]:
    return CHAPTER.partition(f"\n## {title}\n")[2].partition("\n## ")[0].splitlines()
