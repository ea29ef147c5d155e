# SPDX-License-Identifier: Apache-2.0
"""Python's search for cycles is off inside, and as before afterwards."""

from __future__ import annotations

import gc

import pytest

from pybench.collector import no_collection


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
