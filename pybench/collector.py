# SPDX-License-Identifier: Apache-2.0
"""Python's collector of cycles, put off where millions of objects are made and none of them is in a cycle.

The collector walks all objects again and again while they become more: a fifth of the time of a large report.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Inside, no cycle is looked for; so nothing inside may make large ones, as figures are."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def collection() -> Iterator[None]:
    """Inside, cycles are looked for again in spite of `no_collection`, but only among what is made inside."""
    was_enabled = gc.isenabled()
    if not was_enabled:
        gc.freeze()
        gc.enable()
    try:
        yield
    finally:
        if not was_enabled:
            gc.disable()
