# SPDX-License-Identifier: Apache-2.0
"""Where code compares a workload, runtime, model, provider, precision or path with a literal, or has a table of them.

A comparison is `==`, `in`, a `case` of `match`, or `startswith` and its kin. Its other side tells by a word what it is
of: `case.runtime`, `x["runtime"]`, `x.get("runtime")`, `getattr(x, "runtime")`, `runtime_name`, `runtime.name`. A name
that is no word for anything else counts whatever it is compared with, as in `row.name == "tensorrt"`. A literal may be
in a constant, of this module or imported from another one of pybench. A table has two names of one kind, whatever else.

Not seen: a local variable that contains a literal, a name that is put together, a table with one name.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from textwrap import shorten

from pybench.catalogue.models import MODELS
from pybench.catalogue.paths import PATHS
from pybench.catalogue.precisions import NUMBER_TYPES, PRECISIONS
from pybench.catalogue.runtimes import PROVIDERS, RUNTIMES
from pybench.catalogue.workloads import WORKLOADS

PACKAGE = Path(__file__).parents[2] / "pybench"
KINDS = {
    "workload": set(WORKLOADS),
    "runtime": set(RUNTIMES),
    "model": set(MODELS),
    "provider": set(PROVIDERS),
    "precision": set(PRECISIONS),
    "path": set(PATHS),
}
# Words for something else, too: they count only beside a word for the kind.
ALSO = {
    "accuracy": "a validity",
    "train": "a folder of a data set",
    "stack": "an operator",
    "cpu": "a device",
    "cuda": "a device",
    "none": "nothing",
    "python": "a package",
    "hf": "a library of models",
    "rust": "a package",
    "go_rust": "a package",
    "int4": "a type of numbers",
    **dict.fromkeys(NUMBER_TYPES, "a type of numbers"),
}
TYPES = {name for name, meaning in ALSO.items() if meaning == "a type of numbers"}  # a table of them is of types
UNMISTAKABLE = set().union(*KINDS.values()) - set(ALSO)

_TABLES_OF_ROWS = ("WORKLOADS", "RUNTIMES", "MODELS")
_CONTAINERS = ("frozenset", "set", "tuple", "list")
_PARTLY = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "removeprefix": str.startswith,
    "removesuffix": str.endswith,
}

Texts = Mapping[str, set[str]]  # name of a constant -> the texts that it contains
Search = Callable[[ast.Module, Texts], Iterator[ast.AST]]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def sources() -> dict[str, ast.Module]:
    """Path -> the files of pybench but the catalogue and the modules of the things themselves, which rows name."""
    named = [row.module for row in (*WORKLOADS.values(), *RUNTIMES.values())]
    named += [row.build.partition(":")[0] for row in MODELS.values()]
    own = {path for name in named for path in _files(PACKAGE.parent.joinpath(*name.split(".")))}
    own.update((PACKAGE / "catalogue").rglob("*.py"))
    others = sorted(set(PACKAGE.rglob("*.py")) - own)
    return {str(path.relative_to(PACKAGE)): tree_of(path) for path in others}


def _files(module: Path) -> list[Path]:
    return sorted(module.rglob("*.py")) if module.is_dir() else [module.with_suffix(".py")]


def places(search: Search, trees: Mapping[str, ast.Module]) -> Counter[str]:
    """`file: code` -> how often it is there."""
    return Counter(
        f"{path}: {shorten(ast.unparse(node), 48, placeholder=' ...')}"
        for path, tree in trees.items()
        for node in search(tree, constants_of(tree))
    )


# --- comparisons ----------------------------------------------------------------------------------------------------


def comparisons(tree: ast.Module, constants: Texts) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                pairs = [(one, other) for one in sides for other in sides if one is not other]
                if any(_is_name(one, _texts(other, constants)) for one, other in pairs) or _is_part(node, constants):
                    yield node
            case ast.Match(subject=subject, cases=cases):
                yield from (each.pattern for each in cases if _is_name(subject, _texts(each.pattern, constants)))
            case ast.Call(func=ast.Attribute(value=one, attr=method), args=[given]) if method in _PARTLY:
                if _is_like(one, _texts(given, constants), _PARTLY[method]):
                    yield node


def _is_name(one: ast.expr, texts: set[str]) -> bool:
    """Whether one of these texts is a name of what the expression tells to be of."""
    words = _words(one)
    return bool(texts & UNMISTAKABLE) or any(kind in words and texts & names for kind, names in KINDS.items())


def _is_like(one: ast.expr, texts: set[str], is_part: Callable[[str, str], bool]) -> bool:
    words = _words(one)
    return any(kind in words and any(is_part(name, text) for name in KINDS[kind] for text in texts) for kind in KINDS)


def _is_part(node: ast.Compare, constants: Texts) -> bool:
    """`"torch" in case.runtime`"""
    is_in = isinstance(node.ops[0], ast.In | ast.NotIn)
    return is_in and _is_like(node.comparators[0], _texts(node.left, constants), lambda name, text: text in name)


def _words(node: ast.expr) -> set[str]:
    """The words of an expression that tell what it is of."""
    match node:
        case ast.Attribute(value=value, attr="name" | "value") | ast.NamedExpr(value=value):
            return _words(value)
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Constant(value=str(name)):
            return set(name.lower().split("_"))
        case ast.Subscript(value=value, slice=key):
            return _words(key) if isinstance(key, ast.Constant) else _words(value)
        case ast.Call(func=ast.Name(id=name)) if name.endswith("_type"):  # `floating_type(precision)`: no precision
            return set(name.split("_"))
        case ast.Call(func=ast.Attribute(value=value), args=args):  # `case.runtime.lower()`, `x.get("runtime")`
            return _words(value).union(*map(_words, args))
        case ast.Call(args=args) | ast.Tuple(elts=args):  # `str(case.runtime)`, `getattr(case, "runtime")`
            return set().union(*map(_words, args))
    return set()


# --- literals -------------------------------------------------------------------------------------------------------


def constants_of(tree: ast.Module) -> Texts:
    """The texts of a module's own constants, and of those that it imports from pybench by name."""
    return {
        alias.asname or alias.name: _own_constants(path)[alias.name]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (path := _module_of(node)) is not None
        for alias in node.names
        if alias.name in _own_constants(path)
    } | _assigned(tree)


