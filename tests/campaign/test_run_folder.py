# SPDX-License-Identifier: Apache-2.0
"""Files of a run by Python alone, against what C++ lists and reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybench import _native
from pybench.campaign import run_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Every kind of entry that a run's folder may have."""
    run = tmp_path / "run"
    (run / "a" / "b").mkdir(parents=True)
    (run / ".hidden").mkdir()
    for name in ("b", "a.json", "a/z", "a/b/c", ".file", ".hidden/file", "two\nlines", "é", "Z"):
        (run / name).write_text(name * 3)
    Path(os.fsdecode(os.fsencode(run) + b"/\xff.csv")).write_bytes(b"")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("x")
    (run / "to-folder").symlink_to(tmp_path / "elsewhere")
    (run / "to-file").symlink_to(tmp_path / "elsewhere" / "file")
    (run / "to-nothing").symlink_to("nowhere")
    os.mkfifo(run / "pipe")
    return run


@pytest.mark.parametrize("kept_bytes", [0, 3, 1 << 16])
def test_python_lists_and_reads_what_cpp_does(folder: Path, kept_bytes: int) -> None:
    path = os.fsencode(folder)
    found = run_folder.read_run_folder(path, kept_bytes)
    expected = _native.read_run_folder(path, kept_bytes)
    assert list(found[0].items()) == list(expected[0].items())
    assert found[1:] == expected[1:]
    assert len(found[0]) == 8
    assert run_folder.stat_run_folder(path) == _native.stat_run_folder(path) == found[1]


@pytest.mark.parametrize("name", ["absent", "run/b"])
def test_a_folder_that_cannot_be_read_is_the_same_error(folder: Path, name: str) -> None:
    path = os.fsencode(folder.parent / name)
    errors = []
    for twin in (run_folder, _native):
        for call in (lambda twin=twin: twin.read_run_folder(path, 9), lambda twin=twin: twin.stat_run_folder(path)):
            with pytest.raises(OSError, match="Errno") as caught:
                call()
            errors.append((caught.value.errno, caught.value.filename))
    assert len(set(errors)) == 1
