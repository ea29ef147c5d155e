# SPDX-License-Identifier: Apache-2.0
"""How tests import, and what several use: the simulated CUDA driver, and workers that are ready.

Tests import each other as `tests.…`, and pybench as it is installed. This folder's parent comes last on the path, and
no Python that a test starts puts its working directory first.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

if TYPE_CHECKING:
    from tests.measure.simulated_cuda import SimulatedDriver
    from tests.support.ready_workers import ReadyWorkers

sys.path.append(str(Path(__file__).parents[1]))
pytest_plugins = ["tests.support.quick"]
os.environ["PYTHONSAFEPATH"] = "1"
# Tests run beside each other. A thread of torch that waits for another one would keep its core meanwhile.
# The other one waits for that core, so a pass of a small network then takes ten times as long.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
# A shell without job control starts what it sends to the background with SIGINT ignored, and children inherit that.
# Tests interrupt the commands that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Their fixtures start daemons, or build images: once a session, not once for each of pytest-xdist's workers.
# Those of `gpu` time a board and measure its power: two of them at once would measure each other.
IN_ONE_WORKER = ("cluster", "containers", "gpu", "launcher", "publication")
ONE_BY_ONE = "tests/plans/test_runs.py"  # each of these takes a minute, and they share nothing


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where tests run beside each other (`-n`), a file stays in one worker, and so does a folder of `IN_ONE_WORKER`."""
    from xdist.scheduler import LoadScopeScheduling

    class ByPlace(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            folder = Path(file).parts[1]
            if file == ONE_BY_ONE:
                return nodeid
            return folder if folder in IN_ONE_WORKER else file

    return ByPlace(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: Any) -> None:
    """A process of tests that dies is told at once, with its test and its status, which pytest-xdist keeps back."""
    status = report.node.gateway._io.popen.wait(10)
    report.longrepr += f", and ended with {f'status {status}' if status >= 0 else signal.Signals(-status).name}"
    print(f"\n{report.longrepr}", file=sys.stderr, flush=True)


@pytest.fixture(scope="session", autouse=True)
def without_helpers() -> Iterator[None]:
    """Commands that are called in this process read and draw by themselves.

    A helper's imports take longer than that, and it would share the cores with the tests beside this one.
    Tests of helpers make `Processes` of their own, and programs that a test starts have theirs."""
    with patch("pybench.processes._MOST", 1):
        yield


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


@pytest.fixture(scope="session")
def replay_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that plays a recorded power trace in NVML's place, built once a session."""
    from tests.measure.replay import build_replay_library

    return build_replay_library(tmp_path_factory.mktemp("replay"))


@pytest.fixture
def replayed_gpu(replay_library: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a library that plays the committed trace in real time."""
    from tests.measure.replay import TRACE

    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(TRACE))
    monkeypatch.delenv("PYBENCH_REPLAY_SPEED", raising=False)
    return str(replay_library)


@pytest.fixture
def replayed(replayed_gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replayed GPU is this machine's."""
    monkeypatch.setenv("PYBENCH_NVML_LIBRARY", replayed_gpu)


@pytest.fixture(scope="session")
def served_workers() -> Iterator[ReadyWorkers]:
    from tests.support.ready_workers import serve_workers

    with serve_workers() as workers:
        yield workers


@pytest.fixture
def ready_workers(served_workers: ReadyWorkers) -> Iterator[None]:
    """Workers that this process starts are forked from one that has imported torch and the rest."""
    with served_workers.in_place():
        yield
