# SPDX-License-Identifier: Apache-2.0
"""When an exception of a worker is a full disk, which is no result of a case, and when it is not."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from pybench.worker.__main__ import _full_disk


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What every file system says of its blocks; the test changes it."""
    said = {"f_blocks": 100, "f_bavail": 10}
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**said))
    return said


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_by_a_cause_or_by_a_text(code: int, tmp_path: Path) -> None:
    caused = RuntimeError("cannot save")
    caused.__cause__ = OSError(code, os.strerror(code), "weights.bin")
    for error in (caused, RuntimeError(f"PytorchStreamWriter failed: {os.strerror(code)}")):
        found = _full_disk(error, str(tmp_path))
        assert found is not None
        assert os.strerror(code) in found.message
        assert found.hint is not None


def test_any_error_on_a_disk_without_room_is_its_error_where_a_case_works(
    blocks: dict[str, int], tmp_path: Path
) -> None:
    error = RuntimeError("unknown")
    assert _full_disk(error, str(tmp_path)) is None
    blocks["f_bavail"] = 0
    assert _full_disk(error, str(tmp_path)) is not None
    assert _full_disk(error, None) is None  # it only answers: a read-only image has no free blocks either
    blocks["f_blocks"] = 0
    assert _full_disk(error, str(tmp_path)) is None  # it tells neither


def test_a_folder_that_is_gone_hides_no_error(tmp_path: Path) -> None:
    assert _full_disk(RuntimeError("gone"), str(tmp_path / "gone")) is None
