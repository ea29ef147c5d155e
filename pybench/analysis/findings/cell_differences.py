# SPDX-License-Identifier: Apache-2.0
"""What a comparison does to accuracy over several models or trainings, and whether that depends on another factor.

Accuracies do not vary between runs of one case, so blocks say nothing of how far a finding carries. Here the model or
the training of its weights is the unit, and each gives one difference of accuracies. Several models: a model's
trainings are averaged first, and models are the sample; else the trainings of the one model are. The interval is the
skew-adjusted t of the differences. It treats the units as drawn at random; nobody draws models so, and the reader has
to judge whether they stand for others.

Two groups of cells that differ in one factor (INT8 of weights of FP32 and of AMP) are subtracted unit by unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pybench.analysis.findings.contrasts import ContrastFinding, PairFinding
from pybench.analysis.statistics.estimate import Estimate, Sample
from pybench.analysis.statistics.intervals import estimate_mean
from pybench.case import Case
from pybench.case.contrasts import Contrast
from pybench.case.pairing import Pair
from pybench.catalogue.metrics import Metric

MODEL, TRAINING = "model", "training_seed"
# They follow from the model, unless a plan gives it several.
_OF_MODELS = ("checkpoint", "images", "image_size", "data", "output")


@dataclass(frozen=True, slots=True)
class CellsDifference:
    """The mean difference of one metric over the units of a group of cells.

    unit: what is resampled in thought: `model` or `training_seed`
    pairs: the cells: each a case with its baseline
    differences: unit -> case minus baseline; where `factor` is set, that of `pairs` minus that of `base`
    factor, base: the factor in which another group differs, and a pair of that group; None: no group is subtracted
    """

    contrast: Contrast
    metric: Metric
    unit: str
    pairs: tuple[Pair, ...]
    differences: Mapping[str, float]
    estimate: Estimate
    factor: str | None = None
    base: Pair | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "contrast": self.contrast.title(),
            "metric": self.metric.name,
            "unit": self.unit,
            "case_ids": [pair.case.id for pair in self.pairs],
            "differences": dict(self.differences),
            "estimate": self.estimate.as_json(),
            "factor": self.factor,
            "value": None if self.factor is None else self.pairs[0].case.value(self.factor),
            "base_value": None if self.factor is None or self.base is None else self.base.case.value(self.factor),
        }


@dataclass(frozen=True, slots=True)
class _CellGroup:
    """Cells that are equal in all but their unit.

    factors: those that tell groups apart, with their values
    values: (model, training) -> difference
    """

    pairs: tuple[Pair, ...]
    factors: Mapping[str, Any]
    values: Mapping[tuple[str, str], float]

    def differs_from(self, other: _CellGroup) -> list[str]:
        """The factors, and options of a package's rows, that have another value in the other group, or none."""
        names = dict.fromkeys([*self.factors, *other.factors])
        absent = object()
        return [name for name in names if self.factors.get(name, absent) != other.factors.get(name, absent)]


def differences_over_cells(contrasts: Sequence[ContrastFinding]) -> tuple[CellsDifference, ...]:
    """Of every comparison of accuracies with several models or trainings: each group, then each group minus the first
    one that differs from it in one factor."""
    found: list[CellsDifference] = []
    for finding in contrasts:
        for metric in _metrics(finding):
            groups = _groups(finding, metric)
            found += [one for group in groups if (one := _over(finding.contrast, metric, group.pairs, group.values))]
            found += _between(finding.contrast, metric, groups)
    return tuple(found)


def _metrics(finding: ContrastFinding) -> list[Metric]:
    """The accuracies that the comparison judges."""
    declared = (effect for pair in finding.pairs for effect in pair.effects.values() if effect.declared)
    judged = (one.metric for one in declared if one.metric.rests_on == "accuracy" and one.metric.scale == "difference")
    return list({metric.name: metric for metric in judged}.values())


def _groups(finding: ContrastFinding, metric: Metric) -> list[_CellGroup]:
    cells = [(pair.pair, value) for pair in finding.pairs if (value := _difference(pair, metric)) is not None]
    of_units = _factors_of_units([pair.case for pair, _ in cells])
    members: dict[tuple[Any, ...], list[tuple[Pair, float]]] = {}
    for pair, value in cells:
        members.setdefault(tuple(_telling(pair.case, of_units).items()), []).append((pair, value))
    return [
        _CellGroup(tuple(pair for pair, _ in group), dict(key), {_unit(pair.case): value for pair, value in group})
        for key, group in members.items()
    ]


def _difference(pair: PairFinding, metric: Metric) -> float | None:
    effect = pair.effects.get(metric.name)
    return None if effect is None or effect.effect is None else effect.effect.estimate.value


def _factors_of_units(cases: Sequence[Case]) -> frozenset[str]:
    """The factors in which cells of one group may differ. One that a model has in several values is none of them: else
    two cells would be the same unit."""
    models: dict[str, list[Case]] = {}
    for case in cases:
        models.setdefault(str(case.model), []).append(case)
    follows = {
        name for name in _OF_MODELS if all(len({case.value(name) for case in own}) == 1 for own in models.values())
    }
    return frozenset({MODEL, TRAINING, *follows})


def _telling(case: Case, of_units: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in case.factors().items() if name not in of_units}


def _unit(case: Case) -> tuple[str, str]:
    return str(case.model), str(case.training_seed)


def _over(
    contrast: Contrast,
    metric: Metric,
    pairs: Sequence[Pair],
    values: Mapping[tuple[str, str], float],
    factor: str | None = None,
    base: Pair | None = None,
) -> CellsDifference | None:
    """None for a single unit, which has no spread."""
    models = list(dict.fromkeys(model for model, _ in values))
    by_model = {model: fmean(value for (name, _), value in values.items() if name == model) for model in models}
    by_training = {training: value for (_, training), value in values.items()}
    unit, differences = (MODEL, by_model) if len(models) > 1 else (TRAINING, by_training)
    if len(differences) < 2:
        return None
    estimate = estimate_mean(Sample.of(differences.values()))
    return CellsDifference(contrast, metric, unit, tuple(pairs), differences, estimate, factor, base)


def _between(contrast: Contrast, metric: Metric, groups: Sequence[_CellGroup]) -> list[CellsDifference]:
    """Each group minus the first that differs from it in one factor, over the units that both have."""
    found = []
    for place, group in enumerate(groups):
        for base in groups[:place]:
            changed = group.differs_from(base)
            both = [unit for unit in group.values if unit in base.values]
            if len(changed) != 1 or not both:
                continue
            values = {unit: group.values[unit] - base.values[unit] for unit in both}
            pairs = [pair for pair in group.pairs if _unit(pair.case) in values]
            one = _over(contrast, metric, pairs, values, changed[0], base.pairs[0])
            found += [] if one is None else [one]
            break
    return found
