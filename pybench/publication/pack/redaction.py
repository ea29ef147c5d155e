# SPDX-License-Identifier: Apache-2.0
"""Taking personal data out of what is published, the same way every time and everywhere alike.

By default host names become `host-1`, `host-2`, ..., home folders `/home/user-1`, and the user's own files keep only
their names; what the author names with `--redact` becomes `redacted-1`, .... One thing has one replacement in the whole
publication, numbered in the order of file names, so two machines stay two. Texts of JSON files, logs, plan.yaml and
the text columns of CSV files are gone through.

What identifies a case is never changed, for its id is made of it: a personal word there is an error that says so.
A word of the author's in the name of a field is an error, too: readers look for these names.
`leftovers` lists for the author what this cannot know: a collaborator's name in a caution, an internal address.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybench.campaign import layout, storage
from pybench.campaign.resolved_plan import guarded_anew
from pybench.errors import CorruptError, UsageError

# A home folder wherever it is mounted: /home/ada, /Users/ada, /cluster/home/ada; no part of a URL.
_HOME = re.compile(r"(?<![\w.~+-])(?<!:/)(?:/[\w.+-]+)*?/(?:home|homes|users|Users)/([A-Za-z_](?:[\w.+-]*\w)?)")
_SHORTEST_WORD = 4  # letters; shorter names, such as "vm", would hit words that mean something else
_SHORTEST_OF_AUTHORS = 2
_IDENTITY = {
    layout.CASE: ("case",),
    layout.PLAN_RESOLVED: ("cases", "criteria", "require", "protocol"),
    layout.RECIPE: ("recipe",),
}
_CHECKED_BY = {layout.RUN: ("made",), layout.PLAN_RESOLVED: ("files", "plan_sha256")}  # digests that readers compare
# Columns of CSV files that are no numbers: users' files name units and nodes.
_TEXT_COLUMNS = {
    layout.PREDICTIONS: ("image_id", "unit_id", "group"),
    layout.SENSITIVITY: ("node", "operator"),
    layout.TENSOR_ERRORS: ("tensor",),
}
_HOME_FOLDERS = (b"/home/", b"/homes/", b"/users/", b"/Users/")  # `_HOME` matches nothing without one of them
_DIGEST = re.compile(r"[0-9a-f]{40,}")  # of files, cases and commits
_DIGESTS_APART = re.compile(rf"({_DIGEST.pattern})")
_PART_OF_DIGESTS = re.compile(r"[0-9a-f]{1,39}")  # a word that digests contain by chance; a longer one is meant
_KEPT_WORDS = frozenset({"localhost", "localhost.localdomain", "root"})

_DOUBTFUL = {
    "an e-mail address": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "an IP address": re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"),
    "a path": re.compile(
        r"(?<![\w.:/-])/(?!(?:proc|sys|dev|usr|lib|lib64|bin|etc|opt|tmp)/|home/user-\d)[\w.+-]+/[\w.+/-]+"
    ),
}
_MAYBE_DOUBTFUL = re.compile(rb"[@/]|\d\.\d+\.\d")  # each of them has it; quick, for tables are many
# A version, such as 12.8.4.1 of a package, may look like an address.
_DOUBTFUL_WITH_VERSIONS = {kind: pattern for kind, pattern in _DOUBTFUL.items() if kind != "an IP address"}


@dataclass(frozen=True, slots=True)
class RedactionRules:
    """What the author wants. `words`: to be taken out besides."""

    keep_host_names: bool = False
    keep_paths: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that looks personal and was left: where it stands first, and how often in all."""

    kind: str
    text: str
    name: str
    times: int