def _module_of(node: ast.ImportFrom) -> Path | None:
    parts = (node.module or "").split(".")
    module = PACKAGE.parent.joinpath(*parts)
    path = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    return path if parts[0] == PACKAGE.name and path.exists() else None


@cache
def _own_constants(path: Path) -> Texts:
    return _assigned(tree_of(path))


def _assigned(tree: ast.Module) -> Texts:
    found: dict[str, set[str]] = {}
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                found[name] = _texts(value, found)
    return {name: texts for name, texts in found.items() if texts}


def _texts(node: ast.AST, constants: Texts) -> set[str]:
    """The texts that a literal contains: a text, a container of texts, a constant, a row by its name, a pattern."""
    inner: Iterable[ast.AST | None] = ()
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.Name(id=name):
            return constants.get(name, set())
        case ast.Tuple(elts=inner) | ast.List(elts=inner) | ast.Set(elts=inner) | ast.Dict(keys=inner):
            pass
        case ast.Call(func=ast.Name(id=name), args=inner) if name in _CONTAINERS:
            pass
        case ast.Subscript(value=ast.Name(id=name), slice=key) if name in _TABLES_OF_ROWS:
            inner = [key]
        case ast.BinOp(left=left, right=right):
            inner = [left, right]
        case ast.Starred(value=value) | ast.MatchValue(value=value):
            inner = [value]
        case ast.MatchOr(patterns=inner):
            pass
        case ast.MatchAs(pattern=ast.pattern() as pattern):
            inner = [pattern]
    return set().union(*(_texts(each, constants) for each in inner if each is not None))


# --- tables ---------------------------------------------------------------------------------------------------------


def tables(tree: ast.Module, constants: Texts) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        entries = _entries(node)
        if any(len(entries & (names - TYPES)) > 1 for names in KINDS.values()):
            yield node


def _entries(node: ast.AST) -> set[str]:
    """The texts of keys, values and items; of a pair in a list, both."""
    match node:
        case ast.Dict(keys=keys, values=values):
            items: list[ast.expr | None] = [*keys, *values]
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            pairs = [each for each in elements if isinstance(each, ast.Tuple)]
            items = [*elements, *(item for pair in pairs for item in pair.elts)]
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            return {each.arg for each in keywords if each.arg is not None}
        case _:
            return set()
    return {each.value for each in items if isinstance(each, ast.Constant) and isinstance(each.value, str)}
