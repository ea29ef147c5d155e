# SPDX-License-Identifier: Apache-2.0
"""Workers of another interpreter: this pybench's code with that one's packages, and what keeps one from being used."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from pybench.errors import InputError
from pybench.launcher import FileAccess, Interpreter, install_command, open_interpreter
from pybench.launcher.interpreter import WORKER_PACKAGES
from tests.support.virtual_environments import install_marker, make_environment, packages_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return make_environment(tmp_path / "venv", "1.0")


def facts_of(interpreter: Interpreter, *names: str) -> dict[str, dict[str, str]]:
    question = ["--probe", ",".join(names)]
    with interpreter.start(question, FileAccess(), subprocess.DEVNULL, None, own_session=True) as worker:
        worker.process.wait()
        text, _ = worker.read_report()
    facts: dict[str, dict[str, str]] = json.loads(text)["facts"]
    return facts


def test_a_worker_has_the_packages_of_its_interpreter_and_the_code_of_this_pybench(
    python: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install_marker(tmp_path / "shadow", "9.9")  # not handed on: it would be in front of each environment's own
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shadow"))
    Path(packages_of(python.parents[1]), "pybench").mkdir()  # an installation of another pybench
    Path(packages_of(python.parents[1]), "pybench", "__init__.py").write_text("raise ImportError('another pybench')")
    interpreter = open_interpreter(python)
    assert interpreter.packages["acme-marker"] == "1.0"
    found = facts_of(interpreter, "machine", "module:acme_marker", "module:pybench.words")
    assert found["machine"]["available"]
    assert found["module:acme_marker"]["version"] == "1.0"
    assert found["module:pybench.words"]["available"]


def test_its_packages_are_told_by_their_usual_names(python: Path) -> None:
    packages = open_interpreter(python).packages
    assert packages["ruamel-yaml"]
    assert "pybench-campaign" not in packages  # its code is not used there


def test_of_this_pybench_it_has_nothing_else_and_nothing_is_written_for_it(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    found = facts_of(open_interpreter(python), "module:pybench.words", "module:tests.support", "module:documents")
    assert [name for name, fact in found.items() if fact["available"]] == ["module:pybench.words"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_every_worker_needs_is_asked_for_with_the_command_that_installs_it(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    python = tmp_path / "bare/bin/python"
    with pytest.raises(InputError) as raised:
        open_interpreter(python)
    assert raised.value.message == f"{python} lacks numpy, nvidia-ml-py, pillow, zstandard, which every run needs"
    assert raised.value.hint == f"`uv pip install --python {python} numpy nvidia-ml-py pillow zstandard`"


def test_what_every_worker_needs_is_a_dependency_of_pybench() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {dependency.split(">=")[0] for dependency in project["dependencies"]}
    assert set(WORKER_PACKAGES.values()) <= named


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 1", "cannot say what it is: it says nothing"),
        ("echo 'not Python' >&2; exit 2", "cannot say what it is: not Python"),
        ("echo 7", "is no Python 3"),
    ],
)
def test_what_is_no_python_is_refused(tmp_path: Path, script: str, said: str) -> None:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    with pytest.raises(InputError) as raised:
        open_interpreter(path)
    assert raised.value.message == f"{path} {said}"


def test_what_cannot_be_started_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "python"
    path.write_text("no program")
    path.chmod(0o755)
    with pytest.raises(InputError, match="cannot be started: Exec format error"):
        open_interpreter(path)


def test_a_python_that_the_compiled_module_is_not_for_is_refused(tmp_path: Path) -> None:
    """A real interpreter that says of itself what one of another version says."""
    path = tmp_path / "python"
    path.write_text(
        f"#!/bin/sh\n{sys.executable} \"$@\" | sed 's/{sysconfig.get_config_var('EXT_SUFFIX')}/.cpython-39.so/'\n"
    )
    path.chmod(0o755)
    with pytest.raises(InputError, match=r"\(\.cpython-39\.so\), and pybench's compiled module is for CPython") as said:
        open_interpreter(path)
    assert said.value.hint is not None
    assert "uv venv --python 3." in said.value.hint


def test_what_is_to_be_typed_is_quoted() -> None:
    assert install_command(Path("/my envs/python"), ["numpy"]) == "`uv pip install --python '/my envs/python' numpy`"
