# SPDX-License-Identifier: Apache-2.0
"""What a named protocol tested: means with intervals and Shapiro-Wilk, every pair, ANOVA with its assumptions."""

from __future__ import annotations

from collections.abc import Iterator

from pybench.analysis.protocols.protocol import ProtocolFinding, ProtocolSetting, SampleFinding, Scenario, TestedPair
from pybench.analysis.statistics.paired import ALPHA
from pybench.analysis.statistics.unpaired import NO_SPREAD
from pybench.case import Case
from pybench.report.labels import case_text, is_protocol, metric_title, varying_factors
from pybench.report.numbers import DASH, display_unit
from pybench.report.tables import (
    Cell,
    Column,
    Table,
    estimate_cell,
    estimate_fields,
    number_cell,
    p_cell,
    text_cell,
)


def protocol_tables(finding: ProtocolFinding) -> list[Table]:
    """Samples, pairs and, where the protocol looks for it, the analysis of variance."""
    tables = [_sample_table(finding), _pair_table(finding)]
    return [*tables, _variance_table(finding)] if finding.protocol.checks_normality else tables


def setting_texts(finding: ProtocolFinding) -> list[str]:
    """Where each setting is: the factors by which the baselines of one contrast differ, and the contrast where there is
    more than one."""
    several = len({setting.contrast.title() for setting in finding.settings}) > 1
    numbers = [finding.contrasts.index(setting.contrast) for setting in finding.settings]
    baselines: dict[int, list[Case]] = {}
    for number, setting in zip(numbers, finding.settings, strict=True):
        baselines.setdefault(number, []).append(setting.cases[0])
    names = {
        number: [name for name in varying_factors(of) if not is_protocol(name)] for number, of in baselines.items()
    }
    parts = [
        (case_text(setting.cases[0], names[number]), setting.contrast.title() if several else "")
        for number, setting in zip(numbers, finding.settings, strict=True)
    ]
    return [", ".join(part for part in pair if part) or "all" for pair in parts]


def member_text(setting: ProtocolSetting, case: Case) -> str:
    """A case within its setting: the baseline's factors, and others if those do not tell it from the rest."""
    names = tuple(setting.contrast.baseline)
    if len({case_text(other, names) for other in setting.cases}) < len(setting.cases):
        names = varying_factors(setting.cases)
    return case_text(case, names)


def _scenarios(finding: ProtocolFinding) -> Iterator[tuple[str, ProtocolSetting, Scenario]]:
    """(where, setting, scenario) of each row."""
    places = zip(setting_texts(finding), finding.settings, strict=True)
    return ((place, setting, scenario) for place, setting in places for scenario in setting.scenarios)


def _head(
    place: str, setting: ProtocolSetting, scenario: Scenario, label: str | None = None, cases: tuple[str, ...] = ()
) -> tuple[Cell, ...]:
    """`cases`: ids of those that the row is of, besides those of its other cells."""
    return (
        Cell(place, csv=(setting.cases[0].id,), cases=cases),
        Cell(label or scenario.metric.label, csv=(scenario.metric.name,)),
    )


def _ids(setting: ProtocolSetting) -> tuple[str, ...]:
    return tuple(case.id for case in setting.cases)


_HEAD = (Column("Setting", ("baseline_id",)), Column("Metric", ("metric",)))


def _sample_table(finding: ProtocolFinding) -> Table:
    checks = finding.protocol.checks_normality
    columns = [
        *_HEAD,
        Column("Case", ("case_id",)),
        Column("Mean", estimate_fields("mean"), numeric=True),
        Column("n", ("n",), numeric=True),
    ]
    if checks:
        columns += [
            Column("Shapiro-Wilk W", ("shapiro_wilk_w",), numeric=True),
            Column("p (normal)", ("shapiro_wilk_p",), numeric=True),
            Column("Normal", ("normal",)),
        ]
    rows = []
    for place, setting, scenario in _scenarios(finding):
        values = [sample.estimate.value for sample in scenario.samples if sample.estimate is not None]
        unit = display_unit(scenario.metric.unit, values)
        for sample in scenario.samples:
            cells = (
                *_head(place, setting, scenario, metric_title(scenario.metric, unit)),
                Cell(member_text(setting, sample.case), csv=(sample.case.id,)),
                estimate_cell(sample.estimate, unit=unit, why_none=sample.why_none),
                number_cell(0 if sample.estimate is None else sample.estimate.n),
            )
            rows.append((*cells, *(_normality_cells(sample) if checks else ())))
    interval = "Student's t" if finding.protocol.interval == "student" else "BCa bootstrap"
    notes = [f"Arithmetic means over repetitions with 95 % intervals ({interval})."]
    notes += [f"Normal: Shapiro-Wilk on each sample; rejected if p is below {ALPHA}."] if checks else []
    return Table(
        _name(finding, "samples"), f"Samples ({finding.protocol.name})", tuple(columns), tuple(rows), tuple(notes)
    )


def _normality_cells(sample: SampleFinding) -> tuple[Cell, ...]:
    normal = sample.normality
    if normal is None:
        why = sample.why_none
        return number_cell(None, note=why), number_cell(None, note=why), text_cell(None, note=why)
    text = "untested" if normal.p_value is None else "not rejected" if normal.is_plausible else "rejected"
    return (
        _number(normal.statistic, normal.why_none),
        p_cell(normal.p_value, normal.why_none),
        text_cell(text, tone="good" if normal.is_plausible else "neutral"),
    )


