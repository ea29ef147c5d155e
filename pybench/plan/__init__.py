# SPDX-License-Identifier: Apache-2.0
"""Plans: what a YAML file asks for, as cases. `load_plan` judges a plan as a whole and names everything wrong with it.

    text ─document→ tree with places ─overrides→ tree ─shape→ PlanShape ─cells, cases→ cases ─comparisons→ Plan

docs/user/plans.md is the chapter for users. Nothing here asks what this machine can do.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pybench.campaign.environments import PlannedEnvironment
from pybench.campaign.layout import SCHEMA_VERSION
from pybench.case import Case, Repetitions, case_to_json, contrasts, service_levels
from pybench.case.contrasts import Contrast
from pybench.case.curves import PlannedCurve
from pybench.case.factors import FACTORS, factors_of
from pybench.case.repetitions import StoppingRule
from pybench.case.yields import is_required
from pybench.catalogue.catalogue import Catalogue
from pybench.catalogue.installed import Installed, installed
from pybench.catalogue.protocols import with_house
from pybench.document import Node, Place, read_document
from pybench.errors import PlanError, Problem
from pybench.plan.cases import CaseBuilder
from pybench.plan.cells import MOST_CELLS, cells_of, defaults_of
from pybench.plan.comparisons import (
    check_contrasts,
    check_curves,
    check_gpu_energy,
    check_protocols,
    check_selections,
    check_stopping,
    contrasts_of,
    with_matched_references,
)
from pybench.plan.environments import FACTOR as ENVIRONMENT
from pybench.plan.environments import PlanEnvironments, read_environments
from pybench.plan.files import UserFile, UserFiles
from pybench.plan.overrides import apply_overrides
from pybench.plan.packages import with_repairs
from pybench.plan.schema import plan_schema
from pybench.plan.shape import PlanShape, read_shape
from pybench.plan.values import Json

__all__ = ["Plan", "load_plan", "plan_schema", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan without fault.

    source_sha256: of the file as it is
    overrides: the `--set` that changed its meaning
    cases: each once, in the plan's order
    files: value of a factor -> the user's file
    environments: name -> where it is
    places: (factor, value) -> where a model or file is named first, and where an environment is defined
    """

    path: Path
    source_sha256: str
    overrides: tuple[str, ...]
    name: str
    description: str | None
    seed: int
    repetitions: Repetitions
    cases: tuple[Case, ...]
    contrasts: tuple[Contrast, ...]
    require: tuple[str, ...]
    protocols: tuple[str, ...]
    curves: tuple[PlannedCurve, ...]
    files: Mapping[str, UserFile]
    environments: Mapping[str, PlannedEnvironment]
    places: Mapping[tuple[str, str], Place]


def load_plan(
    path: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    catalogue: Catalogue | None = None,
    *,
    repetitions: int | None = None,
) -> Plan:
    """Reads and judges a plan.

    `catalogue`: the rows that it may name, by default those of all installed packages. `repetitions`: of every case,
    in place of the plan's number and of those of its entries.

    Raises PlanError with every problem, each with its file, line and column; PluginError where the plan names what an
    installed package takes from pybench or another package. Other packages that cannot be used are hints of the names
    that they may add.
    """
    path = Path(path)
    found = installed() if catalogue is None else Installed(catalogue)
    catalogue = found.catalogue
    document = read_document(path)
    known = factors_of(catalogue)
    root, override_problems = apply_overrides(document.root, overrides, str(path), known)
    shaped = read_shape(root, catalogue)
    environments = read_environments(root, path.parent)
    problems = [*document.problems, *override_problems, *shaped.problems, *environments.problems]
    files = UserFiles(path.parent, known)
    made = _Cases(usual=0)
    contrasts: tuple[Contrast, ...] = ()
    if shaped.plan is not None:
        builder = CaseBuilder(root, defaults_of(shaped.plan), files, catalogue)
        made = _cases_of(
            _with_repetitions(shaped.plan, repetitions), builder, shaped.damaged, environments, not problems
        )
        problems += made.problems
    cases = made.cases
    if shaped.plan is not None and not problems and not overrides:
        problems += environments.unused((case.environment for case in cases), root)
        problems += _required_of_none(shaped.plan, cases, root)
    if shaped.plan is not None and not problems:
        contrasts, problems = _compared(shaped.plan, cases, builder, is_overridden=bool(overrides))
    if problems or shaped.plan is None:
        raise PlanError(str(path), with_repairs(dict.fromkeys(problems), found.refused))
    found.refuse_names(name for case in cases for name in _row_names(case))
    return Plan(
        path=path,
        source_sha256=hashlib.sha256(document.source).hexdigest(),
        overrides=(*overrides, *([] if repetitions is None else [f"repetitions={repetitions}"])),
        name=shaped.plan.name,
        description=shaped.plan.description,
        seed=shaped.plan.seed,
        repetitions=made.repetitions(),
        cases=cases,
        contrasts=contrasts,
        require=tuple(dict.fromkeys(shaped.plan.require)),
        protocols=with_house(shaped.plan.protocol),
        curves=shaped.plan.curves,
        files=_files_of(cases, files),
        environments=environments.planned,
        places=builder.places | {(ENVIRONMENT, name): place for name, place in environments.places.items()},
    )


