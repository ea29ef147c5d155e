# SPDX-License-Identifier: Apache-2.0
"""What build.py and run answer when they cannot do their work: one error, one hint, nothing half written."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.namespaces import has_user

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mmdebstrap") is None, reason="needs root and Debian's mmdebstrap"
)


def build(containers: Path, *arguments: object, **options: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(containers / "build.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock", "build.log"}


@pytest.mark.skipif(os.geteuid() != 0 or not has_user(65534), reason="only root can become another user")
def test_an_ordinary_user_is_told_to_use_sudo(containers: Path) -> None:
    # Imported before the user changes, since another user may be unable to read this interpreter's folder.
    script = f"import os, sys; sys.path.insert(0, {str(containers)!r}); import build; os.setuid(65534); build.main()"
    answer = subprocess.run([sys.executable, "-c", f"{script}"], capture_output=True, text=True)
    assert answer.stderr.startswith("error: building a root file system needs root\nhint: sudo ")
    assert answer.stdout == ""


@needs_root
def test_a_mirror_that_does_not_answer_is_named_and_nothing_is_left(containers: Path, tmp_path: Path) -> None:
    answer = build(containers, "--output", tmp_path, "--fresh", "--mirror", "http://127.0.0.1:9/debian")
    assert answer.returncode == 1
    assert "error: cannot read http://127.0.0.1:9/debian/dists/bookworm" in answer.stderr
    assert "hint: choose a mirror" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert left_in(tmp_path) == set()


@needs_root
def test_an_interrupted_build_leaves_nothing(containers: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mirror = f"http://127.0.0.1:{silent.getsockname()[1]}/debian"
        command = [sys.executable, containers / "build.py", "--output", tmp_path, "--fresh", "--mirror", mirror]
        started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        silent.settimeout(60)
        connection, _ = silent.accept()  # the build now waits for an answer
        started.send_signal(signal.SIGTERM)
        _, errors = started.communicate(timeout=120)
        connection.close()
    assert started.returncode == 130
    assert errors == "error: interrupted; nothing was written\n"
    assert left_in(tmp_path) == set()


@needs_root
def test_a_second_build_in_the_same_folder_is_refused(containers: Path, tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = build(containers, "--output", tmp_path)
    assert answer.returncode == 1
    assert "another build works in" in answer.stderr


@needs_root
def test_too_small_a_disk_is_said_before_anything_is_fetched(
    containers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import build as program

    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1))  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "argv", ["build.py", "--output", str(tmp_path)])
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert program.main() == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "has 0.0 GiB free, the full tier needs 20" in capsys.readouterr().err


def test_running_an_image_that_was_not_built_names_the_command_that_builds_it(containers: Path, tmp_path: Path) -> None:
    answer = subprocess.run([containers / "run", "--images", tmp_path], capture_output=True, text=True)
    assert answer.returncode == 2
    assert "there is no finished full image" in answer.stderr
    assert "hint: containers/build.py --tier full makes one" in answer.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--images", "--results"])
def test_a_colon_which_ends_a_path_for_engines_is_refused_before_one_is_asked(
    containers: Path, tmp_path: Path, option: str
) -> None:
    folders = {"--images": tmp_path / "images", "--results": tmp_path / "results", option: tmp_path / "10:30"}
    for folder in folders.values():
        folder.mkdir()
    (folders["--images"] / "pybench-full.json").write_text("{}")
    given = [word for pair in folders.items() for word in pair]
    answer = subprocess.run([containers / "run", *given], capture_output=True, text=True, cwd=tmp_path)
    assert answer.returncode == 2
    assert answer.stderr.startswith("error: a colon in ")
    assert "10:30" in answer.stderr


def test_an_unknown_option_of_run_is_an_error(containers: Path) -> None:
    answer = subprocess.run([containers / "run", "--tires", "full"], capture_output=True, text=True)
    assert answer.returncode == 2
    assert "unknown option --tires" in answer.stderr
