# SPDX-License-Identifier: Apache-2.0
"""What an image is made of is known by names, contents and execute bits: not by time, place or order."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sources


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "pybench").mkdir(parents=True)
    (folder / "containers").mkdir()
    (folder / "pybench" / "__init__.py").write_text("")
    (folder / "pybench" / "case.py").write_text("case = 1\n")
    (folder / "containers" / "debs.lock").write_text("image.slim base-files 12\n")
    return folder


def test_sources_are_copied_with_plain_permissions_and_without_what_git_ignores(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "pybench" / "__pycache__").mkdir(parents=True)
    (project / "tests").mkdir()
    (project / "pybench" / "__init__.py").write_text("")
    (project / "pybench" / "__init__.py").chmod(0o600)
    (project / "pybench" / "__pycache__" / "x.pyc").write_text("")
    (project / "tests" / "test_x.py").write_text("")
    (project / ".gitignore").write_text("__pycache__/\n")
    subprocess.run(["git", "init", "--quiet", project], check=True, capture_output=True)
    sources.copy(project, tmp_path / "copy")
    copied = {path.relative_to(tmp_path / "copy").as_posix(): path for path in (tmp_path / "copy").rglob("*.*")}
    assert set(copied) == {"pybench/__init__.py"}
    assert copied["pybench/__init__.py"].stat().st_mode & 0o777 == 0o644


def test_the_same_files_elsewhere_are_the_same_inputs(project: Path, tmp_path: Path) -> None:
    shutil.copytree(project, tmp_path / "else where", copy_function=shutil.copyfile)
    for path in (tmp_path / "else where").rglob("*"):
        os.utime(path, (1, 1))
    assert sources.inputs_sha256(tmp_path / "else where") == sources.inputs_sha256(project)


@pytest.mark.parametrize("name", ["pybench/case.py", "containers/debs.lock"])
def test_a_changed_source_or_lock_is_another_input(project: Path, name: str) -> None:
    before = sources.inputs_sha256(project)
    (project / name).write_text("changed\n")
    changed = sources.inputs_sha256(project)
    (project / name).chmod(0o755)
    assert len({before, changed, sources.inputs_sha256(project)}) == 3


def test_what_does_not_enter_the_image_changes_nothing(project: Path) -> None:
    before = sources.inputs_sha256(project)
    (project / "docs").mkdir()
    (project / "docs" / "method.md").write_text("tried\n")
    (project / "containers" / "README.md").write_text("read\n")
    assert sources.inputs_sha256(project) == before


def test_files_can_be_created_in_any_order(project: Path, tmp_path: Path) -> None:
    sources.copy(project, tmp_path / "copy", ("pybench", "containers"), random.Random(1))
    assert sources.inputs_sha256(tmp_path / "copy") == sources.inputs_sha256(project)


def test_the_recipe_is_every_script_that_a_build_imports(containers: Path) -> None:
    """A script that is forgotten could change an image without changing its inputs."""
    script = "\n".join(
        [
            f"import sys; sys.path.insert(0, {str(containers)!r})",
            "import build",
            "print(*(found for each in sys.modules.values() if (found := getattr(each, '__file__', None))))",
        ]
    )
    imported = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    own = {
        Path(name).relative_to(containers.parent).as_posix() for name in imported if name.startswith(str(containers))
    }
    assert own - {"containers/digests.py"} <= set(sources.RECIPE)
    for name in sources.RECIPE:
        assert (containers.parent / name).is_file(), name
