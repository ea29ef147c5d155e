# SPDX-License-Identifier: Apache-2.0
"""Tests import each other as `tests.…`, and pybench as it is installed: this folder's parent comes last on the path,
and no Python that a test starts puts its working directory first. And the simulated CUDA driver, which several use."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.measure.simulated_cuda import SimulatedDriver

sys.path.append(str(Path(__file__).parents[1]))
os.environ["PYTHONSAFEPATH"] = "1"


# Their fixtures start daemons, or build images: once a session, not once for each of pytest-xdist's workers.
IN_ONE_WORKER = ("cluster", "containers", "launcher", "publication")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Where tests run beside each other (`-n`), a file stays in one worker, and so do folders of `IN_ONE_WORKER`.

    Not in pytest_collection_modifyitems: pytest-xdist reads the groups there, before conftest files have their turn.
    """
    place = item.path.relative_to(Path(__file__).parent)
    item.add_marker(pytest.mark.xdist_group(place.parts[0] if place.parts[0] in IN_ONE_WORKER else str(place)))


@pytest.fixture(scope="session")
def simulated_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that stands in for the CUDA driver, built once a session."""
    from tests.measure.simulated_cuda import build_simulated_driver

    return build_simulated_driver(tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def simulated(simulated_library: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedDriver:
    """A simulated driver in place of the machine's own, with its defaults: graphs of 100 us that launch at once."""
    from tests.measure.simulated_cuda import SimulatedDriver

    for name in [name for name in os.environ if name.startswith("PYBENCH_FAKE_CUDA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYBENCH_CUDA_LIBRARY", str(simulated_library))
    return SimulatedDriver(simulated_library)
