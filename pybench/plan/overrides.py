# SPDX-License-Identifier: Apache-2.0
"""`--set a.b=v`: changes to a plan's tree from the command line, before anything is judged.

A path is keys and list indices joined by dots (`matrix.0.batch=[1, 2]`); the value is YAML. An option of an installed
package is one key, although it has a dot (`matrix.0.sorting.count=5`). A key that the plan does
not have yet is added, so that defaults can be changed. Whether it is a valid key is judged with the rest of the plan,
and problems of the new value name the override.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pybench.document import Node, Place, Unplaced, parse_text
from pybench.errors import PlanError, Problem
from pybench.plan.values import nearest


def apply_overrides(
    root: Node, overrides: Sequence[str], file: str, known: Collection[str] = ()
) -> tuple[Node, tuple[Problem, ...]]:
    """The tree with every override in turn, and what is wrong with those that could not be applied.

    `known`: the factors and options that there are.
    """
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
            root = _set(root, _steps(root, path.strip().split("."), known), value, place)
        except PlanError as error:
            problems.extend(error.problems)
        except _NoSuchPath as error:
            problems.append(place.problem(error.what, error.hint))
    return root, tuple(problems)


class _NoSuchPath(Unplaced):
    """The plan has no such place."""


def _steps(root: Node, words: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """The keys and indices of a path. Words of a key with dots are joined: a key of the plan, else a known one."""
    steps: list[str] = []
    node: Node | None = root
    rest = tuple(words)
    while rest:
        keys = () if node is None or node.children is None else node.children
        joined = [".".join(rest[:count]) for count in range(len(rest), 0, -1)]
        step = next((key for key in joined if key in keys), None) or next(
            (key for key in joined if key in known), rest[0]
        )
        steps.append(step)
        rest = rest[step.count(".") + 1 :]
        node = _below(node, step)
    return tuple(steps)


def _below(node: Node | None, step: str) -> Node | None:
    """What the plan has there; None: nothing."""
    if node is not None and node.items is not None:
        return node.items[int(step)] if step.isdecimal() and int(step) < len(node.items) else None
    return None if node is None else (node.children or {}).get(step)


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
