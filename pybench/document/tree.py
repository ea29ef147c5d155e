# SPDX-License-Identifier: Apache-2.0
"""A YAML text as a tree of values in which every key and value knows its line and column.

Reads YAML 1.2 by its core schema (section 10.3 of the specification, yaml.org/spec/1.2.2): `on` and `off` are text,
`012` is twelve, `1e-3` is a number, a date is text. ruamel.yaml scans and parses; the tree is composed here, because
positions of every scalar, all duplicate keys at once and bounded aliases are what its own constructors do not offer.

Anchors, aliases and merge keys (`<<`) are read. Tags, several documents in one file and keys that are no text are not.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from ruamel.yaml import YAML
from ruamel.yaml import events as yaml_events
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.parser import ParserError
from ruamel.yaml.reader import ReaderError

from pybench.errors import MalformedError, PlanError, Problem

MAXIMUM_BYTES = 1_000_000  # a plan is written by hand: more than this is another file
MAXIMUM_VALUES = 20_000  # after aliases are followed; bounds what nested aliases can multiply to
MAXIMUM_DEPTH = 30  # a plan needs seven levels

Scalar = str | int | float | bool | None
Plain = Scalar | list["Plain"] | dict[str, "Plain"]

_Content = (
    yaml_events.MappingStartEvent | yaml_events.SequenceStartEvent | yaml_events.ScalarEvent | yaml_events.AliasEvent
)
_Events = Iterator[_Content | yaml_events.CollectionEndEvent]  # of one document; others are passed over


@dataclass(frozen=True, slots=True)
class FileKind:
    """What errors say of a file.

    name: what the file is, as in `plan`
    first: a hint how to get a first one
    error: what a malformed one raises
    """

    name: str
    first: str
    error: type[MalformedError]


# Key that only one kind of file has -> that kind, and what takes such a file.
_TELLING = {"matrix": ("plan", "`pybench run` takes it"), "query": ("scenario", "`pybench project` takes it")}
A_PLAN = FileKind("plan", "`pybench init` writes a first plan", PlanError)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: line and column from 1, or the `--set` that it came from."""

    line: int | None
    column: int | None
    override: str | None = None

    def problem(self, what: str, hint: str | None = None) -> Problem:
        said = what if self.override is None else f"--set {self.override}: {what}"
        return Problem(said, self.line, self.column, hint)


class Unplaced(Exception):
    """A problem, and what to do about it, where only whoever catches it knows the place."""

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Node:
    """One value. A mapping has `children` by key and the places of the keys, a list `items`, a scalar neither."""

    place: Place
    scalar: Scalar = None
    children: Mapping[str, Node] | None = None
    items: tuple[Node, ...] | None = None
    key_places: Mapping[str, Place] = field(default_factory=dict)
    size: int = 1

    @property
    def is_null(self) -> bool:
        return self.children is None and self.items is None and self.scalar is None

    def plain(self) -> Plain:
        """The value as dicts, lists and scalars."""
        if self.children is not None:
            return {key: child.plain() for key, child in self.children.items()}
        if self.items is not None:
            return [item.plain() for item in self.items]
        return self.scalar

    def steps(self, path: tuple[str | int, ...]) -> tuple[tuple[str | int, Node], ...]:
        """The steps of a path as far as they exist, each with the node it leads to. Where a single value stands for a
        list of one, its index is passed over."""
        node = self
        taken: list[tuple[str | int, Node]] = []
        for step in path:
            if isinstance(step, str) and node.children is not None and step in node.children:
                node = node.children[step]
            elif isinstance(step, int) and node.items is not None and 0 <= step < len(node.items):
                node = node.items[step]
            elif isinstance(step, int) and node.items is None:
                continue
            else:
                break
            taken.append((step, node))
        return tuple(taken)

    def at(self, path: tuple[str | int, ...]) -> Node:
        """The node at a path, or the last one on the way to it."""
        steps = self.steps(path)
        return steps[-1][1] if steps else self

    def replaced(self, path: tuple[str | int, ...], new: Node | None, key_place: Place | None = None) -> Node:
        """A copy with the node at a path, whose every step but the last exists, set anew or (None) taken out.

        A list keeps its length: what is taken out of it becomes an empty mapping, so that later indices stay right.
        """
        step, rest = path[0], path[1:]
        if isinstance(step, int):
            items = list(self.items or ())
            items[step] = (
                items[step].replaced(rest, new, key_place) if rest else new or Node(items[step].place, children={})
            )
            return replace(self, items=tuple(items))
        children, places = dict(self.children or {}), dict(self.key_places)
        if rest:
            children[step] = children[step].replaced(rest, new, key_place)
        elif new is None:
            del children[step]
        else:
            children[step] = new
            places[step] = key_place or places.get(step, new.place)
        return replace(self, children=children, key_places=places)

    def key_place(self, path: tuple[str | int, ...]) -> Place:
        """Where the last key of a path is written; without one, where its value is."""
        parent = self.at(path[:-1])
        return parent.key_places.get(str(path[-1]), self.at(path).place) if path else self.place


