# SPDX-License-Identifier: Apache-2.0
"""A plan's criteria against its cases: comparing nothing, or bounding what nobody measures, is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pybench.case import Case, contrasts
from pybench.case.contrasts import Contrast
from pybench.case.curves import LEAST_VALUES, PlannedCurve
from pybench.case.pairing import Pair, pairs
from pybench.case.questions import count_questions
from pybench.case.references import Reference, meaning_of
from pybench.case.repetitions import UNTIL, StoppingRule
from pybench.case.service_levels import GROUP, at_bounds, bounds_of, rows_of
from pybench.case.yields import metrics_of
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.criteria import compared_of, criteria_of
from pybench.catalogue.protocols import PAIRED_BLOCKS, PROTOCOLS
from pybench.catalogue.workloads import ABOVE_IDLE
from pybench.document import Node
from pybench.errors import Problem, UsageError
from pybench.plan.shape import PlanShape

_BASELINE_HINT = "such as `criteria: {baseline: {precision: fp32}}`"


def contrasts_of(plan: PlanShape, catalogue: Catalogue = BUILT_IN) -> tuple[Contrast, ...]:
    """What a plan compares."""
    return contrasts.parse(
        [
            {
                "name": entry.name,
                "baseline": entry.baseline,
                "where": entry.where,
                "accept": entry.accept,
                "reference": entry.reference,
            }
            for entry in plan.criteria
        ],
        catalogue,
    )


def with_matched_references(contrasts: Sequence[Contrast], cases: Sequence[Case]) -> tuple[Contrast, ...]:
    """The comparisons without published values of cases or metrics that an override took out of the plan."""
    return tuple(_with_matched(contrast, cases) if contrast.reference else contrast for contrast in contrasts)


def _with_matched(contrast: Contrast, cases: Sequence[Case]) -> Contrast:
    try:
        found = pairs(cases, contrast)
    except UsageError:  # several baselines fit one case: the check of the comparison says so
        return contrast
    kept = [one for one in contrast.reference if any(one.metric in metrics_of(case) for case in _meant(one, found))]
    return replace(contrast, reference=tuple(kept))


def _meant(reference: Reference, found: Sequence[Pair]) -> list[Case]:
    """The cases of some pairs that a value was published for; a baseline has only values of its own."""
    return [case for case in _sides(reference, found) if reference.selects(case)]


def _sides(reference: Reference, found: Sequence[Pair]) -> list[Case]:
    if reference.kind == "absolute":
        return list(dict.fromkeys(case for pair in found for case in (pair.case, pair.baseline)))
    return [pair.case for pair in found]


def check_contrasts(
    contrasts: Sequence[Contrast], cases: Sequence[Case], root: Node, catalogue: Catalogue = BUILT_IN
) -> list[Problem]:
    """Everything that is wrong with comparisons among these cases. `catalogue`: what hints may name."""
    found = [problem for i, contrast in enumerate(contrasts) for problem in _check(contrast, i, cases, root, catalogue)]
    return [*_check_equal(contrasts, root), *_check_names(contrasts, root), *found]


def _check_names(contrasts: Sequence[Contrast], root: Node) -> list[Problem]:
    """A name that stands twice: nothing else tells in a report which verdict is of which comparison."""
    names = [contrast.name for contrast in contrasts]
    return [
        root.key_place(("criteria", index, "name")).problem(f"another comparison is called `{name}`, too", "rename one")
        for index, name in enumerate(names)
        if name is not None and names.index(name) < index
    ]


def _check_equal(contrasts: Sequence[Contrast], root: Node) -> list[Problem]:
    """A comparison that stands twice: it would be two questions, and widen the intervals of all."""
    asked = [replace(contrast, name=None, reference=()) for contrast in contrasts]
    problems = []
    for index, contrast in enumerate(asked):
        first = asked.index(contrast)
        if first < index:
            line = root.key_place(("criteria", first, "baseline")).line
            what = "the same comparison stands before" + (f", in line {line}" if line is not None else "")
            hint = "remove one of them; the other can have the published values of both"
            problems.append(root.key_place(("criteria", index, "baseline")).problem(what, hint))
    return problems


def check_selections(contrasts: Sequence[Contrast], cases: Sequence[Case], root: Node) -> list[Problem]:
    """Values of `where` that no case has, each: a list with one wrong value would select less than it seems to."""
    problems = []
    for index, contrast in enumerate(contrasts):
        for factor, wanted in (contrast.where or {}).items():
            path = ("criteria", index, "where", factor)
            listed = wanted if isinstance(wanted, tuple) else (wanted,)
            for position, value in enumerate(listed):
                if all(case.factors().get(factor) != value for case in cases):
                    place = root.at((*path, position) if isinstance(wanted, tuple) else path).place
                    problems.append(place.problem(f"no case has {factor}={value}", _there(factor, cases)))
    return problems


def check_gpu_energy(
    contrasts: Sequence[Contrast], cases: Sequence[Case], root: Node, catalogue: Catalogue = BUILT_IN
) -> list[Problem]:
    """Bounds of GPU energy where no compared case may use a GPU: all runs would end well, and decide nothing."""
    problems = []
    for index, contrast in enumerate(contrasts):
        devices = {pair.case.device for pair in pairs(cases, contrast)}
        for criterion in contrast.accept if devices == {"cpu"} else ():
            row = catalogue.metrics.get(criterion.metric)
            if row is not None and row.has_board_gain:
                what = f"`{criterion.name}` needs energy of a GPU, and every compared case has `device: cpu`"
                place = root.key_place(("criteria", index, "accept", criterion.name))
                problems.append(place.problem(what, "remove it, or give the cases another `device`"))
    return problems


def check_stopping(plan: PlanShape, contrasts: Sequence[Contrast], cases: Sequence[Case], root: Node) -> list[Problem]:
    """What keeps a plan from stopping when it is decided: numbers of its entries, and nothing that blocks decide."""
    if not isinstance(plan.repetitions, StoppingRule):
        return []
    until = f"`until: {UNTIL}`"
    own = [
        root.key_place(("matrix", index, "repetitions")).problem(
            f"an entry has a number of `repetitions`, and the plan has {until}",
            "remove one of them: blocks are complete or not, so all cases stop together",
        )
        for index, entry in enumerate(plan.matrix)
        if entry.repetitions is not None
    ]
    place = root.key_place(("repetitions", "until"))
    if not contrasts:
        return [*own, place.problem(f"{until} requires `criteria`, which say what is to be decided", _BASELINE_HINT)]
    if not count_questions(cases, [at_bounds(one, cases) for one in contrasts]):
        what = f"{until} has nothing to decide: no comparison has an interval over blocks"
        return [*own, place.problem(what, "give a number of `repetitions`; accuracies have their units in each run")]
    return own


def check_protocols(
    names: Sequence[str], contrasts: Sequence[Contrast], cases: Sequence[Case], root: Node
) -> list[Problem]:
    """What a protocol lacks: without criteria it compares with its own baseline, which has to be there."""
    place = root.at(("protocol",)).place
    problems = []
    for protocol in (PROTOCOLS[name] for name in dict.fromkeys(names) if name != PAIRED_BLOCKS and not contrasts):
        if protocol.baseline is None:
            problems.append(place.problem(f"{protocol.name} requires `criteria` with a baseline", _BASELINE_HINT))
        elif not _has_pairs(cases, Contrast(baseline=protocol.baseline)):
            said = ", ".join(f"{factor}={value}" for factor, value in protocol.baseline.items())
            what = f"{protocol.name} without `criteria` compares with {said}, and no case can be"
            problems.append(place.problem(what, _BASELINE_HINT))
    return problems


def check_curves(
    curves: Sequence[PlannedCurve],
    contrasts: Sequence[Contrast],
    cases: Sequence[Case],
    root: Node,
    catalogue: Catalogue = BUILT_IN,
) -> list[Problem]:
    """A curve that has no line: its factor has one value, or nothing that it draws is measured or compared."""
    problems = []
    for index, curve in enumerate(curves):
        over, metric = (root.at(("curves", index, key)).place for key in ("over", "metric"))
        yielded = frozenset[str]().union(*(metrics_of(case) for case in cases))
        values = {case.value(curve.over) for case in cases if curve.over in case.own_factors()} - {None}
        if len(values) < LEAST_VALUES:
            what = f"a curve over {curve.over} needs at least {LEAST_VALUES} values of it"
            problems.append(over.problem(what, f"give `{curve.over}` more values in `matrix`"))
        elif curve.metric in compared_of(catalogue) and not contrasts:
            what = f"{curve.metric} compares with a baseline, and the plan has no `criteria`"
            problems.append(metric.problem(what, _BASELINE_HINT))
        elif curve.metric is not None and (measured := meaning_of(curve.metric, catalogue)[0].name) not in yielded:
            needs = "" if measured == curve.metric else f"{curve.metric} needs {measured}: "
            problems.append(metric.problem(f"{needs}no case yields {measured}", _who_yields(measured, catalogue)))
        elif (most := _most_values(curve, cases, catalogue)) < LEAST_VALUES:
            what = f"a curve over {curve.over} needs at least {LEAST_VALUES} values of it"
            drawn = "no workload" if curve.metric is None else f"no workload that yields {curve.metric}"
            hint = f"give `{curve.over}` more values in one entry of `matrix`"
            problems.append(over.problem(f"{what}, and {drawn} has more than {most}", hint))
    return problems


def _most_values(curve: PlannedCurve, cases: Sequence[Case], catalogue: Catalogue) -> int:
    """How many values the factor of a curve has within a workload, at most: a line crosses no workloads."""
    measured = None if curve.metric is None else meaning_of(curve.metric, catalogue)[0].name
    values: dict[str, set[object]] = {}
    for case in cases:
        if curve.over in case.own_factors() and (measured is None or measured in metrics_of(case)):
            values.setdefault(case.workload, set()).add(case.value(curve.over))
    return max((len(found - {None}) for found in values.values()), default=0)


def _has_pairs(cases: Sequence[Case], contrast: Contrast) -> bool:
    try:
        return bool(pairs(cases, contrast))
    except UsageError:  # several baselines fit one case: the plan has to choose
        return False


def _check(contrast: Contrast, index: int, cases: Sequence[Case], root: Node, catalogue: Catalogue) -> list[Problem]:
    place = root.at(("criteria", index, "baseline")).place
    absent = [
        root.at(("criteria", index, "baseline", factor)).place.problem(
            f"no case has {factor}={value}", _there(factor, cases)
        )
        for factor, value in contrast.baseline.items()
        if all(case.factors().get(factor) != value for case in cases)
    ]
    if absent:
        return absent
    if contrast.where and not any(contrast.selects(case) for case in cases):
        return [root.key_place(("criteria", index, "where")).problem("`where` selects no case")]
    try:
        found = pairs(cases, contrast)
    except UsageError as error:
        return [place.problem(error.message, error.hint)]
    if not found:
        hint = "a case needs a partner with the values of the baseline that is equal in all other factors"
        return [place.problem("no case can be compared with this baseline", hint)]
    yielded = frozenset[str]().union(*(metrics_of(pair.case) for pair in found))
    asked = at_bounds(contrast, [pair.case for pair in found])
    return (
        [
            problem
            for reference in contrast.reference
            for problem in _check_reference(reference, ("criteria", index, *reference.path), found, root, catalogue)
        ]
        + [
            root.key_place(("criteria", index, "accept", criterion.name)).problem(
                f"`{criterion.name}` needs {criterion.metric}, which no compared case yields",
                _who_yields(criterion.metric, catalogue),
            )
            for criterion in asked.accept
            if criterion.metric not in yielded
        ]
        + _check_bounds(asked, index, found, root)
        + _check_sizes(contrast, index, found, root, catalogue)
    )


def _check_bounds(asked: Contrast, index: int, found: Sequence[Pair], root: Node) -> list[Problem]:
    """Where a criterion compares a case at a bound of latency that its baseline does not have."""
    problems = []
    for pair in found:
        missing = sorted(set(bounds_of(pair.case)) - set(bounds_of(pair.baseline)))
        rows = {row.name: row for row in rows_of(pair.case) if row.bound_ms in missing}
        for criterion in asked.accept:
            if criterion.metric in rows and criterion.kind != "absolute":
                name, _, _ = criterion.name.partition("@")
                what = f"`{name}` needs `slo_ms: {rows[criterion.metric].bound_ms:g}` in the baseline, too"
                place = root.key_place(("criteria", index, "accept", name))
                problems.append(place.problem(what, f"give the entry of `{pair.baseline.title()}` the same bounds"))
    return list(dict.fromkeys(problems))


def _check_sizes(
    contrast: Contrast, index: int, found: Sequence[Pair], root: Node, catalogue: Catalogue
) -> list[Problem]:
    """A speed-up between iterations of unequal numbers of samples: the larger would be slower, however fast it is."""
    problems = []
    for criterion in contrast.accept:
        apart = [pair for pair in found if criterion.metric == pair.case.headline != pair.headline]
        if criterion.inverse and apart:
            sizes = sorted({apart[0].case.batch, apart[0].baseline.batch})
            rates = [row.name for row in criteria_of(catalogue).values() if row.metric == apart[0].headline]
            what = f"`{criterion.name}` divides latencies of iterations with {sizes[0]} and {sizes[1]} samples"
            place = root.key_place(("criteria", index, "accept", criterion.name))
            problems.append(place.problem(what, f"bound a rate: `{' or '.join(rates)}`"))
    return problems


def _check_reference(
    reference: Reference, path: tuple[str | int, ...], found: Sequence[Pair], root: Node, catalogue: Catalogue
) -> list[Problem]:
    """What keeps a published value from having a counterpart among the pairs."""
    cases, meant = _sides(reference, found), _meant(reference, found)
    if not meant:
        place = root.key_place((*path, "where"))
        absent = [
            f"the compared cases have {factor} {_values_of(factor, cases)}"
            for factor, wanted in reference.where.items()
            if all(case.factors().get(factor) not in wanted for case in cases)
        ]
        hint = absent[0] if absent else "no compared case has all of these values"
        return [place.problem("`where` matches no compared case", hint)]
    if not any(reference.metric in metrics_of(case) for case in meant):
        what = f"`{reference.name}` needs {reference.metric}, which no case that it is published for yields"
        return [root.key_place(path).problem(what, _who_yields(reference.metric, catalogue))]
    return []


def _there(factor: str, cases: Sequence[Case]) -> str:
    return f"the plan has {_values_of(factor, cases)}"


def _values_of(factor: str, cases: Sequence[Case]) -> str:
    values = list(dict.fromkeys(str(case.value(factor)) for case in cases if factor in case.own_factors()))
    return ", ".join(values[:8])


def _who_yields(metric: str, catalogue: Catalogue = BUILT_IN) -> str | None:
    """For a hint: the workloads, or what the metric is, where a setting such as a lower precision makes it."""
    base, _, bound = metric.partition("@")
    row = catalogue.metrics.get(base)
    if row is not None and row.is_per_bound:
        served = " or ".join(name for name, row in catalogue.workloads.items() if row.uses(GROUP))
        return f"it comes from workload {served}, where the entry has `slo_ms" + (
            f": {bound.removesuffix('ms')}`" if bound else "`"
        )
    usual = [
        Case(workload=name, model=model, catalogue=catalogue)
        for name, row in catalogue.workloads.items()
        for model in (None, *catalogue.models_of(row))
    ]
    those = [case for case in usual if metric in metrics_of(case)]
    if not those:
        return None if row is None else f"it is: {row.meaning}"
    needs_ids = any(case.workload_row.model == "required" for case in those) and all(
        case.model_row is None or case.model_row.takes_ids for case in those
    )
    return (
        f"it comes from workload {' or '.join(dict.fromkeys(case.workload for case in those))}"
        + (" of a language model" if needs_ids else "")
        + (", where `idle_window_s` is not 0" if metric in ABOVE_IDLE else "")
    )
