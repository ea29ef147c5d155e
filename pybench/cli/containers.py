# SPDX-License-Identifier: Apache-2.0
"""What starts the workers: this machine, or containers of an image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pybench.case import Case
from pybench.cli.show import say
from pybench.errors import UsageError
from pybench.launcher import Launcher, LocalLauncher, open_container


def launcher_for(container: str | None, engine: str | None, cases: Iterable[Case] = ()) -> Launcher:
    """What starts the workers. `engine` says nothing without an image, as PYBENCH_ENGINE may always be set."""
    if container is not None:
        refuse_environments(cases)
        return open_container(container, engine, say)
    return LocalLauncher()


def refuse_environments(cases: Iterable[Case]) -> None:
    """Raises UsageError for cases in environments of the plan, where everything runs in an image."""
    if any(case.environment is not None for case in cases):
        raise UsageError(
            "environments are interpreters of this machine, and the plan was to run in an image",
            hint="use no image, or select cases without environment: `--filter environment=null`",
        )


def not_here(pythons: Mapping[str, str | Path]) -> dict[str, str]:
    """Those environments whose interpreter is not on this machine. `pythons`: name -> path."""
    return {name: str(python) for name, python in pythons.items() if not Path(python).exists()}
