# SPDX-License-Identifier: Apache-2.0
"""What cannot be trained, whatever the machine: batches that have no equal parts, norms without a spread."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.case import Case


@dataclass(frozen=True, slots=True)
class Untrainable:
    """`factor`: the one to change; `what`: what is wrong; `hint`: what to use instead."""

    factor: str
    what: str
    hint: str


def untrainable(case: Case) -> Untrainable | None:
    """What does not fit in a case that trains; None: all does."""
    if not case.workload_row.uses("training"):
        return None
    return _of_parts(case) or _of_norms(case)


def _of_parts(case: Case) -> Untrainable | None:
    if case.batch % case.accumulation == 0:
        return None
    return Untrainable(
        "accumulation",
        f"`accumulation` {case.accumulation} does not divide a batch of {case.batch}",
        "the batch is what one step of the optimiser sees, and each part has batch / accumulation samples",
    )


def _of_norms(case: Case) -> Untrainable | None:
    """Every batch norm needs two values of a channel in training: one has no spread."""
    row, part = case.model_row, case.batch // case.accumulation
    if row is None or row.normalised_values(part) != 1:
        return None
    return Untrainable(
        "accumulation" if case.accumulation > 1 else "batch",
        f"the last batch norm of {row.name} sees one value of each channel: {part} image of "
        f"{row.shape[-2]}x{row.shape[-1]} in a part of the batch",
        f"use at least 2 images in a part, or images larger than {row.norm_stride}x{row.norm_stride}",
    )
