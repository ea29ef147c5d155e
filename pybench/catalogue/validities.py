# SPDX-License-Identifier: Apache-2.0
"""The kinds of validity of a run: each is true, false with reasons, or null where it was not asked for."""

from __future__ import annotations

from typing import Literal, get_args

ValidityKind = Literal["timing", "energy", "precision", "accuracy"]
VALIDITIES: tuple[ValidityKind, ...] = get_args(ValidityKind)
