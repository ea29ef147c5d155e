# SPDX-License-Identifier: Apache-2.0
"""The order of a campaign: randomised complete blocks, so that drift hits every case alike.

A block is one pass over all cases in an order drawn from the plan's seed and the block's number: the same on every
machine and after every restart. A shard takes whole blocks, so that cases are always compared within one machine.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pybench.case import Case, Repetitions
from pybench.errors import UsageError


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard `index` of `count`, counted from 1: it takes the blocks index, index + count, ..."""

    index: int
    count: int

    def takes(self, block: int) -> bool:
        return (block - 1) % self.count == self.index - 1


WHOLE = Shard(1, 1)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One repetition of one case. `seed`: 63 bits from the plan's seed, the case and the block."""

    case: Case
    block: int
    seed: int

    @property
    def cell(self) -> tuple[str, int]:
        """(case id, block)."""
        return self.case.id, self.block


def planned_runs(
    cases: Sequence[Case], seed: int, repetitions: Repetitions, shard: Shard = WHOLE
) -> Iterator[PlannedRun]:
    """Every run of the campaign in its order."""
    runs = [(case, repetitions.of(case)) for case in cases]
    for block in range(1, repetitions.blocks(cases) + 1):
        if shard.takes(block):
            for case in block_order([case for case, count in runs if block <= count], seed, block):
                yield PlannedRun(case, block, run_seed(seed, case.id, block))


def block_order(cases: Sequence[Case], seed: int, block: int) -> list[Case]:
    """The cases in the order of one block: a permutation that depends on nothing but the arguments.

    Cases are sorted by id first, so that reordering a plan's text changes nothing.
    """
    ordered = sorted(cases, key=lambda case: case.id)
    random.Random(_digest("order", seed, block)).shuffle(ordered)
    return ordered


def run_seed(seed: int, case_id: str, block: int) -> int:
    """The seed that a run's synthetic input and data order come from."""
    return _digest("run", seed, case_id, block) >> 1


def parse_shard(text: str) -> Shard:
    """`2/5` -> the second of five. Raises `UsageError`."""
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise UsageError(
            f"--shard {text}: not of the form I/N, with I from 1 to N", hint="the second of five shards is 2/5"
        )
    return Shard(int(index), int(count))


def _digest(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:8], "big")
