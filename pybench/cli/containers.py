# SPDX-License-Identifier: Apache-2.0
"""What starts the workers: this machine, or containers of an image."""

from __future__ import annotations

from pybench.cli.show import say
from pybench.launcher import Launcher, LocalLauncher, open_container


def launcher_for(container: str | None, engine: str | None) -> Launcher:
    """What starts the workers. `engine` says nothing without an image, as PYBENCH_ENGINE may always be set."""
    if container is not None:
        return open_container(container, engine, say)
    return LocalLauncher()
