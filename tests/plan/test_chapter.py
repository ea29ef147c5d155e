# SPDX-License-Identifier: Apache-2.0
"""docs/user/plans.md: its table of keys names what plans may contain, its example is a plan, as is that for a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pybench.plan import Plan, keys

PAGES = Path(__file__).parents[2] / "docs/user"
CHAPTER = (PAGES / "plans.md").read_text(encoding="utf-8")


def test_the_table_of_keys_names_every_key() -> None:
    rows = [line.split("`")[1] for line in section("Keys") if line.startswith("| `")]
    assert rows == list(keys.PLAN_KEYS)


def test_the_example_is_a_plan(load: Callable[..., Plan]) -> None:
    assert len(load(first_example(CHAPTER), whole=True).cases) == 4


def test_the_first_plan_for_a_gpu_is_one(load: Callable[..., Plan]) -> None:
    page = (PAGES / "machine.md").read_text(encoding="utf-8")
    assert len(load(first_example(page), whole=True).cases) == 8


def first_example(page: str) -> str:
    return page.partition("```yaml\n")[2].partition("```")[0]


def section(title: str) -> list[str]:
    return CHAPTER.partition(f"\n## {title}\n")[2].partition("\n## ")[0].splitlines()