def _pair_table(finding: ProtocolFinding) -> Table:
    tukey = any(pair.p_tukey is not None for pair in finding.tested_pairs)
    columns = [
        *_HEAD,
        Column("Case", ("case_id",)),
        Column("Compared with", ("against_id",)),
        Column("Test", ("test",)),
        Column("p", ("p_value",), numeric=True),
        Column("p (Holm)", ("p_holm",), numeric=True),
        *([Column("p (Tukey)", ("p_tukey",), numeric=True)] if tukey else []),
        Column("Effect size", ("effect", "effect_name"), numeric=True),
        Column("Paired ratio", estimate_fields("paired_ratio"), numeric=True),
        Column("p (paired)", ("p_paired",), numeric=True),
        Column("Why this test", ("why",)),
    ]
    rows = [
        (*_head(place, setting, scenario), *_pair_cells(setting, pair, tukey))
        for place, setting, scenario in _scenarios(finding)
        for pair in scenario.tested_pairs
    ]
    distinct = finding.distinct_pairs
    tested = sum(pair.test is not None and pair.test.p_value is not None for pair in distinct)
    repeated = "; a pair with several rows counts once" if len(distinct) < len(rows) else ""
    notes = [
        "p: two-sided test for no difference, with the two samples taken as independent.",
        f"p (Holm): corrected for the {tested} pairs of this table that could be tested{repeated}.",
        "Effect size: Hedges' g* for Welch, Cliff's delta for Mann-Whitney; positive if the case is larger.",
        "Paired ratio: case over the other case within blocks, with its 95 % interval, as in the tables of effects.",
    ]
    notes += ["p (Tukey): Tukey's HSD, only where the assumptions of ANOVA were not rejected."] if tukey else []
    return Table(
        _name(finding, "pairs"), f"All pairs ({finding.protocol.name})", tuple(columns), tuple(rows), tuple(notes)
    )


def _pair_cells(setting: ProtocolSetting, pair: TestedPair, tukey: bool) -> list[Cell]:
    test, why = pair.test, pair.why_none
    names = [Cell(member_text(setting, case), csv=(case.id,)) for case in (pair.first, pair.second)]
    blank = [Cell("", csv=("",)) if pair.p_tukey is None else p_cell(pair.p_tukey)] if tukey else []
    if test is None:
        dashes = [number_cell(None, note=why), number_cell(None, note=why)]
        effect = Cell(DASH, note=why, csv=("", ""))
        rest = [estimate_cell(None, why_none=why), number_cell(None, note=why), text_cell("")]
        return [*names, text_cell(None, note=why), *dashes, *blank, effect, *rest]
    paired = pair.paired
    size = number_cell(test.effect)
    return [
        *names,
        text_cell(test.test),
        p_cell(test.p_value, test.why),
        p_cell(pair.p_adjusted, test.why),
        *blank,
        Cell(f"{size.text} ({_SHORT[test.effect_name]})", number=test.effect, csv=(*size.csv, test.effect_name)),
        estimate_cell(paired.estimate if paired else None, why_none="no block has values of both sides"),
        p_cell(paired.p_value if paired else None),
        text_cell(test.why),
    ]


_SHORT = {"Hedges g*": "g*", "Cliff delta": "δ"}


def _variance_table(finding: ProtocolFinding) -> Table:
    columns = (
        *_HEAD,
        Column("p (residuals normal)", ("residuals_shapiro_wilk_p",), numeric=True),
        Column("p (equal variances)", ("brown_forsythe_p",), numeric=True),
        Column("F", ("f_statistic",), numeric=True),
        Column("p (ANOVA)", ("p_anova",), numeric=True),
        Column("Pairs that differ (Tukey)", ("tukey_pairs_apart", "tukey_pairs"), numeric=True),
        Column("ANOVA", ("anova",)),
    )
    rows = tuple(
        (*_head(place, setting, scenario, cases=_ids(setting)), *_variance_cells(scenario))
        for place, setting, scenario in _scenarios(finding)
    )
    notes = (
        f"ANOVA is done only if the p of both assumptions is at least {ALPHA}.",
        "p (residuals normal): Shapiro-Wilk. p (equal variances): Brown-Forsythe.",
    )
    return Table(_name(finding, "anova"), f"Analysis of variance ({finding.protocol.name})", columns, rows, notes)


def _variance_cells(scenario: Scenario) -> tuple[Cell, ...]:
    found = scenario.variances
    if found is None:
        why = "a case has no values"
        dashes = [number_cell(None, note=why)] * 4
        return *dashes, Cell(DASH, note=why, csv=("", "")), text_cell(f"not done: {why}")
    p_values = [pair.p_tukey for pair in scenario.tested_pairs if pair.p_tukey is not None]
    apart = sum(p < ALPHA for p in p_values)
    done = not found.failed_assumptions
    why_none = None if done else "not done"
    tukey = Cell(f"{apart} of {len(p_values)}", number=float(apart), csv=(str(apart), str(len(p_values))))
    return (
        p_cell(found.residuals.p_value, found.residuals.why_none),
        p_cell(found.brown_forsythe_p, NO_SPREAD),
        _number(found.f_statistic, why_none),
        p_cell(found.p_value, why_none),
        tukey if done else Cell(DASH, note=why_none, csv=("", "")),
        text_cell("done" if done else f"not done: {found.why_omitted}", tone="good" if done else "neutral"),
    )


def _name(finding: ProtocolFinding, what: str) -> str:
    return f"{finding.protocol.name}-{what}"


def _number(value: float | None, why_none: str | None) -> Cell:
    return number_cell(value, note=why_none if value is None else None, text=None if value is None else f"{value:.4g}")
