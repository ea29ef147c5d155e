# SPDX-License-Identifier: Apache-2.0
"""`environments` of a plan: interpreters and container images, by the names that the factor `environment` has.

A plan is also written where these are not, so a path that does not exist is no fault of the plan.
Whether something is there, has its digest, and what it has installed, is `pybench.machine`'s question.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pybench.campaign.environments import REGISTRY, PlannedEnvironment
from pybench.document import Node, Place
from pybench.document.keys import described
from pybench.errors import Problem
from pybench.plan.cells import Cell, Setting
from pybench.plan.keys import ENVIRONMENT_KEYS, ENVIRONMENTS, IMAGE_DIGEST
from pybench.plan.settings import NAME
from pybench.plan.values import nearest

FACTOR = "environment"
_HOST = re.compile(r"localhost|[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?|[a-z0-9-]+:[0-9]+")


@dataclass(frozen=True, slots=True)
class PlanEnvironments:
    """The environments of one plan.

    planned: name -> where it is; links stay, because a virtual environment's interpreter is one
    places: name -> where its path or image is written
    names: all names that are defined, those with a problem too
    """

    planned: Mapping[str, PlannedEnvironment] = field(default_factory=dict)
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
    planned, places, problems = {}, {}, []
    for name, child in node.children.items():
        found = [*_named_wrongly(name, node), *_keyed_wrongly(name, child)]
        if not found:
            ((key, written),) = (child.children or {}).items()
            found = list(_written_wrongly(name, key, written, folder))
            places[name] = written.place
            if not found:
                planned[name] = _KEYS[key].planned(str(written.plain()), folder)
        problems += found
    return PlanEnvironments(planned, places, frozenset(node.children), tuple(problems))


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
    unknown = [key for key in node.children if key not in ENVIRONMENT_KEYS]
    for key in unknown:
        hint = nearest(key, ENVIRONMENT_KEYS) or f"valid keys here: {', '.join(ENVIRONMENT_KEYS)}"
        yield node.key_place((key,)).problem(f"unknown key `{key}`", hint)
    given = [f"`{key}`" for key in ENVIRONMENT_KEYS if key in node.children]
    if len(given) > 1 or not (given or unknown):  # an unknown key may be one of them, misspelt
        what = f"takes {' or '.join(f'`{key}`' for key in ENVIRONMENT_KEYS)}; not {' and '.join(given) or 'nothing'}"
        hint = "; ".join(f"`{key}`: {meaning}" for key, meaning in ENVIRONMENT_KEYS.items())
        yield node.place.problem(f"environment {name} {what}", hint)


def _written_wrongly(name: str, key: str, node: Node, folder: Path) -> Iterator[Problem]:
    given, key_row = node.plain(), _KEYS[key]
    if isinstance(given, str) and given.strip():
        yield from key_row.problems(name, given, node.place, folder)
    else:
        yield node.place.problem(f"`{key}` takes {key_row.takes}; not {described(given)}", f"as in {key_row.example}")


def _path_problems(name: str, given: str, place: Place, folder: Path) -> Iterator[Problem]:
    path = _absolute(given, folder)
    if path.is_dir():
        inside = path / "bin" / "python"
        hint = f"write {given.rstrip('/')}/bin/python" if inside.exists() else "give the interpreter in it"
        yield place.problem(f"environment {name}: {given} is a folder", hint)
    elif path.exists() and not os.access(path, os.X_OK):
        yield place.problem(f"environment {name}: {given} cannot be executed", "give the path of a Python")


def _image_problems(name: str, given: str, place: Place, folder: Path) -> Iterator[Problem]:
    image, at, digest = given.rpartition("@")
    if not (image if at else digest).removeprefix(REGISTRY):
        yield place.problem(f"environment {name}: {given} names no image", f"as in {_KEYS['image'].example}")
    elif not at:
        asked = f"pybench doctor --container {shlex.quote(given)}"
        if _is_in_registry(given, folder):
            asked = f"skopeo inspect --format '{{{{.Digest}}}}' {REGISTRY}{given.removeprefix(REGISTRY)}"
        hint = f"`{asked}` prints it; write {given}@sha256:..."
        yield place.problem(f"environment {name}: the image {given} is named without its digest", hint)
    elif not re.fullmatch(IMAGE_DIGEST, f"@{digest}"):
        what = f"environment {name}: {digest or 'nothing'} is no digest"
        yield place.problem(what, "write sha256: and 64 digits of 0-9a-f")
    elif image.startswith(REGISTRY) and "/" not in image.removeprefix(REGISTRY):
        what = f"environment {name}: {image} has neither a host nor a folder"
        yield place.problem(what, f"as in {REGISTRY}docker.io/library/{image.removeprefix(REGISTRY)}@{digest}")


def _planned_python(given: str, folder: Path) -> PlannedEnvironment:
    return PlannedEnvironment(python=str(_absolute(given, folder)))


def _planned_image(given: str, folder: Path) -> PlannedEnvironment:
    image, _, digest = given.rpartition("@")
    in_registry = _is_in_registry(image, folder)
    name = REGISTRY + image.removeprefix(REGISTRY) if in_registry else str(_absolute(image, folder))
    return PlannedEnvironment(image=f"{name}@{digest}")


def _is_in_registry(image: str, folder: Path) -> bool:
    """A name begins with a host, which has a dot or a port or is localhost; a file of the same name goes first."""
    host, _, name = image.removeprefix(REGISTRY).partition("/")
    is_name = image.startswith(REGISTRY) or (name != "" and _HOST.fullmatch(host) is not None)
    return is_name and not _absolute(image, folder).exists()


@dataclass(frozen=True, slots=True)
class _EnvironmentKey:
    """What a key of an environment takes.

    problems: of the environment's name, what is written, its place and the plan's folder
    planned: of what is written and the plan's folder, where there is no problem
    """

    takes: str
    example: str
    problems: Callable[[str, str, Place, Path], Iterator[Problem]]
    planned: Callable[[str, Path], PlannedEnvironment]


_KEYS = {
    "python": _EnvironmentKey(
        "the path of an interpreter", "/opt/envs/torch211/bin/python", _path_problems, _planned_python
    ),
    "image": _EnvironmentKey(
        "a container image with its digest", "images/stack.oci.tar@sha256:0123...", _image_problems, _planned_image
    ),
}


def _absolute(given: str, folder: Path) -> Path:
    path = Path(given)
    with contextlib.suppress(RuntimeError):  # `~name` of a user that there is not
        path = path.expanduser()
    return (folder / path).absolute()


def _example(name: object) -> str:
    return f"as in `{ENVIRONMENTS}: {{{name}: {{python: /opt/envs/{name}/bin/python}}}}`"
