# SPDX-License-Identifier: Apache-2.0
"""`environments` of a plan: interpreters of this machine, by the names that the factor `environment` has.

A plan is also written where its interpreters are not, so a path that does not exist is no fault of the plan.
Whether an interpreter is there, and what it has installed, is `pybench.machine`'s question.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pybench.document import Node, Place
from pybench.document.keys import described
from pybench.errors import Problem
from pybench.plan.cells import Cell, Setting
from pybench.plan.keys import ENVIRONMENT_KEYS, ENVIRONMENTS
from pybench.plan.settings import NAME
from pybench.plan.values import nearest

FACTOR = "environment"


@dataclass(frozen=True, slots=True)
class PlanEnvironments:
    """The environments of one plan.

    pythons: name -> absolute path of its interpreter; links stay, because a virtual environment's is one
    places: name -> where its path is written
    names: all names that are defined, those with a problem too
    """

    pythons: Mapping[str, Path] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()

    def undefined(self, cells: Iterable[Cell], root: Node) -> list[Problem]:
        """One problem for each place that names an environment which the plan does not define."""
        named = dict.fromkeys(cell[FACTOR] for cell in cells if FACTOR in cell)
        return [self._unknown(setting, root) for setting in named if not self._knows(setting)]

    def _knows(self, setting: Setting) -> bool:
        return setting.value is None or setting.value in self.names

    def _unknown(self, setting: Setting, root: Node) -> Problem:
        what = f"`{FACTOR}`: the plan defines no environment {setting.value}"
        defined = ", ".join(sorted(self.names))
        hint = nearest(setting.value, self.names) or (f"it defines {defined}" if defined else _example(setting.value))
        return root.at(setting.path).place.problem(what, hint)

    def unused(self, used: Iterable[str | None], root: Node) -> list[Problem]:
        """Environments that no case has. `used`: values of the factor."""
        left = self.names - set(used)
        hint = f"write it as a value of `{FACTOR}` in `matrix`, or remove it"
        return [
            root.key_place((ENVIRONMENTS, name)).problem(f"no case has the environment {name}", hint)
            for name in sorted(left)
        ]


def read_environments(root: Node, folder: Path) -> PlanEnvironments:
    """What a plan defines. `folder`: of the plan, which paths are relative to."""
    node = (root.children or {}).get(ENVIRONMENTS)
    if node is None or node.is_null:
        return PlanEnvironments()
    if node.children is None:
        what = f"`{ENVIRONMENTS}` takes a mapping of names; not {described(node.plain())}"
        return PlanEnvironments(problems=(node.place.problem(what, _example("torch-2.11")),))
    pythons, places, problems = {}, {}, []
    for name, child in node.children.items():
        found = [*_named_wrongly(name, node), *_keyed_wrongly(name, child)]
        if not found:
            written = (child.children or {})["python"]
            found = list(_path_problems(name, written, folder))
            places[name] = written.place
            if not found:
                pythons[name] = _absolute(str(written.plain()), folder)
        problems += found
    return PlanEnvironments(pythons, places, frozenset(node.children), tuple(problems))


def _named_wrongly(name: str, node: Node) -> Iterator[Problem]:
    if not re.fullmatch(NAME, name):
        what = f"an environment cannot be called {described(name)}"
        hint = "a name has at most 64 letters, digits, `.`, `_`, `-`"
        yield node.key_place((name,)).problem(what, hint)


def _keyed_wrongly(name: str, node: Node) -> Iterator[Problem]:
    if node.children is None:
        what = f"environment {name} takes a mapping; not {described(node.plain())}"
        yield node.place.problem(what, "as in {python: /opt/envs/torch211/bin/python}")
        return
    for key in node.children:
        if key not in ENVIRONMENT_KEYS:
            hint = nearest(key, ENVIRONMENT_KEYS) or f"valid keys here: {', '.join(ENVIRONMENT_KEYS)}"
            yield node.key_place((key,)).problem(f"unknown key `{key}`", hint)
    if "python" not in node.children:
        yield node.place.problem("`python` is missing", ENVIRONMENT_KEYS["python"])


def _path_problems(name: str, node: Node, folder: Path) -> Iterator[Problem]:
    given = node.plain()
    if not isinstance(given, str) or not given.strip():
        what = f"`python` takes the path of an interpreter; not {described(given)}"
        yield node.place.problem(what, "as in /opt/envs/torch211/bin/python")
        return
    path = _absolute(given, folder)
    if path.is_dir():
        inside = path / "bin" / "python"
        hint = f"write {given.rstrip('/')}/bin/python" if inside.exists() else "give the interpreter in it"
        yield node.place.problem(f"environment {name}: {given} is a folder", hint)
    elif path.exists() and not os.access(path, os.X_OK):
        yield node.place.problem(f"environment {name}: {given} cannot be executed", "give the path of a Python")


def _absolute(given: str, folder: Path) -> Path:
    path = Path(given)
    with contextlib.suppress(RuntimeError):  # `~name` of a user that there is not
        path = path.expanduser()
    return (folder / path).absolute()


def _example(name: object) -> str:
    return f"as in `{ENVIRONMENTS}: {{{name}: {{python: /opt/envs/{name}/bin/python}}}}`"
