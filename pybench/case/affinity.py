# SPDX-License-Identifier: Apache-2.0
"""Lists of CPUs as Linux writes them, `0-3,8`, and whether a process may use them."""

from __future__ import annotations

from collections.abc import Iterable, Set

from pybench.catalogue.causes import Cause
from pybench.errors import InputError, UnsupportedError


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


def refuse_absent(wanted: str, allowed: Set[int]) -> set[int]:
    """The CPUs of a list. Raises UnsupportedError (`no_such_cpu`) for one that the process may not use.

    The kernel would quietly take what is left of the list.
    """
    cpus = parse(wanted)
    if not cpus <= allowed:
        raise UnsupportedError(
            f"affinity {wanted}: this process may use the CPUs {render(allowed)}",
            code=Cause.NO_SUCH_CPU,
            hint="name CPUs that exist and that the batch system or container allows",
        )
    return cpus
