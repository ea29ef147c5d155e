# SPDX-License-Identifier: Apache-2.0
"""The replayed GPU: built once a session, and playing the committed trace unless a test says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.measure.replay import TRACE, Boards, build_replay_library, play_boards


@pytest.fixture(scope="session")
def replay_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_replay_library(tmp_path_factory.mktemp("replay"))


@pytest.fixture
def replayed_gpu(replay_library: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a library that plays the committed trace in real time."""
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(TRACE))
    monkeypatch.delenv("PYBENCH_REPLAY_SPEED", raising=False)
    return str(replay_library)


@pytest.fixture
def boards(replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boards:
    return play_boards(replay_library, tmp_path, monkeypatch)
