# SPDX-License-Identifier: Apache-2.0
"""`pybench doctor`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Optional

import typer

from pybench import machine
from pybench.cli.containers import launcher_for
from pybench.cli.options import ContainerOption, EngineOption
from pybench.cli.show import print_json
from pybench.errors import UsageError
from pybench.launcher import Launcher, open_interpreter


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    python: Annotated[
        Optional[Path],
        typer.Option(
            metavar="PATH", help="What cases in this interpreter's environment can measure, as a plan would name it."
        ),
    ] = None,
    container: ContainerOption = None,
    engine: EngineOption = None,
) -> None:
    """Print what this machine can measure, and what is missing."""
    from pybench.catalogue.installed import installed

    found = installed()
    plugins = dict.fromkeys(row.plugin.fact for row in found.catalogue.added() if row.plugin is not None)
    facts = machine.ask((*machine.EVERYTHING, *plugins), _launcher(python, container, engine))
    findings = [*machine.diagnose(facts), *machine.diagnose_packages(found, facts)]
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings], "facts": facts})
        return
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{finding.status:<3}  {finding.what:<{width}}  {finding.detail}")
        if finding.hint:
            print(f"{'':<3}  {'':<{width}}  -> {finding.hint}")


def _launcher(python: Path | None, container: str | None, engine: str | None) -> Launcher:
    if python is None:
        return launcher_for(container, engine)
    if container is not None:
        raise UsageError("--python and --container exclude each other", hint="give one of them")
    return open_interpreter(python.expanduser().absolute())
