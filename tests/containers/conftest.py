# SPDX-License-Identifier: Apache-2.0
"""The recipe's modules are scripts beside build.py, not a package: make them importable as build.py itself does."""

import sys
from pathlib import Path

import pytest

CONTAINERS = Path(__file__).resolve().parents[2] / "containers"
sys.path.insert(0, str(CONTAINERS))


@pytest.fixture(scope="session")
def containers() -> Path:
    return CONTAINERS
