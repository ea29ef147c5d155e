# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest

# Joules are valid only if no other process is on the board, and from the first test on this one is.
FIRST = "test_quick_on_a_gpu.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != FIRST)


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Runtimes set variables of this process."""
    with patch.dict(os.environ):
        yield
