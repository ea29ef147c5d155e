# SPDX-License-Identifier: Apache-2.0
"""Every name of TensorRT's that pybench uses, read off its source: its calls with their arguments, what it sets.

Variables are known by their names: `ROOTS` are TensorRT's module, `OBJECTS` are instances of its classes. A new
variable that holds one of its objects has to be added here.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "pybench" / "runtimes" / "tensorrt"

# In session.py `library` is pybench's own module.
ROOTS = {
    "building.py": {"library"},
    "inspection.py": {"library"},
    "library.py": {"library", "load()"},
    "session.py": {"trt", "self._library"},
}
OBJECTS = {
    "builder": "Builder",
    "config": "IBuilderConfig",
    "context": "IExecutionContext",
    "engine": "ICudaEngine",
    "execution": "IExecutionContext",
    "inspector": "EngineInspector",
    "network": "INetworkDefinition",
    "parser": "OnnxParser",
    "profile": "IOptimizationProfile",
    "runtime": "Runtime",
    "self._engine": "ICudaEngine",
    "self._execution": "IExecutionContext",
    "self._runtime": "Runtime",
    "tensor": "ITensor",
}
RETURNED = {"get_error": "ParserError", "get_tensor_dtype": "DataType", "get_timing_cache": "ITimingCache"}


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """`owner`: a class, or "" for the module. `arguments`: -1 where it is not called, or with an unpacked list."""

    owner: str
    name: str
    arguments: int
    is_set: bool
    may_be_missing: bool
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.owner or 'tensorrt'}.{self.name}"


def used() -> list[Use]:
    """All uses in the runtime's modules, each once."""
    return sorted({use for file in sorted(SOURCE.glob("*.py")) for use in _uses(file)})


def fed_types() -> set[str]:
    """Names of `DataType` that the session can feed: the keys of its `_DTYPES`."""
    tree = ast.parse((SOURCE / "session.py").read_text())
    tables = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and _is_named(node, "_DTYPES")]
    return {key.value for table in tables if isinstance(table, ast.Dict) for key in table.keys
            if isinstance(key, ast.Constant)}  # fmt: skip


def _is_named(node: ast.Assign, name: str) -> bool:
    return isinstance(node.targets[0], ast.Name) and node.targets[0].id == name


def _uses(file: Path) -> set[Use]:
    roots = ROOTS.get(file.name, set())
    tree = ast.parse(file.read_text())
    calls = {id(function): call for call in ast.walk(tree) if isinstance(call, ast.Call)
             for function in _branches(call.func)}  # fmt: skip
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (owner := _owner(node.value, roots)) is not None:
            is_set = isinstance(node.ctx, ast.Store)
            arguments = -1 if node.attr == "__init__" else _arguments(calls.get(id(node)))  # called with `self`
            found.add(Use(owner, node.attr, arguments, is_set, False, file.name))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            owner, name = _owner(node.args[0], roots), node.args[1]
            if owner is not None and isinstance(name, ast.Constant):
                found.add(Use(owner, str(name.value), -1, False, len(node.args) == 3, file.name))
        elif isinstance(node, ast.ClassDef):
            found |= _overridden(node, roots, file.name)
    return found


def _branches(function: ast.expr) -> list[ast.expr]:
    """`(a if condition else b)(...)` calls both."""
    return [function.body, function.orelse] if isinstance(function, ast.IfExp) else [function]


def _overridden(node: ast.ClassDef, roots: set[str], where: str) -> set[Use]:
    """Methods of a class that derives from one of TensorRT's: they are called with the arguments that it states."""
    owners = [owner for base in node.bases if (owner := _owner(base, roots))]
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name != "__init__"]
    return {Use(owner, each.name, len(each.args.args) - 1, False, False, where) for owner in owners for each in methods}


def _owner(node: ast.expr, roots: set[str]) -> str | None:
    """The class of an expression's value, "" for the module, None for what is not TensorRT's."""
    text = ast.unparse(node)
    if text in roots:
        return ""
    if text in OBJECTS:
        return OBJECTS[text]
    if isinstance(node, ast.Attribute) and _owner(node.value, roots) == "":
        return node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return RETURNED.get(node.func.attr)
    return None


def _arguments(call: ast.Call | None) -> int:
    if call is None or any(isinstance(each, ast.Starred) for each in call.args):
        return -1
    return len(call.args) + len(call.keywords)
