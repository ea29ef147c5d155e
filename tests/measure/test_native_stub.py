# SPDX-License-Identifier: Apache-2.0
"""`_native.pyi` is what the compiled module is: the same names, and each function's parameters, defaults and types.

pybind11 writes a signature, valid Python, as the first line of each docstring; numbers and arrays are wider there.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybench import _native

STUB = ast.parse((Path(__file__).parents[2] / "pybench/_native.pyi").read_text())
WIDER = [
    (r"pybench\._native\.", ""),
    (r"typing\.SupportsInt \| typing\.SupportsIndex", "int"),
    (r"typing\.SupportsFloat \| typing\.SupportsIndex", "float"),
    (r"typing\.Annotated\[numpy\.typing\.ArrayLike, numpy\.(\w+)\]", r"NDArray[np.\1]"),
    (r"numpy\.typing\.NDArray\[numpy\.(\w+)\]", r"NDArray[np.\1]"),
    (r"collections\.abc\.Sequence\[", "list["),
]


def stubbed(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """The definitions of a module or class by name."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function, method and property of the stub, with its dotted name."""
    for name, node in stubbed(STUB.body).items():
        if isinstance(node, ast.FunctionDef):
            yield name, node
        elif isinstance(node, ast.ClassDef):
            for member, inner in stubbed(node.body).items():
                if isinstance(inner, ast.FunctionDef):
                    yield f"{name}.{member}", inner


def compiled(dotted: str) -> Any:
    """A function of the module, or the getter of a property."""
    owner, _, name = dotted.rpartition(".")
    found = inspect.getattr_static(getattr(_native, owner), name) if owner else getattr(_native, name)
    if isinstance(found, property):
        return found.fget
    return getattr(_native, owner).__dict__[name].__get__(None, object) if isinstance(found, staticmethod) else found


def bound_signature(dotted: str) -> ast.FunctionDef:
    """The signature that pybind11 wrote, in the stub's terms."""
    text = str(compiled(dotted).__doc__).splitlines()[0]
    for pattern, replacement in WIDER:
        text = re.sub(pattern, replacement, text)
    text = re.sub(r"^\w*\((arg0|self): \w+", f"{dotted.rpartition('.')[2]}(self", text)
    tree = ast.parse(f"def {text}: ...")
    assert isinstance(tree.body[0], ast.FunctionDef)
    return tree.body[0]


def parameters(node: ast.FunctionDef) -> list[tuple[str, bool, str | None]]:
    """Name, keyword-only or not, and default of each."""
    positional, by_name = node.args.args, node.args.kwonlyargs
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults)) + [*node.args.defaults]
    given = [(one.arg, False, default) for one, default in zip(positional, defaults, strict=True)]
    given += [(one.arg, True, default) for one, default in zip(by_name, node.args.kw_defaults, strict=True)]
    return [(name, keyword, ast.unparse(default) if default else None) for name, keyword, default in given]


def types(node: ast.FunctionDef) -> list[str]:
    """The parameters' types and the returned one; what is not annotated is `object`."""
    annotated = [one.annotation for one in (*node.args.args, *node.args.kwonlyargs) if one.arg != "self"]
    return [ast.unparse(one) if one is not None else "object" for one in (*annotated, node.returns)]


def agree(bound: str, stub: str) -> bool:
    """Whether one type is the other; `object` says nothing, and a bare `dict` nothing of what is inside."""
    pattern = re.sub(r"\bobject\b", ".*", re.escape(bound))
    return re.fullmatch(re.sub(r"\bdict$", r"dict\\[.*\\]", pattern), stub) is not None


def test_the_module_has_the_names_of_the_stub() -> None:
    assert {name for name in vars(_native) if not name.startswith("_")} == set(stubbed(STUB.body))


@pytest.mark.parametrize("name", [node.name for node in STUB.body if isinstance(node, ast.ClassDef)])
def test_every_class_has_the_members_of_the_stub(name: str) -> None:
    of_module = {member for member in vars(getattr(_native, name)) if not member.startswith("_")}
    node = stubbed(STUB.body)[name]
    assert isinstance(node, ast.ClassDef)
    of_instances = {member for member, inner in stubbed(node.body).items() if isinstance(inner, ast.AnnAssign)}
    assert of_module == set(stubbed(node.body)) - {"__init__"} - of_instances
    assert ("__init__" in stubbed(node.body)) is ("pybench" in str(getattr(_native, name).__init__.__doc__))


@pytest.mark.parametrize(("dotted", "node"), [pytest.param(*found, id=found[0]) for found in functions()])
def test_every_function_has_the_signature_of_the_stub(dotted: str, node: ast.FunctionDef) -> None:
    bound = bound_signature(dotted)
    assert parameters(bound) == parameters(node)
    unequal = [pair for pair in zip(types(bound), types(node), strict=True) if not agree(*pair)]
    assert not unequal
