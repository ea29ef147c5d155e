# SPDX-License-Identifier: Apache-2.0
"""Workers that need not import what they need, for the tests that ask for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybench.launcher import LocalLauncher
from tests.support.ready_workers import ReadyWorkers, serve_workers


@pytest.fixture(scope="session")
def served_workers() -> Iterator[ReadyWorkers]:
    with serve_workers() as workers:
        yield workers


@pytest.fixture
def ready_workers(served_workers: ReadyWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of commands that are called in this process are forked from one that is ready."""

    def start(_: LocalLauncher, *arguments: object, **options: object) -> object:
        return served_workers.start(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalLauncher, "start", start)
