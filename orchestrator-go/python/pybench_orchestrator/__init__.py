# SPDX-License-Identifier: Apache-2.0
"""Where the installed `pybench-orchestrator` is.

    pybench_orchestrator.program_path()                                   # .../bin/pybench-orchestrator

The program is a script of the environment, so it is also on PATH where the environment is active.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

__all__ = ["program_path"]

PROGRAM = "pybench-orchestrator"


def program_path() -> Path:
    """The program beside this package: in the environment's scripts, in the user's, or under `pip install --target`.

    Raises FileNotFoundError where it is in none of them.
    """
    target = Path(__file__).parents[1] / "bin"
    folders = [Path(sysconfig.get_path("scripts")), target, Path(sysconfig.get_path("scripts", scheme="posix_user"))]
    for folder in folders:
        if (folder / PROGRAM).is_file():
            return folder / PROGRAM
    raise FileNotFoundError(f"{PROGRAM} is in none of {', '.join(map(str, folders))}")