@dataclass(frozen=True, slots=True)
class Document:
    """A file's bytes, its tree, and what is wrong with it that does not hide the rest (duplicate keys, tags)."""

    source: bytes
    root: Node
    problems: tuple[Problem, ...]


def read_document(path: Path, kind: FileKind = A_PLAN) -> Document:
    """The tree of a file; `kind.error` where it cannot be read, or not as YAML."""
    source = _read(path, kind)
    root, problems = parse_text(_decode(source, str(path), kind), str(path), kind=kind)
    return Document(source, root, problems)


def read_text(path: Path, kind: FileKind) -> str:
    """The text of a file that `read_document` would read."""
    return _decode(_read(path, kind), str(path), kind)


def parse_text(
    text: str, file: str, override: str | None = None, kind: FileKind = A_PLAN
) -> tuple[Node, tuple[Problem, ...]]:
    """The tree of a text and what is wrong beside; with `override`, every place in it is that `--set`.

    Raises `kind.error` where reading cannot go on.
    """
    composer = _Composer(text, override, kind)
    try:
        root = composer.compose()
        if override is None:
            _refuse_other_kind(root, kind)
        return root, tuple(composer.problems)
    except (YAMLError, ValueError) as error:
        raise kind.error(file, [*composer.problems, _syntax_problem(error, text, override)]) from error
    except _Refused as refused:
        raise kind.error(file, [*composer.problems, refused.problem]) from refused


# --- bytes and text -------------------------------------------------------------------------------------------------


def _read(path: Path, kind: FileKind) -> bytes:
    def refuse(what: str, hint: str) -> MalformedError:
        return kind.error(str(path), [Problem(what, hint=hint)])

    try:
        if path.is_dir():
            files = sorted(str(file) for file in path.glob("*.y*ml"))[:3]
            hint = f"give the YAML file in it: {', '.join(files)}" if files else f"no YAML file is in it; {kind.first}"
            raise refuse(f"is a folder, not a {kind.name}", hint)
        with open(path, "rb") as file:
            source = file.read(MAXIMUM_BYTES + 1)
    except FileNotFoundError as error:
        near = sorted(str(other) for other in path.parent.glob("*.y*ml"))[:3] if path.parent.is_dir() else []
        hint = f"similar files: {', '.join(near)}" if near else kind.first
        raise refuse("no such file", hint) from error
    except (OSError, ValueError) as error:
        raise refuse(f"cannot be read: {getattr(error, 'strerror', None) or error}", "check the name") from error
    if len(source) > MAXIMUM_BYTES:
        raise refuse(
            f"is larger than {MAXIMUM_BYTES} bytes", f"give the path of a {kind.name}, which is a small YAML file"
        )
    if not source.strip():
        raise refuse("is empty", kind.first)
    return source


