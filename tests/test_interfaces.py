# SPDX-License-Identifier: Apache-2.0
"""The `__all__` of each package is its interface: what others use of it, or what its docstring shows."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for path in (ROOT / "pybench").rglob("__init__.py")
    if "__all__ = " in path.read_text()
)


@functools.cache
def uses() -> dict[tuple[str, str], set[Path]]:
    """Which files name what of which module, by `from module import name` or `module.name`."""
    found: dict[tuple[str, str], set[Path]] = defaultdict(set)
    for folder in ("pybench", "tests", "bench", "containers"):
        for path in (ROOT / folder).rglob("*.py"):
            for use in _uses_of(ast.parse(path.read_text())):
                found[use].add(path)
    return found


def _uses_of(tree: ast.Module) -> set[tuple[str, str]]:
    found, modules = set(), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                found.add((node.module, name.name))
                modules[name.asname or name.name] = f"{node.module}.{name.name}"
        elif isinstance(node, ast.Import):
            for name in node.names:
                top = name.name.partition(".")[0]
                modules[name.asname or top] = name.name if name.asname else top
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, dot, rest = ast.unparse(node.value).partition(".")
            if head in modules:
                found.add((modules[head] + dot + rest, node.attr))
    return found


def outside(package: str, name: str) -> bool:
    """Whether a file that is not the package's own uses the name from it."""
    folder = ROOT.joinpath(*package.split("."))
    return any(not path.is_relative_to(folder) for path in uses()[package, name])


@pytest.mark.parametrize("package", PACKAGES)
def test_what_a_package_exports_is_used_by_others_or_documented(package: str) -> None:
    module = importlib.import_module(package)
    words = set(re.findall(r"\w+", module.__doc__ or ""))
    assert [name for name in module.__all__ if name not in words and not outside(package, name)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_what_others_use_of_a_package_it_exports(package: str) -> None:
    module = importlib.import_module(package)
    modules = {path.stem for path in Path(str(module.__file__)).parent.iterdir()}
    used = {name for owner, name in uses() if owner == package and not name.startswith("_") and outside(package, name)}
    assert used - modules - set(module.__all__) == set()


def test_every_exported_name_exists() -> None:
    lacking = {
        f"{package}.{name}"
        for package in PACKAGES
        for name in importlib.import_module(package).__all__
        if not hasattr(importlib.import_module(package), name)
    }
    assert lacking == set()
