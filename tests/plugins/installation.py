# SPDX-License-Identifier: Apache-2.0
"""A fresh environment with packages of a user's own, as an installer of wheels leaves them, and pybench in it.

Nothing is downloaded: the environment sees the packages of the one that runs the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tomllib
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pybench

PACKAGES = Path(__file__).with_name("packages")


@dataclass(frozen=True)
class Installation:
    """One virtual environment."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> Installation:
        """An environment with what the tests themselves run with, and pybench as they see it."""
        venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
        made = cls(folder)
        lent = [str(Path(pybench.__file__).parents[1]), sysconfig.get_paths()["purelib"]]
        lines = [f"import site; site.addsitedir({path!r})" for path in lent]
        (made.site_packages / "lent.pth").write_text("\n".join([*lent[:1], *lines]) + "\n")
        return made

    @property
    def site_packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def install(self, name: str, version: str | None = None, **replaced: tuple[str, str]) -> None:
        """Installs one of `packages/`, in place of an earlier version. `replaced`: stem of a file -> a text in it and
        what it becomes."""
        source = PACKAGES / name
        project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
        self.uninstall(name)
        (package,) = (path for path in source.iterdir() if path.is_dir() and path.name != "__pycache__")
        installed = self.site_packages / package.name
        shutil.copytree(package, installed, ignore=shutil.ignore_patterns("__pycache__"))
        for stem, (before, after) in replaced.items():
            path = installed / f"{stem}.py"
            assert before in path.read_text()
            path.write_text(path.read_text().replace(before, after))
        self._describe(package.name, project, version or project["version"])

    def uninstall(self, name: str) -> None:
        for path in self.site_packages.glob(f"acme_{name}*"):
            shutil.rmtree(path)

    def pybench(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """`pybench` of this environment. Nothing stays compiled: versions may be a second apart."""
        return subprocess.run(
            [self.folder / "bin" / "python", "-P", "-B", "-m", "pybench.cli", *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            env=_environment(),
        )

    def worker(self, folder: Path, campaign: Path) -> dict[str, Any]:
        """The report of a worker of this environment that does what a folder asks for."""
        read, write = os.pipe()
        lifeline, held = os.pipe()
        command = [self.folder / "bin" / "python", "-P", "-m", "pybench.worker", "--report", str(write)]
        command += ["--lifeline", str(lifeline), "--spawned-ns", "0", str(folder), "--campaign", str(campaign)]
        subprocess.run(command, pass_fds=(write, lifeline), env=_environment(), capture_output=True)
        os.close(write)
        with open(read, "rb") as pipe:
            report: dict[str, Any] = json.loads(pipe.read())
        os.close(held)
        os.close(lifeline)
        return report

    def _describe(self, package: str, project: Mapping[str, object], version: str) -> None:
        """The metadata that an installer writes next to a package."""
        folder = self.site_packages / f"{package}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n")
        points = project["entry-points"]
        assert isinstance(points, dict)
        lines = [
            line
            for group, named in points.items()
            for line in (f"[{group}]", *(f"{k} = {v}" for k, v in named.items()))
        ]
        (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
        (folder / "RECORD").write_text("")


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYBENCH"))}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}


def ran(installed: Installation, folder: Path, plan: str) -> Path:
    """A folder with the plan and the campaign that `run` made of it."""
    (folder / "plan.yaml").write_text(plan)
    ended = installed.pybench("run", "plan.yaml", cwd=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder
