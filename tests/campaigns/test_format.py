# SPDX-License-Identifier: Apache-2.0
"""docs/formats/rundir.md describes every key of the campaigns that are stored."""

from __future__ import annotations

import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "formats" / "rundir.md"
CAMPAIGNS = ("tasks-gpu", "amp-training")  # GPU runs, builds and curves
# File -> title of its section. A profile in another file has the keys of a profile on its own.
SECTIONS = {
    "case.json": "case.json",
    "run.json": "run.json",
    "summary.json": "summary.json",
    "energy.json": "energy.json",
    "profile.json": "profile.json",
    "environment.json": "environment.json",
    "plan.resolved.json": "plan.resolved.json",
    "recipe.json": "Artefacts",
    "sensor": "sensors/*.json",
}
NAMED_BY_USERS = {  # mappings whose keys are names of something, described elsewhere
    "case.json": {"case", "artefacts", "files"},
    "run.json": {"made"},
    "summary.json": {"labels"},
    "energy.json": {"parts_j", "plain_j"},
    "environment.json": {"packages"},
    "plan.resolved.json": {"cases", "case_repetitions", "case_slo_ms", "baseline", "where", "files"},
    "recipe.json": {"parameters", "needs", "inputs", "files"},
}


@cache
def keys() -> Mapping[str, frozenset[str]]:
    """Kind of file -> every key of it in these campaigns."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in CAMPAIGNS:
        with (ROOT / "campaigns" / f"{name}.tar.zst").open("rb") as file:
            stream = zstandard.ZstdDecompressor().stream_reader(file)
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in tar:
                    kind = "sensor" if "/sensors/" in f"/{member.name}" else member.name.rpartition("/")[2]
                    content = tar.extractfile(member) if kind in SECTIONS and member.isfile() else None
                    for key, of in _walk(json.loads(content.read()), kind) if content is not None else ():
                        found[of].add(key)
    return {kind: frozenset(names) for kind, names in found.items()}


def _walk(value: Any, kind: str) -> Iterator[tuple[str, str]]:
    """Each key with the kind of file that it is of."""
    if isinstance(value, list):
        for each in value:
            yield from _walk(each, kind)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, kind
            if key in NAMED_BY_USERS.get(kind, ()):
                continue
            by_name = kind == "summary.json" and key in ("metrics", "windows")
            yield from _walk(list(inner.values()) if by_name else inner, "sensor" if key == "sensor" else kind)


def _section(title: str) -> str:
    """The text of a section, as far as it is code or a code span: the rest is prose."""
    (text,) = re.findall(rf"(?ms)^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"))
    return " ".join(re.findall(r"(?s)```.*?```|`[^`\n]+`", text))


@pytest.mark.parametrize("kind", SECTIONS)
def test_each_key_is_described_in_the_section_of_its_file(kind: str) -> None:
    described = set(re.findall(r"\w+", _section(SECTIONS[kind])))
    assert keys()[kind]
    assert keys()[kind] - described == set()