@dataclass(slots=True)
class Redactor:
    """Word or path -> replacement, found in the whole campaign first (`plan_redaction`), then applied file by file.

    vocabulary: words of the plan. A host called resnet50 is replaced where a host's name stands, and nowhere else
    met: the author's words that some text had, whatever they were replaced as
    """

    hosts: dict[str, str] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    vocabulary: frozenset[str] = frozenset()
    redacts_homes: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    met: set[str] = field(default_factory=set)

    def apply(self, name: str, content: bytes) -> bytes:
        """The content to publish under `name`, a text."""
        if name.endswith(".csv"):
            return self._table(name, content) if self._may_be_in(content) else content
        if not name.endswith(".json"):
            text = content.decode("utf-8", errors="replace")
            redacted = self._text(text)
            return content if redacted == text else redacted.encode()
        stored = json.loads(content)
        redacted_json = self._value(stored, _IDENTITY.get(Path(name).name, ()))
        if redacted_json == stored:
            return content
        is_plan = Path(name).name == layout.PLAN_RESOLVED
        return storage.json_bytes(guarded_anew(redacted_json) if is_plan else redacted_json)

    @property
    def unused_words(self) -> tuple[str, ...]:
        """The author's words that no file contained, in the order of their length."""
        return tuple(word for word in self.words if word not in self.met)

    def summary(self) -> list[dict[str, Any]]:
        """What was replaced by what kind of stand-in, how often; never the original."""
        kinds = {
            **dict.fromkeys(self.hosts.values(), "host name"),
            **dict.fromkeys(self.users.values(), "user name"),
            **dict.fromkeys(self.files.values(), "path of a file"),
            **dict.fromkeys(self.words.values(), "word of the author's"),
        }
        return [
            {"kind": kinds[to], "replacement": to, "times": self.counts[to]} for to in sorted(kinds) if self.counts[to]
        ]

    def _value(self, value: Any, untouched: tuple[str, ...] = (), key: str | None = None) -> Any:
        if isinstance(value, str):
            return self._short_host(value) if key == "host" else self._text(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if isinstance(value, Mapping):
            return {
                self._paths(name): inner if name in untouched else self._value(inner, (), name)
                for name, inner in value.items()
            }
        return value

    def _may_be_in(self, content: bytes) -> bool:
        """Whether something to replace may be there. Tables are many and long, and most have nothing."""
        wanted = (*self.hosts, *self.users, *self.files, *self.words)
        in_cells = (word.replace('"', '""').encode() for word in wanted)
        return any(word in content for word in in_cells) or _has_home(content)

    def _table(self, name: str, content: bytes) -> bytes:
        """A table with its text columns gone through; every other cell keeps its text."""
        text = content.decode("utf-8", errors="surrogateescape")
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        places = [place for place, column in enumerate(header) if column in _TEXT_COLUMNS[Path(name).name]]
        redacted = [[self._text(cell) if at in places else cell for at, cell in enumerate(row)] for row in rows]
        if redacted == rows:
            return content
        written = io.StringIO()
        csv.writer(written, lineterminator="\n").writerows([header, *redacted])
        return written.getvalue().encode("utf-8", errors="surrogateescape")

    def _short_host(self, value: str) -> str:
        """The field that holds a host's name: here even a name of two letters is one."""
        if value not in self.hosts:
            return self._text(value)
        self.counts[self.hosts[value]] += 1
        return self.hosts[value]

    def _text(self, text: str) -> str:
        self.met.update(word for word in self.words if word not in self.met and _has_word(text, word))
        text = self._paths(text)
        for word, to in (*self.hosts.items(), *self.users.items()):
            if len(word) >= _SHORTEST_WORD and word not in self.vocabulary:
                text = self._replace(text, _whole(word), to)
        for word, to in self.words.items():
            if _has_word(text, word):
                parts = _DIGESTS_APART.split(text) if _PART_OF_DIGESTS.fullmatch(word) else [text]
                parts[::2] = [self._replace(part, re.escape(word), to) for part in parts[::2]]  # digests are between
                text = "".join(parts)
        return text

    def _paths(self, text: str) -> str:
        for path, to in self.files.items():
            # Where a longer path ends in it, all of that goes.
            text = self._replace(text, rf"(?:/[\w.+-]+){{0,8}}?{re.escape(path)}(?!\.?[\w+-])", to)
        return _HOME.sub(self._home, text) if self.redacts_homes else text

    def _home(self, match: re.Match[str]) -> str:
        to = self.users.get(match[1])
        if to is None:
            return match[0]
        self.counts[to] += 1
        return f"/home/{to}"

    def _replace(self, text: str, pattern: str, to: str) -> str:
        text, times = re.subn(pattern, lambda _: to, text)
        self.counts[to] += times
        return text


def is_text(name: str) -> bool:
    """Whether a file's text is gone through. What an artefact's making left beside its records is not: its sha256 is
    recorded."""
    parts = name.split("/")
    if parts[0] == layout.ARTEFACTS and parts[-1] not in layout.OF_EVERY_MAKING:
        return False
    return name.endswith((".json", ".log", ".yaml")) or parts[-1] in _TEXT_COLUMNS


def plan_redaction(folder: Path, names: Iterable[str], rules: RedactionRules) -> Redactor:
    """Looks through the campaign for what has to be replaced. Raises `UsageError` where a case's identity holds it."""
    names = [name for name in sorted(names) if is_text(name)]
    if any(len(word) < _SHORTEST_OF_AUTHORS for word in rules.words):
        raise UsageError("--redact takes words of at least two letters", hint="a single letter is in almost every word")
    found = Redactor(redacts_homes=not rules.keep_paths)
    hosts, users, files, identity = _collect(folder, names)
    if not rules.keep_host_names:
        found.hosts = _numbered(hosts, "host")
    if not rules.keep_paths:
        found.users = _numbered(users, "user")
        found.files = {path: Path(path).name for path in sorted(files, key=len, reverse=True) if path.startswith("/")}
    found.words = _numbered(dict.fromkeys(rules.words), "redacted")
    _refuse_personal_identity(identity, found)
    _refuse_digests(folder, names, [word for word in rules.words if _DIGEST.search(word)])
    found.vocabulary = frozenset(word for text in identity for word in re.findall(r"[\w.+-]+", text))
    return found


def leftovers(folder: Path, names: Iterable[str]) -> list[Leftover]:
    """What still looks personal in what is to be published, most frequent first."""
    seen: dict[tuple[str, str], list[str]] = {}
    for name in sorted(names):
        if not is_text(name):
            continue
        content = (folder / name).read_bytes()
        if name.endswith(".csv") and not _MAYBE_DOUBTFUL.search(content):
            continue
        text = content.decode("utf-8", errors="replace")
        doubtful = _DOUBTFUL if not name.startswith(f"{layout.ENVIRONMENTS}/") else _DOUBTFUL_WITH_VERSIONS
        for part in _texts(_parse(folder / name, text)) if name.endswith(".json") else [text]:
            for kind, pattern in doubtful.items():
                for match in pattern.finditer(part):
                    seen.setdefault((kind, match[0][:200]), []).append(name)
    ordered = sorted(seen.items(), key=lambda item: (-len(item[1]), item[0]))
    return [Leftover(kind, text, where[0], len(where)) for (kind, text), where in ordered]


def refuse_words_left(folder: Path, names: Iterable[str], words: Iterable[str]) -> None:
    """Raises `UsageError` where a JSON file of the staged `folder` still contains a word of the author's: as the name
    of a field, or in what an artefact's making left. Numbers are no texts."""
    forms = {word: [json.dumps(word, ensure_ascii=plain)[1:-1].encode() for plain in (True, False)] for word in words}
    for name in sorted(names) if forms else ():
        if not name.endswith(".json"):
            continue
        content = (folder / name).read_bytes()
        for word, written in forms.items():
            found = any(form in content for form in written)
            if found and any(_has_word(text, word) for text in _texts(_load(folder / name, content))):
                raise UsageError(
                    f"{name} contains {word!r} where it cannot be redacted",
                    hint=f"names of fields and packages, and files of artefacts, stay: publish without --redact {word}",
                )


def _collect(
    folder: Path, names: Iterable[str]
) -> tuple[dict[str, None], dict[str, None], dict[str, None], dict[str, None]]:
    """Host names, names of home folders, paths of the user's files, and every text of the cases' identity, each in the
    order in which it is met."""
    hosts: dict[str, None] = {}
    users: dict[str, None] = {}
    files: dict[str, None] = {}
    identity: dict[str, None] = {}
    for name in names:
        content = (folder / name).read_bytes()
        if name.endswith(".csv") and not _has_home(content):
            continue
        text = content.decode("utf-8", errors="replace")
        stored = _parse(folder / name, text) if name.endswith(".json") else {}
        for part in _texts(stored) if name.endswith(".json") else [text]:
            users.update(dict.fromkeys(match[1] for match in _HOME.finditer(part)))
        last = Path(name).name
        if last == layout.ENVIRONMENT and isinstance(stored.get("host"), str):
            hosts[stored["host"]] = None
        if isinstance(stored.get("files"), Mapping):
            paths = [one.get("path") if isinstance(one, Mapping) else one for one in stored["files"].values()]
            files.update(dict.fromkeys(path for path in paths if isinstance(path, str)))
        if last == layout.PLAN_RESOLVED and isinstance(stored.get("environments"), Mapping):
            named = [one for one in stored["environments"].values() if isinstance(one, Mapping)]
            texts = [str(one.get("python") or str(one.get("image", "")).rpartition("@")[0]) for one in named]
            files.update(dict.fromkeys(text for text in texts if text.startswith("/")))  # not a registry's names
        for part in _IDENTITY.get(last, ()):
            identity.update(dict.fromkeys(_texts(stored.get(part))))
    hosts.update(dict.fromkeys(_claimants(folder)))
    return (
        {host: None for host in hosts if host not in _KEPT_WORDS},
        {user: None for user in users if user not in _KEPT_WORDS and not re.fullmatch(r"user-\d+", user)},
        files,
        identity,
    )


def _claimants(folder: Path) -> Iterator[str]:
    """Hosts and cluster nodes by the runs' claims, which are not published: a node that was lost left no environment,
    but messages name it."""
    for path in sorted((folder / layout.RUNS).rglob(f"*{layout.CLAIM_SUFFIX}")):
        try:
            claim = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue  # a claim that nobody can read names nobody
        job = claim.get("job") if isinstance(claim, dict) else None
        found = [
            claim.get("host") if isinstance(claim, dict) else None,
            job.get("node") if isinstance(job, dict) else None,
        ]
        yield from (name for name in found if isinstance(name, str) and name)


def _refuse_personal_identity(identity: Iterable[str], found: Redactor) -> None:
    for text in identity:
        is_path = text in found.files or (found.redacts_homes and _HOME.search(text) is not None)
        word = next((word for word in found.words if _has_word(text, word)), None)
        if is_path or word is not None:
            raise UsageError(
                f"the plan contains {text!r}, and ids of cases depend on it, so it cannot be redacted",
                hint="name that file by a path relative to the plan and run again, or publish it with --keep-paths"
                if word is None
                else f"publish without --redact {word}",
            )


def _refuse_digests(folder: Path, names: Iterable[str], words: Sequence[str]) -> None:
    """Raises `UsageError` where files are found or checked by a word that is a digest. Ids of cases are in names."""
    for name in names if words else ():
        fields = _CHECKED_BY.get(Path(name).name, ())
        stored = _parse(folder / name, (folder / name).read_text(encoding="utf-8")) if fields else {}
        texts = [name, *(text for field in fields for text in _texts(stored.get(field)))]
        word = next((word for word in words if any(word in text for text in texts)), None)
        if word is not None:
            raise UsageError(
                f"{word} is a digest by which {name} is found or checked, so it cannot be redacted",
                hint=f"publish without --redact {word}",
            )


def _numbered(words: Mapping[str, None], stem: str) -> dict[str, str]:
    """Longer words first, so that `node1.site` is not taken for `node1`; numbers in the order of being met."""
    numbered = {word: f"{stem}-{number}" for number, word in enumerate(words, start=1)}
    return dict(sorted(numbered.items(), key=lambda item: -len(item[0])))


def _has_word(text: str, word: str) -> bool:
    """Whether a text contains a word of the author's. Some letters of a digest are none; all of them, as of a key,
    are."""
    if not _PART_OF_DIGESTS.fullmatch(word):
        return word in text
    return word in text and any(word in part for part in _DIGEST.split(text))


def _has_home(content: bytes) -> bool:
    return any(folder in content for folder in _HOME_FOLDERS)


def _whole(word: str) -> str:
    return rf"(?<![\w-]){re.escape(word)}(?![\w-])"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)


def _parse(path: Path, text: str) -> dict[str, Any]:
    stored = _load(path, text)
    return stored if isinstance(stored, dict) else {}


def _load(path: Path, content: str | bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"{path} cannot be read: {error}") from error
