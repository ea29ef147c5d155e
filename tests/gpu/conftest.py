# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Runtimes set variables of this process."""
    with patch.dict(os.environ):
        yield
