# SPDX-License-Identifier: Apache-2.0
"""Lists of CPUs as Linux writes them: `0-3,8`."""

from __future__ import annotations

from collections.abc import Iterable

from pybench.errors import InputError


def parse(text: str) -> set[int]:
    """`0-3,8` -> {0, 1, 2, 3, 8}. Raises `InputError` for anything else."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise InputError(f"affinity {text!r} is no list of CPUs", hint="write it as Linux does: 0-3,8")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def render(cpus: Iterable[int]) -> str:
    """The inverse: {0, 1, 2, 3, 8} -> `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
