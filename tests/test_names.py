# SPDX-License-Identifier: Apache-2.0
"""One row per thing: outside the catalogue and a thing's own module, code asks rows and compares no names.

A comparison of a case's workload, runtime, model or provider with a literal, or a table with two such names, shows that
a row lacks a property. What remains is listed here, each with its reason. And one word for one thing: no class name is
given twice, with a leading underscore or without.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pybench.catalogue.models import MODELS
from pybench.catalogue.runtimes import RUNTIMES
from pybench.catalogue.workloads import WORKLOADS

PACKAGE = Path(__file__).parents[1] / "pybench"
KINDS = {
    "workload": set(WORKLOADS),
    "runtime": set(RUNTIMES),
    "model": set(MODELS),
    "provider": {backend.name for runtime in RUNTIMES.values() for backend in runtime.backends},
}
MOST = 6  # comparisons, and tables

_OPTIONS = "onnxruntime's own options: each provider has other ones, and no other file knows them"
_AUDIT = "onnxruntime's own audit: each provider tells in another way what it executed"

# "file: line of code" -> why it stays
COMPARISONS = {
    "providers.py: provider == 'cpu'": _OPTIONS,
    "providers.py: provider == 'cuda'": _OPTIONS,
    "audits.py: provider == 'tensorrt'": _AUDIT,
    "audits.py: provider == 'cuda'": _AUDIT,
}
TABLES = {"providers.py: ('cpu', 'cuda', 'tensorrt')": _OPTIONS}


def _own_modules() -> set[Path]:
    """Files of the things themselves: those that rows name."""
    named = [row.module for row in (*WORKLOADS.values(), *RUNTIMES.values())]
    named += [row.build.partition(":")[0] for row in MODELS.values()]
    return {path for name in named for path in _files(PACKAGE.parent.joinpath(*name.split(".")))}


def _files(module: Path) -> list[Path]:
    return sorted(module.rglob("*.py")) if module.is_dir() else [module.with_suffix(".py")]


def _sources() -> list[Path]:
    own = _own_modules()
    return [path for path in PACKAGE.rglob("*.py") if path not in own and "catalogue" not in path.parts]


def _name_of(node: ast.expr) -> str | None:
    """The last word of `case.runtime`, `self.case.runtime`, `runtime`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _texts(node: ast.expr) -> set[str]:
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def comparisons(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for kind, names in KINDS.items():
            if any(_name_of(side) == kind for side in sides) and any(_texts(side) & names for side in sides):
                yield node


def tables(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        items: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            items = list(node.keys)
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            items = list(node.elts)
        texts = {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}
        if any(len(texts & names) > 1 and texts <= names for names in KINDS.values()):
            assert isinstance(node, ast.expr)
            yield node


def _found(find: object) -> dict[str, str]:
    assert callable(find)
    places = {}
    for path in _sources():
        for node in find(ast.parse(path.read_text(encoding="utf-8"))):
            places[f"{path.name}: {ast.unparse(node)}"] = f"line {node.lineno}"
    return places


def test_names_are_compared_only_where_a_reason_is_listed() -> None:
    found = _found(comparisons)
    assert {place: line for place, line in found.items() if place not in COMPARISONS} == {}
    assert set(COMPARISONS) <= set(found), "listed, and no longer in the code"
    assert len(COMPARISONS) <= MOST


def test_names_stand_in_tables_only_where_a_reason_is_listed() -> None:
    found = _found(tables)
    assert {place: line for place, line in found.items() if place not in TABLES} == {}
    assert set(TABLES) <= set(found), "listed, and no longer in the code"
    assert len(TABLES) <= MOST


def test_the_search_sees_what_it_looks_for() -> None:
    tree = ast.parse("x = case.runtime == 'torch'; y = workload in ('train', 'infer'); z = {'torch': 1, 'tensorrt': 2}")
    assert [ast.unparse(node) for node in comparisons(tree)] == [
        "case.runtime == 'torch'",
        "workload in ('train', 'infer')",
    ]
    assert [ast.unparse(node) for node in tables(tree)] == ["{'torch': 1, 'tensorrt': 2}", "('train', 'infer')"]


def classes(trees: dict[str, ast.AST]) -> dict[str, list[str]]:
    """Name of a class, without leading underscores -> the files that define one of this name."""
    found: dict[str, list[str]] = {}
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.lstrip("_"), []).append(file)
    return found


def test_a_class_name_is_given_once() -> None:
    trees: dict[str, ast.AST] = {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")
    }
    found = classes(trees)
    assert len(found) > 300
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_a_class_name_that_is_given_twice_is_seen() -> None:
    trees: dict[str, ast.AST] = {
        "a.py": ast.parse("class One: pass\nclass Other: pass"),
        "b.py": ast.parse("def f():\n    class _One: pass"),
    }
    assert classes(trees) == {"One": ["a.py", "b.py"], "Other": ["a.py"]}
