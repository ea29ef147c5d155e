# SPDX-License-Identifier: Apache-2.0
"""Python's search for cycles is off inside, and as before afterwards."""

from __future__ import annotations

import gc
import weakref

import pytest

from pybench.collector import collection, no_collection


class Node:
    """Refers to itself, so that only a search for cycles finds that nobody else does."""

    def __init__(self) -> None:
        self.own = self


def test_it_is_off_inside_also_where_it_was_off_before() -> None:
    with no_collection():
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="wrong"), no_collection():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_what_is_made_inside_a_collection_is_looked_through_and_nothing_before() -> None:
    with no_collection():
        before = weakref.ref(Node())
        with collection():
            assert gc.isenabled()
            inside = weakref.ref(Node())
            gc.collect()
            assert inside() is None
            assert before() is not None
        assert not gc.isenabled()
    gc.unfreeze()
    gc.collect()
    assert before() is None
