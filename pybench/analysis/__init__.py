# SPDX-License-Identifier: Apache-2.0
"""What a campaign's numbers say: statistics as a tree, in which every number carries its interval (docs/method/).

    Analysis
    ├── cases        CaseFinding      each case: metrics, outcomes, what was left out and why
    ├── contrasts    ContrastFinding  each declared comparison: effects paired within blocks, or over units of data
    ├── boards       BoardEffects     each comparison on each board, where blocks ran on several
    ├── board_models BoardEffects     the same for models of boards
    ├── verdicts     CaseVerdict      each criterion: accepted, rejected, undecided, and all together
    ├── cell_effects CellsEffect      each comparison over all of its cells, and how cells differ
    ├── cell_differences  CellsDifference  accuracies over models or trainings, and what another factor does to that
    ├── curves       Curve            a metric or ratio over a numeric factor, and where lines cross
    ├── references   ReferenceFinding published values next to this campaign's; they judge nothing
    ├── token_paths  TokenFinding     whether all tokenizer paths gave the same ids
    ├── path_costs   PathCost         what each path costs by the size of the model, and from which size on nothing
    ├── joules       JouleFinding     where each joule of a case comes from, by one run of it
    ├── operating_points  OperatingPoint  the power limit with the least energy in each setting, and what it costs
    ├── architectures  ArchitectureFinding  their order, eager and compiled, and what a sample costs in a batch
    ├── solver_speedups  SolverSpeedup  networks against the solvers that they replace
    ├── cache_effects  CacheEffect   comparisons with a warm and with a cold cache
    ├── builds       BuildVariance    variance between builds of one engine against that between runs
    ├── run_spreads  RunSpread        how much of the spread of runs the core that calls them explains
    ├── protocols    ProtocolFinding  each protocol that the plan asks for beside the house's own
    ├── excluded     PairComparability  pairs of cases that lost blocks in any finding, because their software differs
    ├── varying      cases whose repetitions predict differently
    └── unknown      stored metrics that this pybench has no row of

`statistics` makes estimates of plain numbers, `findings` has a module for each kind of finding, and `protocols` has
those of papers. `decision` says between blocks whether there are enough of them. `measurements` collects the values
that count, `units` the scores of units of data, and `comparability` says which runs may be compared. The repetition (a
process) is the unit; iterations are nested in it.
No file is opened here, nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pybench.analysis.comparability import PairComparability, SoftwareComparisons, software_json
from pybench.analysis.findings.architectures import ArchitectureFinding, find_architectures
from pybench.analysis.findings.boards import BoardEffects, compare_boards
from pybench.analysis.findings.build_variance import BuildVariance, split_variances
from pybench.analysis.findings.caches import CacheEffect, find_cache_effects
from pybench.analysis.findings.cases import CaseFinding, describe_cases
from pybench.analysis.findings.cell_differences import CellsDifference, differences_over_cells
from pybench.analysis.findings.cell_effects import CellsEffect, effects_over_cells
from pybench.analysis.findings.contrasts import ContrastFinding, compare_contrasts
from pybench.analysis.findings.curves import Curve, find_curves
from pybench.analysis.findings.joules import JouleFinding, find_joules
from pybench.analysis.findings.operating_point import OperatingPoint, find_operating_points
from pybench.analysis.findings.path_costs import PathCost, cost_paths
from pybench.analysis.findings.references import ReferenceFinding, find_references
from pybench.analysis.findings.run_spread import RunSpread, explain_spreads
from pybench.analysis.findings.solvers import SolverSpeedup, find_solver_speedups
from pybench.analysis.findings.token_paths import TokenFinding, check_token_paths
from pybench.analysis.findings.verdicts import CaseVerdict, judge
from pybench.analysis.measurements import collect
from pybench.analysis.protocols.protocol import ProtocolFinding, ProtocolTests
from pybench.analysis.statistics.estimate import CONFIDENCE
from pybench.analysis.units import collect_units
from pybench.case import contrasts
from pybench.case.contrasts import Contrast
from pybench.case.pairing import Pair
from pybench.case.service_levels import at_bounds
from pybench.catalogue.protocols import PAIRED_BLOCKS, protocol_named
from pybench.collector import no_collection
from pybench.dataset import Dataset
from pybench.errors import CorruptError, UsageError
from pybench.processes import Processes

__all__ = ["Analysis", "analyse", "declared"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The findings of one campaign. `verdicts` has one tuple a contrast, in the order of `contrasts`."""

    name: str
    cases: tuple[CaseFinding, ...]
    contrasts: tuple[ContrastFinding, ...]
    boards: tuple[BoardEffects, ...]
    board_models: tuple[BoardEffects, ...]
    verdicts: tuple[tuple[CaseVerdict, ...], ...]
    cell_effects: tuple[CellsEffect, ...]
    cell_differences: tuple[CellsDifference, ...]
    curves: tuple[Curve, ...]
    references: tuple[ReferenceFinding, ...]
    token_paths: tuple[TokenFinding, ...]
    path_costs: tuple[PathCost, ...]
    joules: tuple[JouleFinding, ...]
    operating_points: tuple[OperatingPoint, ...]
    architectures: ArchitectureFinding | None
    solver_speedups: tuple[SolverSpeedup, ...]
    cache_effects: tuple[CacheEffect, ...]
    builds: tuple[BuildVariance, ...]
    run_spreads: tuple[RunSpread, ...]
    protocols: tuple[ProtocolFinding, ...]
    excluded: Mapping[Pair, PairComparability]
    varying: Mapping[str, int]
    unknown: Mapping[str, int]

    @property
    def comparability(self) -> dict[Pair, PairComparability]:
        """What the two sides of each declared comparison ran with, and of any other pair that lost blocks."""
        declared = {pair.pair: pair.comparability for contrast in self.contrasts for pair in contrast.pairs}
        sides = {frozenset((pair.case, pair.baseline)) for pair in declared}
        others = {
            pair: one for pair, one in self.excluded.items() if frozenset((pair.case, pair.baseline)) not in sides
        }
        return {**declared, **others}

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "confidence": CONFIDENCE,
            "contrasts": [
                {
                    "title": contrast.contrast.title(),
                    "baseline": dict(contrast.contrast.baseline),
                    "verdicts": [verdict.as_json() for verdict in verdicts],
                    "pairs": [pair.as_json() for pair in contrast.pairs],
                }
                for contrast, verdicts in zip(self.contrasts, self.verdicts, strict=True)
            ],
            "effects_by_board": [effects.as_json() for effects in self.boards],
            "effects_by_board_model": [effects.as_json() for effects in self.board_models],
            "effects_over_cells": [effect.as_json() for effect in self.cell_effects],
            "differences_over_cells": [difference.as_json() for difference in self.cell_differences],
            "curves": [curve.as_json() for curve in self.curves],
            "references": [found.as_json() for found in self.references],
            "token_paths": [finding.as_json() for finding in self.token_paths],
            "path_costs": [cost.as_json() for cost in self.path_costs],
            "joules": [finding.as_json() for finding in self.joules],
            "operating_points": [finding.as_json() for finding in self.operating_points],
            "architectures": None if self.architectures is None else self.architectures.as_json(),
            "solver_speedups": [one.as_json() for one in self.solver_speedups],
            "cache_effects": [one.as_json() for one in self.cache_effects],
            "builds": [finding.as_json() for finding in self.builds],
            "run_spreads": [finding.as_json() for finding in self.run_spreads],
            "protocols": [finding.as_json() for finding in self.protocols],
            "excluded_for_software": software_json(self.excluded),
            "varying_predictions": dict(self.varying),
            "unknown_metrics": dict(self.unknown),
            "cases": [case.as_json() for case in self.cases],
        }


