# SPDX-License-Identifier: Apache-2.0
"""`pybench doctor`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from pybench import machine
from pybench.cli.containers import launcher_for
from pybench.cli.options import ContainerOption, EngineOption
from pybench.cli.show import print_json


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    container: ContainerOption = None,
    engine: EngineOption = None,
) -> None:
    """Print what this machine can measure, and what is missing."""
    from pybench.catalogue.installed import installed

    found = installed()
    plugins = dict.fromkeys(row.plugin.fact for row in found.catalogue.added() if row.plugin is not None)
    facts = machine.ask((*machine.EVERYTHING, *plugins), launcher_for(container, engine))
    findings = [*machine.diagnose(facts), *machine.diagnose_packages(found, facts)]
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings], "facts": facts})
        return
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{finding.status:<3}  {finding.what:<{width}}  {finding.detail}")
        if finding.hint:
            print(f"{'':<3}  {'':<{width}}  -> {finding.hint}")
