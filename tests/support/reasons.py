# SPDX-License-Identifier: Apache-2.0
"""Reasons as tests name them: by the codes that are stored."""

from __future__ import annotations

from collections.abc import Iterable

from pybench.catalogue.reasons import Reason, read_reason


def codes_of(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """Their codes with names."""
    return tuple(reason.stored_code for reason in reasons)


def reasons_of(*codes: str) -> tuple[Reason, ...]:
    """The inverse of `codes_of`."""
    return tuple(map(read_reason, codes))