def declared(dataset: Dataset) -> tuple[Contrast, ...]:
    """The comparisons that the plan declares. Raises `CorruptError` where they cannot be read."""
    try:
        return tuple(at_bounds(one, dataset.plan.cases) for one in contrasts.from_json(dataset.plan.criteria))
    except (UsageError, KeyError, TypeError) as error:
        what = f"{dataset.campaign.plan_resolved}: criteria or protocols cannot be read"
        raise CorruptError(f"{what}: {error}") from error


@no_collection()
def analyse(
    dataset: Dataset,
    processes: Processes | None = None,
    *,
    joules: tuple[JouleFinding, ...] | None = None,
    and_then: Callable[[], None] = lambda: None,
) -> Analysis:
    """Everything that the runs of a campaign say about its plan. Raises `CorruptError` for criteria that cannot be
    read. `processes`: which carry out protocols; None: this one alone. `joules`: where they were found before.
    `and_then`: gives the processes what they are to do after the protocols, which are waited for first."""
    contrasts, planned = declared(dataset), dataset.plan.cases
    software = SoftwareComparisons(dataset.software)
    try:
        measurements = collect(dataset)
        units = collect_units(dataset, measurements)
        named = [protocol_named(name) for name in dataset.plan.protocols if name != PAIRED_BLOCKS]
        tests = ProtocolTests(named, dataset, measurements, contrasts, software, processes or Processes(1))
        and_then()
        compared = compare_contrasts(dataset, measurements, units, contrasts, software)
    except (UsageError, KeyError, TypeError) as error:
        what = f"{dataset.campaign.plan_resolved}: criteria or protocols cannot be read"
        raise CorruptError(f"{what}: {error}") from error
    cases = describe_cases(dataset, measurements, units)
    by_id = {case.case.id: case for case in cases}
    verdicts = tuple(judge(contrast, by_id) for contrast in compared)
    return Analysis(
        name=dataset.plan.name,
        cases=cases,
        contrasts=compared,
        boards=compare_boards(compared, measurements, dataset.software),
        board_models=compare_boards(compared, measurements, dataset.software, by_model=True),
        verdicts=verdicts,
        cell_differences=differences_over_cells(compared),
        cell_effects=effects_over_cells(compared, measurements),
        curves=find_curves(cases, compared, dataset.plan.curves, software),
        references=find_references(dataset, cases, compared, measurements),
        token_paths=check_token_paths(dataset),
        path_costs=cost_paths(cases, compared),
        joules=find_joules(dataset) if joules is None else joules,
        operating_points=find_operating_points(dataset, measurements, software),
        architectures=find_architectures(planned, measurements, software),
        solver_speedups=find_solver_speedups(planned, measurements, software),
        cache_effects=find_cache_effects(planned, compared, measurements, software),
        builds=split_variances(planned, measurements, software),
        run_spreads=explain_spreads(planned, measurements, dataset.software),
        protocols=tests.findings(units, verdicts),
        excluded=software.excluded(),  # after all of the above: these are the pairs that they compared
        varying=units.varying,
        unknown=measurements.unknown,
    )