def resolve(plan: Plan, cases: Sequence[Case]) -> dict[str, Json]:
    """The content of plan.resolved.json (docs/formats/rundir.md) for some or all of a plan's cases."""
    named = {value for case in cases for value in _user_values(case)}
    inside = {case.environment for case in cases}
    environments = {name: one.as_json() for name, one in plan.environments.items() if name in inside}
    return {
        "schema_version": SCHEMA_VERSION,
        "name": plan.name,
        "description": plan.description,
        "seed": plan.seed,
        **plan.repetitions.as_json(),
        "plan_sha256": plan.source_sha256,
        "overrides": list(plan.overrides),
        "cases": [case_to_json(case) for case in cases],
        **service_levels.to_json(cases),
        "criteria": contrasts.to_json(plan.contrasts),
        "require": list(plan.require),
        "protocol": {"analysis": list(plan.protocols)},
        **({"curves": [asdict(curve) for curve in plan.curves]} if plan.curves else {}),
        "files": {value: file.as_json() for value, file in plan.files.items() if value in named},
        **({"environments": environments} if environments else {}),
    }


@dataclass(slots=True)
class _Cases:
    """The cases of every entry, each once, with the number of their runs, and what is wrong with them.

    usual: number of runs where an entry states none
    rule: when there are enough of them, if the plan says so
    runs: case -> number of its runs
    entry_of: case -> number of the entry that made it first
    bounds_ms: case -> bounds from all entries that make it, which are evaluated on the same runs
    """

    usual: int
    rule: StoppingRule | None = None
    runs: dict[Case, int] = field(default_factory=dict)
    entry_of: dict[Case, int] = field(default_factory=dict)
    bounds_ms: dict[Case, set[float]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(service_levels.with_bounds(case, self.bounds_ms.get(case, ())) for case in self.runs)

    def repetitions(self) -> Repetitions:
        if self.rule is not None:
            return Repetitions.until(self.rule)
        return Repetitions(self.usual, {case.id: runs for case, runs in self.runs.items() if runs != self.usual})

    def add(self, cases: Sequence[Case], index: int, stated: int | None, root: Node) -> None:
        """Keeps each case once. A case of two entries has one number: with two of them a plan contradicts itself."""
        runs = self.usual if stated is None else stated
        for case in cases:
            if self.runs.setdefault(case, runs) != runs:
                self.problems.append(_contradiction(case, self.runs[case], runs, (self.entry_of[case], index), root))
            self.entry_of.setdefault(case, index)

    def bound(self, cases: Sequence[Case], index: int, bounds_ms: Sequence[float], root: Node) -> None:
        """Keeps the bounds of an entry. They are wrong where its requests have no time of their own."""
        if not bounds_ms:
            return
        for case in cases:
            self.bounds_ms.setdefault(case, set()).update(bounds_ms)
        for row in dict.fromkeys(case.workload_row for case in cases):
            if not row.uses(service_levels.GROUP):
                what = f"`slo_ms` has no meaning for workload {row.name}"
                place = root.key_place(("matrix", index, "slo_ms"))
                self.problems.append(place.problem(what, f"it applies to {_serving(cases[0])}"))


def _serving(case: Case) -> str:
    """The workloads whose requests have a time of their own."""
    return ", ".join(name for name, row in case.catalogue.workloads.items() if row.uses(service_levels.GROUP))


def _contradiction(case: Case, first: int, second: int, entries: tuple[int, int], root: Node) -> Problem:
    earlier, index = entries
    line = root.at(("matrix", earlier)).place.line
    where = f"entry {earlier}" if line is None else f"the entry on line {line}"
    what = f"{where} makes the case {case.title()}, too, with {first} repetitions; this one has {second}"
    hint = "give both entries one number of `repetitions`, or `exclude` the case from one of them"
    return root.at(("matrix", index)).place.problem(what, hint)


def _required_of_none(plan: PlanShape, cases: Sequence[Case], root: Node) -> list[Problem]:
    """What the plan requires of its runs although it has a meaning for none of them: it would always be met."""
    return [
        root.key_place(("require",)).problem(f"`require: {name}` has no meaning for any case", "remove it")
        for name in dict.fromkeys(plan.require)
        if not any(is_required(name, case) for case in cases)
    ]


def _with_repetitions(plan: PlanShape, repetitions: int | None) -> PlanShape:
    """The plan with one number for every case, where one is given."""
    if repetitions is None:
        return plan
    matrix = tuple(replace(entry, repetitions=None) for entry in plan.matrix)
    return replace(plan, repetitions=repetitions, matrix=matrix)


def _cases_of(
    plan: PlanShape, builder: CaseBuilder, damaged: frozenset[int], environments: PlanEnvironments, is_sound: bool
) -> _Cases:
    """The cases of every entry. `is_sound`: nothing was wrong with the plan so far."""
    stated = plan.repetitions
    made = _Cases(stated.at_most, stated) if isinstance(stated, StoppingRule) else _Cases(stated)
    room = MOST_CELLS
    for index, entry in enumerate(plan.matrix):
        entry_cells = cells_of(entry, index, builder.defaults, builder.root, builder.catalogue, room)
        room -= len(entry_cells.cells)
        made.problems += environments.undefined([builder.defaults, *entry_cells.cells], builder.root)
        if index not in damaged:
            made.problems += entry_cells.problems
        cases = builder.build(entry_cells.cells, index, damaged=index in damaged)
        made.add(cases, index, entry.repetitions, builder.root)
        made.bound(cases, index, entry.slo_ms, builder.root)
    made.problems += builder.problems
    if is_sound and not made.problems:
        made.problems += builder.unused_defaults()
    return made


def _compared(
    plan: PlanShape, cases: Sequence[Case], builder: CaseBuilder, *, is_overridden: bool
) -> tuple[tuple[Contrast, ...], list[Problem]]:
    """What a plan compares, and what is wrong with that. An override may take away what the plan refers to."""
    root = builder.root
    contrasts = contrasts_of(plan, builder.catalogue)
    if is_overridden:
        contrasts = with_matched_references(contrasts, cases)
    problems = [
        *check_contrasts(contrasts, cases, root, builder.catalogue),
        *check_protocols(plan.protocol, contrasts, cases, root),
        *(() if is_overridden else check_curves(plan.curves, contrasts, cases, root, builder.catalogue)),
    ]
    if not is_overridden:
        problems = check_selections(contrasts, cases, root) or problems
    if not problems and not is_overridden:
        problems = check_gpu_energy(contrasts, cases, root, builder.catalogue)
    return contrasts, problems or check_stopping(plan, contrasts, cases, root)


def _row_names(case: Case) -> list[str]:
    """The names by which a case finds its rows."""
    return [name for name in (case.workload, case.model, case.runtime) if name is not None]


def _files_of(cases: Sequence[Case], files: UserFiles) -> dict[str, UserFile]:
    return {value: files.find(name, value) for case in cases for value, name in _user_values(case).items()}


def _user_values(case: Case) -> dict[str, str]:
    """Value -> factor of every factor of a case that names a file of the user's."""
    names = [name for name, factor in FACTORS.items() if factor.kind == "file"]
    return {getattr(case, name): name for name in names if case.names_file(name)}
