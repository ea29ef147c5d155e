# SPDX-License-Identifier: Apache-2.0
"""The arguments and options that several commands share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from pybench.case.repetitions import MOST_REPETITIONS

DEFAULT_TIMEOUT_S = 3600.0
PlanArgument = Annotated[Path, typer.Argument(metavar="PLAN", help="The campaign's plan, a YAML file.")]
PlanOrDirectory = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The campaign's plan, a YAML file, or a campaign's directory.")
]
DirectoryArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The campaign's directory.")]
OutOption = Annotated[
    Optional[Path],
    typer.Option("--out", "-o", metavar="DIR", help="The campaign's directory [default: results/<name>]."),
]
SetOption = Annotated[
    Optional[list[str]],
    typer.Option("--set", metavar="A.B=V", help="Change the plan: `--set defaults.iterations=50`. May be repeated."),
]
FilterOption = Annotated[
    Optional[list[str]],
    typer.Option(
        "--filter",
        "-k",
        metavar="EXPR",
        help="Only these cases, as in `precision=int8,batch>=8`. If repeated, a case must satisfy all.",
    ),
]
RepetitionsOption = Annotated[
    Optional[int],
    typer.Option(
        min=1,
        max=MOST_REPETITIONS,
        metavar="N",
        help="Number of repetitions of every case, in place of all numbers that the plan states.",
    ),
]
TimeoutOption = Annotated[float, typer.Option(min=0.001, metavar="S", help="Longest time of one run, in seconds.")]
RetryFailedOption = Annotated[
    bool, typer.Option("--retry-failed", help="Also repeat runs that crashed, timed out or failed to build.")
]
NoSensorOption = Annotated[
    bool,
    typer.Option(
        "--no-sensor", help="Do not measure the GPU's power sensor first; assume a profile where none is stored."
    ),
]
ContainerOption = Annotated[
    Optional[str],
    typer.Option(
        metavar="IMAGE",
        help="Use a container of this image: an OCI archive or layout, a SIF, or HOST/NAME@sha256:DIGEST. "
        "Append @sha256:DIGEST to a file to require that digest.",
    ),
]
EngineOption = Annotated[
    Optional[str],
    typer.Option(
        envvar="PYBENCH_ENGINE",
        metavar="NAME",
        help="podman, docker, apptainer or singularity [default: the first one installed that can run the image].",
    ),
]
PlainHttpOption = Annotated[
    Optional[bool],
    typer.Option("--plain-http/--https", help="Use HTTP or HTTPS [default: HTTP only on this machine]."),
]
RegistryTimeoutOption = Annotated[
    float, typer.Option(min=0.1, metavar="S", help="Seconds to wait for an answer of the registry.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def joined(filters: list[str] | None) -> str | None:
    """Several `--filter` as one expression, because a case has to satisfy all; None: there is none."""
    return ", ".join(filters) if filters else None
