# SPDX-License-Identifier: Apache-2.0
"""`pybench doctor`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from pybench import machine
from pybench.cli.containers import ContainerOption, EngineOption, launcher_for


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    container: ContainerOption = None,
    engine: EngineOption = None,
) -> None:
    """Say what this machine can measure, and for the rest why not and what to install."""
    facts = machine.ask(machine.EVERYTHING, launcher_for(container, engine))
    findings = machine.diagnose(facts)
    if as_json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings], "facts": facts}, indent=1))
        return
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{finding.status:<3}  {finding.what:<{width}}  {finding.detail}")
        if finding.hint:
            print(f"{'':<3}  {'':<{width}}  -> {finding.hint}")
