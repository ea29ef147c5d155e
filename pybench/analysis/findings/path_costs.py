# SPDX-License-Identifier: Apache-2.0
"""What each way of getting tokens to a model costs, by the size of the model; and from which size on it costs nothing.

A path's throughput is put in ratio to that of `none` (synthetic ids through the same interface), paired within blocks,
as the contrast against `path: none` found it. A path has stopped mattering at the smallest measured size from which on
the whole interval lies above 1 - `INDIFFERENT`, there and at every larger size. Nothing is said of sizes in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.findings.contrasts import ContrastFinding, PairFinding
from pybench.analysis.statistics.estimate import Estimate
from pybench.case import Case

METRIC = "throughput_tokens_per_s"
INDIFFERENT = 0.01  # a loss of throughput that counts as none: what runs of the same case differ by anyway
# What may differ along a line besides the size of the model.
_ALONG = frozenset({"model", "path", "fed", "tokenizer", "corpus", "corpus_limit_bytes", "corpus_field"})


@dataclass(frozen=True, slots=True)
class PathRatio:
    """One model on one path. `relative`: throughput over that of `none`."""

    model: str
    model_bytes: float
    relative: Estimate

    @property
    def costs_nothing(self) -> bool:
        return self.relative.lower is not None and self.relative.lower >= 1 - INDIFFERENT


@dataclass(frozen=True, slots=True)
class PathCost:
    """One path in one setting, over sizes of models from the smallest up. `setting`: any of its cases."""

    path: str
    setting: Case
    sizes: tuple[PathRatio, ...]

    @property
    def free_from(self) -> PathRatio | None:
        """The size from which on the path costs nothing; None: it still costs, or may, at the largest measured."""
        found = None
        for size in reversed(self.sizes):
            if not size.costs_nothing:
                break
            found = size
        return found

    def as_json(self) -> dict[str, Any]:
        free_from = self.free_from
        return {
            "path": self.path,
            "workload": self.setting.workload,
            "sizes": [
                {"model": size.model, "model_bytes": size.model_bytes, "relative": size.relative.as_json()}
                for size in self.sizes
            ],
            "costs_nothing_from": None if free_from is None else free_from.model,
        }


def cost_paths(cases: Sequence[CaseFinding], contrasts: Sequence[ContrastFinding]) -> tuple[PathCost, ...]:
    """One finding for each path and setting of every contrast against `path: none`; empty where there is none."""
    bytes_of = {case.case.id: _model_bytes(case) for case in cases}
    lines: dict[tuple[Any, ...], list[PairFinding]] = {}
    for contrast in contrasts:
        if dict(contrast.contrast.baseline) == {"path": "none"}:
            for pair in contrast.pairs:
                lines.setdefault(_line_of(pair.pair.case), []).append(pair)
    found = []
    for pairs in lines.values():
        sizes = [size for pair in pairs if (size := _sized(pair, bytes_of)) is not None]
        if sizes:
            case = pairs[0].pair.case
            found.append(PathCost(case.path, case, tuple(sorted(sizes, key=lambda size: size.model_bytes))))
    return tuple(found)


def _line_of(case: Case) -> tuple[Any, ...]:
    return (case.path, *((name, value) for name, value in case.factors().items() if name not in _ALONG))


def _model_bytes(case: CaseFinding) -> float | None:
    finding = case.metrics.get("model_bytes")
    return None if finding is None or finding.estimate is None else finding.estimate.value


def _sized(pair: PairFinding, bytes_of: dict[str, float | None]) -> PathRatio | None:
    case, effect = pair.pair.case, pair.effects.get(METRIC)
    size = bytes_of.get(case.id)
    if size is None or effect is None or effect.effect is None or case.model is None:
        return None
    return PathRatio(case.model, size, effect.effect.estimate)
