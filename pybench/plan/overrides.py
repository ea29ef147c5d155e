# SPDX-License-Identifier: Apache-2.0
"""`--set a.b=v`: changes to a plan's tree from the command line, before anything is judged.

A path is keys and list indices joined by dots (`matrix.0.batch=[1, 2]`); the value is YAML. A key that the plan does
not have yet is added, so that defaults can be changed. Whether it is a valid key is judged with the rest of the plan,
and problems of the new value name the override.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.document import Node, Place, parse_text
from pybench.errors import PlanError, Problem
from pybench.plan.values import nearest


def apply_overrides(root: Node, overrides: Sequence[str], file: str) -> tuple[Node, tuple[Problem, ...]]:
    """The tree with every override in turn, and what is wrong with those that could not be applied."""
    problems: list[Problem] = []
    for override in overrides:
        path, separator, text = override.partition("=")
        place = Place(None, None, override)
        if not separator or not path.strip():
            what = "has no value" if not separator else "has no path"
            problems.append(place.problem(what, "write --set a.b=value, as in --set defaults.iterations=50"))
            continue
        try:
            value, wrong = parse_text(text, file, override) if text.strip() else (Node(place), ())
            problems.extend(wrong)
            root = _set(root, tuple(path.strip().split(".")), value, place)
        except PlanError as error:
            problems.extend(error.problems)
        except _NoSuchPath as error:
            problems.append(place.problem(error.what, error.hint))
    return root, tuple(problems)


class _NoSuchPath(Exception):
    def __init__(self, what: str, hint: str | None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def _set(root: Node, path: tuple[str, ...], value: Node, place: Place) -> Node:
    """The tree with the value at a path; mappings that are absent on the way are made."""
    node = root
    taken: list[str | int] = []
    for depth, step in enumerate(path):
        if node.items is not None:
            index = _index(step, node, path[:depth])
            node = node.items[index]
            taken.append(index)
        elif node.children is not None or node.scalar is None:
            if not step:
                raise _NoSuchPath("the path has an empty step", "write it as in defaults.iterations")
            taken.append(step)
            if step not in (node.children or {}):
                made = value
                for key in reversed(path[depth + 1 :]):
                    _refuse_index(key, path)
                    made = Node(place, children={key: made}, key_places={key: place})
                if node.children is None:  # a key without a value, as in `defaults:`
                    node = Node(place, children={step: made}, key_places={step: place})
                    return root.replaced(tuple(taken[:-1]), node) if taken[:-1] else node
                return root.replaced(tuple(taken), made, place)
            node = (node.children or {})[step]
        else:
            where = ".".join(path[:depth])
            raise _NoSuchPath(f"`{where}` is a value, it has no `{step}`", f"set it as a whole: --set {where}=...")
    return root.replaced(tuple(taken), value, place)


def _index(step: str, node: Node, before: tuple[str, ...]) -> int:
    count = len(node.items or ())
    where = ".".join(before)
    if not step.isdecimal() or int(step) >= count:
        hint = f"it has {count}: write {where}.0" + (f" to {where}.{count - 1}" if count > 1 else "") if count else None
        raise _NoSuchPath(f"`{where}` is a list, it has no `{step}`", hint)
    return int(step)


def _refuse_index(step: str, path: tuple[str, ...]) -> None:
    if step.isdecimal() or not step:
        raise _NoSuchPath(f"the plan has no `{'.'.join(path)}`", nearest(path[0], ("matrix", "criteria", "defaults")))
