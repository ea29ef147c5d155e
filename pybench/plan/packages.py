# SPDX-License-Identifier: Apache-2.0
"""Hints for names that no row has: to install the package that adds them, or to repair one that cannot be used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pybench.errors import PluginError, Problem


def install_hint(name: str) -> str:
    """What to do about a name that a package may add."""
    return f"install the package that adds {name} to pybench"


_INSTALL = re.compile(install_hint("(.+?)"))


def with_repairs(problems: Iterable[Problem], refused: Sequence[PluginError]) -> list[Problem]:
    """Problems with one hint each: where an installed package that cannot be used may add the name, to repair it."""
    return [_with_repair(problem, refused) for problem in problems]


def _with_repair(problem: Problem, refused: Sequence[PluginError]) -> Problem:
    found = _INSTALL.search(problem.hint or "")
    if problem.hint is None or found is None:
        return problem
    adding = [error for error in refused if found[1] in error.names or not error.names]  # without names: not known
    repairs = [f"{error.message}, so its rows are left out; {error.hint}" for error in adding]
    return replace(problem, hint=problem.hint[: found.start()] + "; ".join(repairs)) if repairs else problem
