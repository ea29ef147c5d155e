# SPDX-License-Identifier: Apache-2.0
"""What `make quick` runs: the tests that start no process. A plugin: it marks them, and fails one that starts one, in
`make quick` and in every other run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Folders whose tests start workers, programs or daemons, each of them or nearly so.
_FOLDERS = {"bench", "cli", "cluster", "containers", "contract", "gpu", "launcher", "runner", "worker"}
_MODULES = {"subprocess", "multiprocessing"}  # a file that imports one of these starts processes
_MARKS = {"container", "gpu", "plans", "process", "slow", "timing"}
_FIXTURES = {"replay_library", "replayed", "simulated_library", "served_workers"}  # these start a compiler or workers
_EVENTS = {"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}
_LIBRARIES_OWN = {"fc-list", "ldconfig"}  # matplotlib, and ctypes where it looks for a library, each once

_started: list[str] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _EVENTS:
        program = arguments[0] if arguments else event
        _started.append(Path(program.decode() if isinstance(program, bytes) else str(program)).name)


def pytest_configure() -> None:
    sys.addaudithook(_note)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Folders without a quick test are not even imported where `-m quick` selects."""
    has_none = collection_path.parent == config.rootpath / "tests" and collection_path.name in _FOLDERS
    return True if has_none and config.option.markexpr == "quick" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks `quick` before `-m` selects."""
    for item in items:
        if _is_quick(item):
            item.add_marker("quick")


def _is_quick(item: pytest.Item) -> bool:
    folder = Path(item.nodeid).parts[1]
    imported = set(vars(getattr(item, "module", None) or sys))
    marks = {mark.name for mark in item.iter_markers()}
    fixtures = set(getattr(item, "fixturenames", ()))
    return not (folder in _FOLDERS or imported & _MODULES or marks & _MARKS or fixtures & _FIXTURES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """A quick test fails whose fixture started a process, if it is the first that asks for the fixture."""
    yield from _none_started(item, "its fixtures start")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A quick test fails that started a process."""
    yield from _none_started(item, "starts")


def _none_started(item: pytest.Item, what: str) -> Iterator[None]:
    _started.clear()
    yield
    programs = set(_started) - _LIBRARIES_OWN
    if programs and item.get_closest_marker("quick"):
        pytest.fail(f"{what} {', '.join(sorted(programs))}: mark it `process`, so that `make quick` leaves it out")