def _decode(source: bytes, file: str, kind: FileKind) -> str:
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = source[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8-sig", "replace")) + 1
        what = f"not UTF-8: byte 0x{source[error.start]:02x}"
        raise kind.error(file, [Problem(what, line, column, "save the file as UTF-8")]) from error


def _syntax_problem(error: Exception, text: str, override: str | None) -> Problem:
    """One sentence from what ruamel.yaml says, at the place that it names."""
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        what = ", ".join(str(part) for part in (error.context, error.problem) if part) or "malformed"
        if isinstance(error, ParserError) and str(error.problem or error.context).startswith(_EXPECTED_END):
            what = _AFTER_THE_END
        if mark and error.context_mark and error.context_mark.line != mark.line and override is None:
            what += f"; it began on line {error.context_mark.line + 1}"
        line, column, index = (mark.line + 1, mark.column + 1, mark.index) if mark else (None, None, -1)
        hint = (
            "indent with spaces, not tabs"
            if text[index : index + 1] == "\t"
            else _syntax_hint(what, text, index, override)
        )
    elif isinstance(error, ReaderError):
        line, column = _line_and_column(text, int(error.position))
        what, hint = f"character U+{ord(text[int(error.position)]):04X} is not allowed in YAML", None
    else:
        line, column, what, hint = None, None, str(error).splitlines()[0], None
    place = Place(line, column) if override is None else Place(None, None, override)
    return place.problem(f"not YAML: {what}", hint)


_EXPECTED_END = "expected '<document start>'"
_AFTER_THE_END = "text after the end of a value"


def _syntax_hint(what: str, text: str, index: int, override: str | None) -> str | None:
    if what.startswith(_AFTER_THE_END):
        return "every line is `key: value`, or belongs to the line above it and is indented"
    if index >= len(text.rstrip()) and override is None:
        return "the file ends too early: check that it is complete"
    if "mapping values are not allowed" in what:
        return "quote text that contains `: `, and check the indentation"
    return None


def _line_and_column(text: str, index: int) -> tuple[int, int]:
    before = text[:index]
    return before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1


# --- events to tree -------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """What makes reading on pointless."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.what)
        self.problem = problem


def _refuse_other_kind(root: Node, kind: FileKind) -> None:
    """One problem in place of one for each key that the other kind has."""
    told = dict(_TELLING[key] for key in root.children or () if key in _TELLING)
    if told and kind.name not in told:
        (name, hint), *_ = told.items()
        raise _Refused(Place(None, None).problem(f"is a {name}, not a {kind.name}", hint))


class _Composer:
    """Builds nodes from ruamel.yaml's events; collects what is wrong but can be read past in `problems`."""

    def __init__(self, text: str, override: str | None, kind: FileKind) -> None:
        self.problems: list[Problem] = []
        self._kind = kind
        self._text = text
        self._override = override
        self._anchors: dict[str, Node] = {}
        self._values = 0

    def compose(self) -> Node:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ruamel.yaml, on documents that are then refused or harmless
            events: _Events = YAML(typ="safe", pure=True).parse(self._text)
            documents = self._documents(events)
            root = next(documents, None)
            if root is None:
                place = Place(1, 1) if self._override is None else Place(None, None, self._override)
                raise _Refused(place.problem("contains no value", self._kind.first))
            second = next(documents, None)
            if second is not None:
                hint = f"write one {self._kind.name} in each file"
                raise _Refused(second.place.problem("a second document begins here", hint))
        return root

    def _documents(self, events: _Events) -> Iterator[Node]:
        for event in events:
            if isinstance(event, yaml_events.NodeEvent):
                yield self._node(event, events, 0)

    def _place(self, event: _Content) -> Place:
        if self._override is not None:
            return Place(None, None, self._override)
        return Place(event.start_mark.line + 1, event.start_mark.column + 1)

    def _node(self, event: _Content, events: _Events, depth: int) -> Node:
        place = self._place(event)
        if depth > MAXIMUM_DEPTH:
            raise _Refused(place.problem(f"nested deeper than {MAXIMUM_DEPTH} levels"))
        if isinstance(event, yaml_events.AliasEvent):
            node = self._anchors.get(event.anchor)
            if node is None:
                raise _Refused(place.problem(f"alias *{event.anchor} names no anchor above it"))
            self._count(node.size, place)
            return node
        self._count(1, place)
        if event.tag is not None and str(event.tag) != "!":
            self.problems.append(place.problem(f"tags such as {event.tag} are not supported", "write the plain value"))
        if isinstance(event, yaml_events.MappingStartEvent):
            node = self._mapping(place, events, depth)
        elif isinstance(event, yaml_events.SequenceStartEvent):
            node = self._list(place, events, depth)
        else:
            node = Node(place, scalar=self._scalar(event, place))
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _count(self, values: int, place: Place) -> None:
        self._values += values
        if self._values > MAXIMUM_VALUES:
            raise _Refused(
                place.problem(f"more than {MAXIMUM_VALUES} values", "each alias counts with all of its values")
            )

    def _list(self, place: Place, events: _Events, depth: int) -> Node:
        items = []
        for event in events:
            if isinstance(event, yaml_events.CollectionEndEvent):
                break
            items.append(self._node(event, events, depth + 1))
        return Node(place, items=tuple(items), size=1 + sum(item.size for item in items))

    def _mapping(self, place: Place, events: _Events, depth: int) -> Node:
        children: dict[str, Node] = {}
        key_places: dict[str, Place] = {}
        merged: list[Node] = []
        for event in events:
            if isinstance(event, yaml_events.CollectionEndEvent):
                break
            key = self._node(event, events, depth + 1)
            value = self._node(cast(_Content, next(events)), events, depth + 1)  # no mapping ends behind a key
            if value.is_null and value.place.line != key.place.line:
                value = replace(value, place=key.place)  # left out: marked where the next key is
            if isinstance(event, yaml_events.ScalarEvent) and event.value == "<<" and not event.style:
                merged.extend(self._mergeable(value))
            elif not isinstance(key.scalar, str):
                hint = "put it in quotes" if key.scalar is not None else None
                self.problems.append(key.place.problem("a key has to be text", hint))
            elif key.scalar in children:
                first = key_places[key.scalar].line
                where = "" if first is None else f" (first on line {first})"
                self.problems.append(key.place.problem(f"key `{key.scalar}` is given twice{where}"))
            else:
                children[key.scalar] = value
                key_places[key.scalar] = key.place
        for other in merged:  # what is written in the mapping itself wins, then the first that is merged
            for name, child in (other.children or {}).items():
                if name not in children:
                    children[name] = child
                    key_places[name] = other.key_places[name]
        size = 1 + sum(1 + child.size for child in children.values())
        return Node(place, children=children, key_places=key_places, size=size)

    def _mergeable(self, value: Node) -> list[Node]:
        nodes = list(value.items) if value.items is not None else [value]
        for node in nodes:
            if node.children is None:
                self.problems.append(node.place.problem("`<<` merges only mappings"))
        return [node for node in nodes if node.children is not None]

    def _scalar(self, event: yaml_events.ScalarEvent, place: Place) -> Scalar:
        if event.style:  # quoted, or a block of text
            return str(event.value)
        try:
            return core_scalar(event.value)
        except ValueError:
            self.problems.append(place.problem("a number of too many digits"))
            return 0


_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)")


def core_scalar(text: str) -> Scalar:
    """What an unquoted scalar means in YAML 1.2's core schema; ValueError for an integer of too many digits."""
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _NUMBER.fullmatch(text):
        return float(text)
    infinite = _INFINITE.fullmatch(text)
    if infinite:
        return float(f"{infinite[1]}inf")
    return float("nan") if text in (".nan", ".NaN", ".NAN") else text
