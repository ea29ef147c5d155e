# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.measure.replay import Boards, play_boards


@pytest.fixture
def boards(replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boards:
    return play_boards(replay_library, tmp_path, monkeypatch)
