# SPDX-License-Identifier: Apache-2.0
"""What tests of packages share."""

from __future__ import annotations

import pytest

from tests.plugins.installation import Installation


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An environment without any of the packages."""
    return Installation.create(tmp_path_factory.mktemp("bare") / "venv")
