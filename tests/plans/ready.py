# SPDX-License-Identifier: Apache-2.0
"""The plans that ship with pybench, and how tests call them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "plans"
NO_PLANS = {"scenarios"}  # folders of `plans/` with files of another kind
PLANS = sorted(path for path in FOLDER.rglob("*.yaml") if path.parent == FOLDER or path.parent.name not in NO_PLANS)


def named(path: Path) -> str:
    """`tinylm`, or `gcbench/train` of a plan in a folder."""
    return path.relative_to(FOLDER).with_suffix("").as_posix()


def path_of(name: str) -> Path:
    """The plan of such a name."""
    return FOLDER / f"{name}.yaml"
