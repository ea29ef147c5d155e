# SPDX-License-Identifier: Apache-2.0
"""The environments of a plan as this machine has them: each interpreter started, and asked for what its cases need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.campaign.environments import KnownEnvironment
from pybench.campaign.recipe import packages_of
from pybench.case import Case
from pybench.catalogue.packages import PACKAGES, fact_of
from pybench.catalogue.plugins import Plugin
from pybench.errors import InputError, PybenchError, RefusedValue, RefusedValuesError
from pybench.launcher import Launcher, install_command, open_interpreter
from pybench.machine.facts import Facts, ask, needed_facts


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment on this machine.

    launcher: starts workers in it
    facts: what a worker in it told about the machine and the packages that the cases need
    """

    launcher: Launcher
    facts: Facts
    known: KnownEnvironment


def open_environments(cases: Sequence[Case], pythons: Mapping[str, str]) -> dict[str, Environment]:
    """The environments of these cases, by their names. `pythons`: name -> path of the interpreter.

    Raises RefusedValuesError with every environment that cannot run its cases, before any of them runs.
    """
    found, refused = {}, []
    for name in dict.fromkeys(case.environment for case in cases if case.environment is not None):
        try:
            found[name] = _opened(Path(pythons[name]), [case for case in cases if case.environment == name])
        except InputError as error:
            refused.append(RefusedValue("environment", name, f"{name}: {error.message}", error.hint))
    if refused:
        raise RefusedValuesError(refused)
    return found


def _opened(python: Path, cases: Sequence[Case]) -> Environment:
    if not python.is_absolute():  # of a publication, and a name alone would be looked for on PATH
        hint = "give the plan with its path on this machine: the same packages are the same environment"
        raise InputError(f"{python} is not the whole path of an interpreter", hint=hint)
    interpreter = open_interpreter(python)
    try:
        facts = ask(needed_facts(cases), interpreter)
    except PybenchError as error:  # a package that every worker imports is there and broken
        raise InputError(f"no worker runs in {python}: {error.message}", hint="make the environment anew") from error
    _refuse_lacking(python, cases, facts)
    return Environment(interpreter, facts, KnownEnvironment(interpreter.version, interpreter.packages))


def _refuse_lacking(python: Path, cases: Sequence[Case], facts: Facts) -> None:
    """Raises InputError where something is not installed that a case names or that makes what it opens.

    A package that adds rows has to be there with the code that the cases were read with."""
    needed = dict.fromkeys(need for case in cases for need in packages_of(case))
    lacking = [need for need in needed if not facts[fact_of(need)]["available"]]
    rows = [PACKAGES[need] for need in lacking if need in PACKAGES]
    installed = [row.distributions[0] for row in rows if row.distributions and not row.is_apart]
    hints = [install_command(python, installed)] if installed else []
    hints += [row.install for row in rows if row.is_apart or not row.distributions]
    others = [need for need in lacking if need not in PACKAGES]
    why = [f"{need} cannot be used ({facts[fact_of(need)]['why']})" for need in lacking]
    for plugin in dict.fromkeys(plugin for case in cases for plugin in case.plugins()):
        if refusal := _plugin_refusal(plugin, facts[plugin.fact]):
            why.append(refusal)
            others.append(f"{plugin.distribution} {plugin.version}")
    if why:
        hints += [f"install {', '.join(others)} into it"] if others else []
        raise InputError(f"in {python} {'; '.join(why)}", hint="; ".join(hints))


def _plugin_refusal(plugin: Plugin, fact: Mapping[str, Any]) -> str | None:
    """Why the package there does not do for cases that this one adds rows to."""
    if not fact["available"]:
        return f"{plugin.distribution} cannot be used ({fact['why']})"
    if fact["sha256"] != plugin.sha256:
        return f"{plugin.distribution} {fact['version']} has other code than the {plugin.version} of this plan's rows"
    return None
