# SPDX-License-Identifier: Apache-2.0
"""Whether every tokenizer path fed the model the same ids: a path that tokenizes differently is not faster, it is
wrong.

Cases that read the same text in the same way and differ in path (and in what executes the model) have to yield equal
`ids_sha256` in every block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.case import Case
from pybench.catalogue.paths import PATHS
from pybench.dataset import Dataset

# What decides which ids a case reads; `path`, `model`, `runtime`, `precision` and `threads` must not.
_DECIDES = (
    "workload",
    "tokenizer",
    "corpus",
    "corpus_limit_bytes",
    "corpus_field",
    "batch",
    "seq_len",
    "warmup_iterations",
    "iterations",
    "energy_window_s",
)


@dataclass(frozen=True, slots=True)
class TokenFinding:
    """Paths that have to agree.

    shared: the factors that decide which ids a text has, equal in all of its cases
    digests: path -> distinct `ids_sha256` of its runs
    blocks: how many blocks could be compared
    differing: blocks in which the digests are not all the same
    """

    shared: Mapping[str, Any]
    digests: Mapping[str, tuple[str, ...]]
    blocks: int
    differing: tuple[int, ...]

    @property
    def equal(self) -> bool | None:
        """None where nothing could be compared."""
        return None if self.blocks == 0 else not self.differing

    def as_json(self) -> dict[str, Any]:
        return {
            "shared": dict(self.shared),
            "digests": {path: list(digests) for path, digests in self.digests.items()},
            "blocks": self.blocks,
            "differing_blocks": list(self.differing),
            "equal": self.equal,
        }


def check_token_paths(dataset: Dataset) -> tuple[TokenFinding, ...]:
    """One finding for every group of cases with at least two paths."""
    groups: dict[tuple[Any, ...], list[Case]] = {}
    for case in dataset.plan.cases:
        if PATHS[case.path].reads_text:
            files = tuple(source for source in case.sources if source[0] in ("tokenizer", "corpus"))
            groups.setdefault((*(getattr(case, name) for name in _DECIDES), files), []).append(case)
    return tuple(_check_group(cases, dataset) for cases in groups.values() if len({case.path for case in cases}) > 1)


def _check_group(cases: list[Case], dataset: Dataset) -> TokenFinding:
    ran = dataset.runs.filter(dataset.runs["outcome"] == "ok", dataset.runs["ids_sha256"].is_not_null())
    path_of = {case.id: case.path for case in cases}
    by_block: dict[int, dict[str, set[str]]] = {}
    digests: dict[str, set[str]] = {case.path: set() for case in cases}
    for case_id, block, digest in ran.select("case_id", "block", "ids_sha256").iter_rows():
        if case_id in path_of:
            by_block.setdefault(block, {}).setdefault(path_of[case_id], set()).add(digest)
            digests[path_of[case_id]].add(digest)
    compared = {block: paths for block, paths in by_block.items() if len(paths) > 1}
    differing = tuple(sorted(block for block, paths in compared.items() if len(set().union(*paths.values())) > 1))
    shared = {name: getattr(cases[0], name) for name in _DECIDES[1:7]}
    return TokenFinding(
        shared, {path: tuple(sorted(found)) for path, found in digests.items()}, len(compared), differing
    )
