# SPDX-License-Identifier: Apache-2.0
"""`--container` and `--engine`: whether workers are started here or in containers of an image."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from pybench.launcher import Here, Launcher, open_container

ContainerOption = Annotated[
    Optional[str],
    typer.Option(
        metavar="IMAGE",
        help="Do each run in a container of this image: an OCI archive or layout, a SIF, or HOST/NAME@sha256:...; "
        "a file, too, may be followed by @sha256:..., which it then has to be.",
    ),
]
EngineOption = Annotated[
    Optional[str],
    typer.Option(
        envvar="PYBENCH_ENGINE",
        metavar="NAME",
        help="podman, docker, apptainer or singularity [default: the first here that can run the image].",
    ),
]


def launcher_for(container: str | None, engine: str | None) -> Launcher:
    """What starts the workers. `engine` says nothing without an image, as PYBENCH_ENGINE may always be set."""
    if container is not None:
        return open_container(container, engine, lambda text: print(text, file=sys.stderr, flush=True))
    return Here()
