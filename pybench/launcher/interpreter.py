# SPDX-License-Identifier: Apache-2.0
"""Workers of another interpreter: that of a virtual environment, with packages of its own and this pybench's code.

`pybench` alone is imported from here, before the worker begins. Its folder is not on that interpreter's path, because
it would bring the packages next to it. PYTHONPATH and PYTHONHOME are not handed on, because they would put the same
packages in front of every environment. `pybench._native` is compiled for one version of Python, so the interpreter
has to be of that one.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.errors import InputError
from pybench.launcher import interpreter_facts
from pybench.launcher.launch import FileAccess, Launched, Output, worker_options
from pybench.launcher.local import start_process

# What every worker imports or may need for a user's files, by module: `dependencies` of pyproject.toml has them too.
WORKER_PACKAGES = {"numpy": "numpy", "pynvml": "nvidia-ml-py", "PIL": "pillow", "zstandard": "zstandard"}
_PACKAGE = Path(__file__).parents[1]
_OWN_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
_NOT_HANDED_ON = ("PYTHONPATH", "PYTHONHOME")
ANSWER_S = 120.0  # thousands of packages on a network file system
_BEGIN = """
import importlib.util, runpy, sys
folder = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("pybench", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["pybench"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["pybench"])
runpy.run_module("pybench.worker", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Starts workers by one interpreter.

    python: absolute path
    version: of its Python
    packages: distribution -> version, of all that it finds
    """

    python: Path
    version: str
    packages: Mapping[str, str]

    def start(
        self, arguments: Sequence[str], access: FileAccess, stdout: Output, stderr: Output, *, own_session: bool
    ) -> Launched:
        return start_process(
            lambda report, lifeline: [
                *(str(self.python), "-P", "-c", _BEGIN, str(_PACKAGE)),
                *worker_options(report, lifeline, arguments),
            ],
            stdout,
            stderr,
            own_session=own_session,
            variables=_variables(),
        )


def open_interpreter(python: Path) -> Interpreter:
    """Asks an interpreter what it is, and makes it ready to start workers.

    Raises InputError where it cannot: it does not start, its Python is another, or it lacks what every worker needs.
    """
    facts = _ask(python)
    if facts["suffix"] != _OWN_SUFFIX:
        minor = ".".join(platform.python_version_tuple()[:2])
        raise InputError(
            f"{python} is {facts['implementation']} {facts['version']} ({facts['suffix']}), and pybench's compiled "
            f"module is for {platform.python_implementation()} {minor} ({_OWN_SUFFIX})",
            hint=f"make the environment with that Python, as in `uv venv --python {minor} FOLDER`",
        )
    if facts["missing"]:
        lacking = [WORKER_PACKAGES[module] for module in facts["missing"]]
        raise InputError(
            f"{python} lacks {', '.join(lacking)}, which every run needs", hint=install_command(python, lacking)
        )
    return Interpreter(python, facts["version"], packages_of(facts))


def packages_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """distribution -> version, but for pybench itself, of which an environment has none of its own."""
    return {name: version for name, version in facts["packages"].items() if name != "pybench-campaign"}


def install_command(python: Path, distributions: Sequence[str]) -> str:
    """What installs packages into an environment, to be typed."""
    return f"`uv pip install --python {shlex.quote(str(python))} {' '.join(distributions)}`"


def _ask(python: Path) -> dict[str, Any]:
    command = [str(python), interpreter_facts.__file__, *WORKER_PACKAGES]
    hint = "give the path of a Python, such as bin/python of a virtual environment"
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_S, env=_variables(), check=False
        )
    except OSError as error:
        raise InputError(f"{python} cannot be started: {error.strerror}", hint=hint) from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{python} does not answer within {ANSWER_S:.0f} s", hint=hint) from error
    return read_facts(done, str(python), hint)


def read_facts(done: subprocess.CompletedProcess[bytes], where: str, hint: str) -> dict[str, Any]:
    """What `interpreter_facts` printed. `where`: whose it is, for errors. Raises InputError where it is not that."""
    try:
        found = json.loads(done.stdout)
    except ValueError as error:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it says nothing"]
        raise InputError(f"{where} cannot say what it is: {said[0]}", hint=hint) from error
    if not isinstance(found, dict) or not {"version", "suffix", "packages", "missing", "code"} <= found.keys():
        raise InputError(f"{where} is no Python 3", hint=hint)
    return found


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _NOT_HANDED_ON}
