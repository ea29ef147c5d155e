# SPDX-License-Identifier: Apache-2.0
"""The environments of a plan as this machine has them: each started, and asked for what its cases need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.campaign.environments import KnownEnvironment, PlannedEnvironment
from pybench.campaign.recipe import packages_of
from pybench.case import Case
from pybench.catalogue.packages import PACKAGES, fact_of
from pybench.catalogue.plugins import Plugin
from pybench.errors import InputError, PybenchError, RefusedValue, RefusedValuesError
from pybench.launcher import Container, Launcher, install_command, look_inside, open_container, open_interpreter
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


def open_quietly(image: str) -> Container:
    """The container of an image, by the first engine that can run it, without a word."""
    return open_container(image, None, lambda _: None)


def open_environments(
    cases: Sequence[Case],
    planned: Mapping[str, PlannedEnvironment],
    native_build_id: str,
    open_image: Callable[[str], Container] = open_quietly,
) -> dict[str, Environment]:
    """The environments of these cases, by their names.

    planned: name -> where it is
    native_build_id: of the compiled part of pybench, which has to be that of each image
    open_image: `NAME@sha256:DIGEST` -> what starts workers in it

    Raises RefusedValuesError with every environment that cannot run its cases, before any of them runs.
    """
    found, refused = {}, []
    for name in dict.fromkeys(case.environment for case in cases if case.environment is not None):
        try:
            opened = _opened(planned[name], open_image)
            found[name] = _asked(opened, [case for case in cases if case.environment == name], native_build_id)
        except PybenchError as error:  # also of an engine, as where the registry of an image does not answer
            refused.append(RefusedValue("environment", name, f"{name}: {error.message}", error.hint))
    if refused:
        raise RefusedValuesError(refused)
    return found


@dataclass(frozen=True, slots=True)
class _Opened:
    """An environment before it was asked for what its cases need.

    where: what errors call it
    install: distributions -> what installs them, to be typed or done
    """

    launcher: Launcher
    known: KnownEnvironment
    where: str
    install: Callable[[Sequence[str]], str]


def _opened(planned: PlannedEnvironment, open_image: Callable[[str], Container]) -> _Opened:
    return _opened_python(Path(planned.text)) if planned.image is None else _opened_image(open_image(planned.image))


def _opened_python(python: Path) -> _Opened:
    if not python.is_absolute():  # of a publication, and a name alone would be looked for on PATH
        hint = "give the plan with its path on this machine: the same packages are the same environment"
        raise InputError(f"{python} is not the whole path of an interpreter", hint=hint)
    interpreter = open_interpreter(python)
    known = KnownEnvironment(interpreter.version, interpreter.packages)
    return _Opened(interpreter, known, str(python), lambda names: install_command(python, names))


def _opened_image(container: Container) -> _Opened:
    inside, image = look_inside(container), container.image
    known = KnownEnvironment(inside.version, inside.packages, image.digest)
    return _Opened(container, known, image.location, lambda names: f"install {', '.join(names)} into the image")


def _asked(opened: _Opened, cases: Sequence[Case], native_build_id: str) -> Environment:
    try:
        facts = ask(needed_facts(cases), opened.launcher)
    except PybenchError as error:  # a package that every worker imports is there and broken
        hint = "make the environment anew"
        raise InputError(f"no worker runs in {opened.where}: {error.message}", hint=hint) from error
    if facts["machine"]["native_build_id"] != native_build_id:
        hint = "build the image from the same sources, or call the pybench that is in it"
        raise InputError(f"the compiled part of pybench in {opened.where} is of other sources", hint=hint)
    _refuse_lacking(opened, cases, facts)
    return Environment(opened.launcher, facts, opened.known)


def _refuse_lacking(opened: _Opened, cases: Sequence[Case], facts: Facts) -> None:
    """Raises InputError where something is not installed that a case names or that makes what it opens.

    A package that adds rows has to be there with the code that the cases were read with."""
    needed = dict.fromkeys(need for case in cases for need in packages_of(case))
    lacking = [need for need in needed if not facts[fact_of(need)]["available"]]
    rows = [PACKAGES[need] for need in lacking if need in PACKAGES]
    installed = [row.distributions[0] for row in rows if row.distributions and not row.is_apart]
    hints = [opened.install(installed)] if installed else []
    hints += [row.install for row in rows if row.is_apart or not row.distributions]
    others = [need for need in lacking if need not in PACKAGES]
    why = [f"{need} cannot be used ({facts[fact_of(need)]['why']})" for need in lacking]
    for plugin in dict.fromkeys(plugin for case in cases for plugin in case.plugins()):
        if refusal := _plugin_refusal(plugin, facts[plugin.fact]):
            why.append(refusal)
            others.append(f"{plugin.distribution} {plugin.version}")
    if why:
        hints += [f"install {', '.join(others)} into it"] if others else []
        raise InputError(f"in {opened.where} {'; '.join(why)}", hint="; ".join(hints))


def _plugin_refusal(plugin: Plugin, fact: Mapping[str, Any]) -> str | None:
    """Why the package there does not do for cases that this one adds rows to."""
    if not fact["available"]:
        return f"{plugin.distribution} cannot be used ({fact['why']})"
    if fact["sha256"] != plugin.sha256:
        return f"{plugin.distribution} {fact['version']} has other code than the {plugin.version} of this plan's rows"
    return None
