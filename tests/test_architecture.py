# SPDX-License-Identifier: Apache-2.0
"""ARCHITECTURE.md is true: its table of rooms lists every room of `pybench/` and exactly the imports of the code."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pybench"
EVERYBODY_MAY = {"pybench", "errors", "catalogue", "words"}  # the version, the error tree, the rows, the words
GENERATED = {"_native", "_native_build"}


def drawn() -> dict[str, set[str]]:
    """Room -> rooms that it may import, of ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("<!-- rooms -->")[2].partition("<!-- end of rooms -->")[0]
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\|([^|]*)\|$", table, re.MULTILINE)
    return {room: set(imports.split()) for room, imports in rows}


def found() -> dict[str, set[str]]:
    """Room -> rooms that its modules import at run time, anywhere in the code."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        room = _room(path)
        arrows[room] |= _imported_by(path) - {room} - EVERYBODY_MAY - GENERATED
    arrows.pop("pybench")  # whose `load` imports the reading half when it is called
    return dict(arrows)


def _room(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "pybench" if first == "__init__" else first


def _imported_by(path: Path) -> set[str]:
    rooms: set[str] = set()
    for node in _running(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "pybench":
            rooms |= {alias.name for alias in node.names if not alias.name.startswith("__")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pybench."):
            rooms.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("pybench.")}
    return rooms


def _running(tree: ast.AST) -> list[ast.AST]:
    """All nodes but those that only a type checker reads."""
    nodes: list[ast.AST] = []
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        nodes += [child, *_running(child)]
    return nodes


def test_every_room_is_drawn() -> None:
    assert set(drawn()) == set(found()) - GENERATED


def test_the_arrows_are_those_of_the_code() -> None:
    wanted, there = drawn(), found()
    missing = {room: sorted(there[room] - wanted[room]) for room in wanted if there[room] - wanted[room]}
    needless = {room: sorted(wanted[room] - there[room]) for room in wanted if wanted[room] - there[room]}
    assert missing == {}, "imports that ARCHITECTURE.md does not draw"
    assert needless == {}, "arrows of ARCHITECTURE.md that no import needs"


def test_the_contracts_of_both_halves_name_whoever_reads() -> None:
    """A room that imports one of the reading half is forbidden to the measuring half as well."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    reading, measuring = (
        next(one for one in contracts if one["name"].startswith(f"the {half} half"))
        for half in ("reading", "measuring")
    )
    rooms = {name.removeprefix("pybench.") for name in reading["source_modules"]}
    readers = {room for room, imports in found().items() if imports & rooms} | rooms
    forbidden = {name.removeprefix("pybench.") for name in measuring["forbidden_modules"]}
    assert readers - forbidden == set()


def test_rooms_are_drawn_from_below() -> None:
    """A room stands below every room that may import it, so there is no circle."""
    order = list(drawn())
    for room, imports in drawn().items():
        assert [each for each in sorted(imports) if order.index(each) > order.index(room)] == [], room
