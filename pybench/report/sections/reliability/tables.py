# SPDX-License-Identifier: Apache-2.0
"""Tables that say how sure the findings are: coverage, cautions, tokenizer paths, boards, builds, environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from pybench.analysis import Analysis
from pybench.analysis.comparability import PairComparability
from pybench.analysis.findings.boards import BoardEffects
from pybench.analysis.findings.build_variance import BuildVariance
from pybench.campaign.layout import COVERING
from pybench.case import Case
from pybench.case.pairing import Pair
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.metrics import Metric
from pybench.catalogue.validities import VALIDITIES
from pybench.dataset import Dataset
from pybench.dataset.coverage import STATES, Coverage
from pybench.report.labels import case_text, comparison_label, varying_factors
from pybench.report.reasons import codes_of, group_text
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, p_cell, text_cell

_ADVICE = {member.code: member for member in CautionCode}


def coverage_table(coverage: Coverage) -> Table:
    """One row a case: how many of its repetitions have an answer."""
    occurring = [state for state in STATES if coverage.states.get(state)]
    columns = (
        Column("Case", ("case",)),
        Column("Covered", ("covered", "planned"), numeric=True),
        *(Column(state.replace("_", " ").capitalize(), (state,), numeric=True) for state in occurring),
        Column("Reasons", ("reasons",)),
    )
    rows = []
    for entry in coverage.cases:
        share = f"{entry.covered}/{entry.planned}"
        covered = number_cell(entry.covered, text=share, tone="good" if entry.covered == entry.planned else "bad")
        counts = [number_cell(entry.states.get(state, 0)) for state in occurring]
        reasons = ", ".join(f"{reason} ({count})" for reason, count in entry.reasons.items())
        rows.append((text_cell(entry.case.title()), covered, *counts, text_cell(reasons)))
    covering = ", ".join(sorted(COVERING))
    notes = [f"{coverage.covered_text} (outcome {covering})."]
    if coverage.orphans:
        runs, cases = sum(coverage.orphans.values()), len(coverage.orphans)
        notes.append(f"{runs} runs are of {cases} cases that are not in the plan; they do not count.")
    if coverage.beyond:
        notes.append(f"{coverage.beyond} runs are in blocks beyond the plan's repetitions; they do not count.")
    if coverage.finished:
        notes.append(guard_text(coverage))
    return Table("coverage", "Coverage of the plan", columns, tuple(rows), tuple(notes))


def guard_text(coverage: Coverage) -> str:
    """How many finished runs are known to be as they finished, in a sentence."""
    if coverage.unguarded:
        return (
            f"{coverage.unguarded} of {coverage.finished} finished runs are unguarded: an older pybench stored no "
            "digests of their files, so a change of these files would not be noticed."
        )
    return (
        f"The files of all {coverage.finished} finished runs have the digests that were stored when the run finished."
    )


def software_table(found: Mapping[Pair, PairComparability]) -> Table:
    """One row for each comparison whose sides ran with different software, or loaded different packages."""
    columns = (
        Column("Case", ("case",)),
        Column("Baseline", ("baseline",)),
        Column("Status", ("status",)),
        Column("Excluded blocks", ("blocks_excluded", "blocks"), numeric=True),
        Column("What differs", ("differences",)),
        Column("Loaded only by the case", ("packages_of_case_only",)),
        Column("Loaded only by the baseline", ("packages_of_baseline_only",)),
        Column("Known for one side only", ("unstated",)),
    )
    rows = []
    for pair, one in found.items():
        if not (one.excluded or one.only_candidate or one.only_baseline or one.unstated):
            continue
        left_out = f"{len(one.excluded)}/{len(one.blocks)}"
        names = "; ".join(f"{difference.text()} ({count})" for difference, count in one.differences.items())
        rows.append(
            (
                Cell(pair.case.title(), csv=(pair.case.id,)),
                Cell(pair.baseline.title(), csv=(pair.baseline.id,)),
                text_cell(one.status.value, tone="bad" if one.excluded else None),
                Cell(left_out, csv=(str(len(one.excluded)), str(len(one.blocks)))),
                text_cell(names),
                *(text_cell(", ".join(words)) for words in (one.only_candidate, one.only_baseline, one.unstated)),
            )
        )
    notes = ("Two runs are compared only if board, CPU, driver, image, pybench, Python and common packages are equal.",)
    return Table("software", "Software of the two sides of each comparison", columns, tuple(rows), notes)


def cautions_table(dataset: Dataset) -> Table:
    """Every kind of doubt that a run stored, with how often, an example and what to do."""
    grouped = dataset.cautions.group_by("code", maintain_order=True).agg(
        pl.len().alias("times"),
        pl.struct("case_id", "block").n_unique().alias("runs"),
        pl.col("case_id").n_unique().alias("cases"),
        pl.col("detail").first(),
        pl.col("advice").first(),
    )
    rows = []
    for row in grouped.sort("runs", "code", descending=[True, False]).iter_rows(named=True):
        known = _ADVICE.get(row["code"])
        meaning = known.meaning if known is not None else "this version of pybench does not support this caution"
        rows.append(
            (
                text_cell(row["code"], tone="neutral"),
                number_cell(row["runs"]),
                number_cell(row["cases"]),
                text_cell(meaning),
                text_cell(row["detail"]),
                text_cell(row["advice"]),
            )
        )
    columns = (
        Column("Caution", ("caution",)),
        Column("Runs", ("runs",), numeric=True),
        Column("Cases", ("cases",), numeric=True),
        Column("Meaning", ("meaning",)),
        Column("Example", ("example",)),
        Column("What to do", ("advice",)),
    )
    return Table("cautions", "Cautions", columns, tuple(rows))


def fed_table(dataset: Dataset) -> Table:
    """What was fed to the models: values alone change the power of a GPU by tens of percent."""
    fed: dict[str, list[str]] = {}
    for (case_id, _), labels in dataset.labels.items():
        if labels.get("inputs") is not None:
            fed.setdefault(str(labels["inputs"]), []).append(case_id)
    rows = [
        (text_cell(what), number_cell(len(set(case_ids))), number_cell(len(case_ids))) for what, case_ids in fed.items()
    ]
    columns = (
        Column("Inputs", ("inputs",)),
        Column("Cases", ("cases",), numeric=True),
        Column("Runs", ("runs",), numeric=True),
    )
    notes = ("Input values change the power of a GPU. Compare energies of cases that were fed alike.",)
    return Table("fed", "What was fed to the models", columns, tuple(rows), notes)


def token_table(analysis: Analysis) -> Table:
    """Whether all paths of one text gave the same ids."""
    rows = []
    for finding in analysis.token_paths:
        text, tone = {
            True: ("equal ids", "good"),
            False: ("DIFFERENT IDS", "bad"),
            None: ("not comparable", "neutral"),
        }[finding.equal]
        where = ", ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in finding.shared.items() if value is not None
        )
        note = f"blocks {', '.join(map(str, finding.differing))} differ" if finding.differing else None
        rows.append(
            (
                text_cell(where),
                text_cell(", ".join(finding.digests)),
                number_cell(finding.blocks),
                text_cell(text, tone=tone, note=note),
            )
        )
    columns = (
        Column("Text and shape", ("text",)),
        Column("Paths", ("paths",)),
        Column("Blocks compared", ("blocks",), numeric=True),
        Column("Ids", ("ids",)),
    )
    return Table("token-paths", "Equality of the ids of tokenizer paths", columns, tuple(rows))


def validity_table(dataset: Dataset) -> Table:
    """How many ok runs are valid in each sense, and why the others are not."""
    ran = dataset.runs.filter(dataset.runs["outcome"] == "ok")
    rows = []
    for name in VALIDITIES:
        column = ran[f"valid_{name}"]
        invalid = ran.filter(~column.fill_null(True))[f"reasons_{name}"].explode()
        reasons = ", ".join(
            f"{code} ({count})" for code, count in invalid.drop_nulls().value_counts(sort=True).iter_rows()
        )
        required = name in dataset.plan.require
        bad = int((~column.fill_null(True)).sum())
        rows.append(
            (
                text_cell(name + (" (required)" if required else "")),
                number_cell(int(column.fill_null(False).sum())),
                number_cell(bad, tone="bad" if bad and required else "neutral" if bad else None),
                number_cell(column.null_count()),
                text_cell(reasons),
            )
        )
    columns = (
        Column("Validity", ("validity",)),
        Column("Valid", ("valid",), numeric=True),
        Column("Invalid", ("invalid",), numeric=True),
        Column("Not checked", ("not_asked",), numeric=True),
        Column("Reasons", ("reasons",)),
    )
    return Table(
        "validity",
        "Validity of the runs with outcome ok",
        columns,
        tuple(rows),
        ("Values of invalid runs are counted and excluded from every mean.",),
    )


def exclusions_table(analysis: Analysis) -> Table:
    """What was measured and does not count, and what could not be measured, by metric and code of the reason."""
    found: dict[tuple[Metric, str, str], list[tuple[Case, str, int]]] = {}
    for case in analysis.cases:
        for finding in case.metrics.values():
            for what, counts in (("invalid", finding.excluded), ("missing", finding.missing)):
                for reason, runs in counts.items():
                    found.setdefault((finding.metric, what, codes_of(reason)), []).append((case.case, reason, runs))
    rows = []
    for (metric, what, _), members in found.items():
        values = sum(runs for _, _, runs in members)
        titles = list(dict.fromkeys(case.title() for case, _, _ in members))
        rows.append(
            (
                Cell(metric.label, csv=(metric.name,)),
                text_cell(what, tone="bad" if what == "invalid" else "neutral"),
                text_cell(group_text([reason for _, reason, _ in members])),
                number_cell(values),
                text_cell(titles[0] if len(titles) == 1 else f"{len(titles)} cases, such as {titles[0]}"),
            )
        )
    columns = (
        Column("Metric", ("metric",)),
        Column("Kind", ("left_out_as",)),
        Column("Reason", ("reason",)),
        Column("Values", ("values",), numeric=True),
        Column("Cases", ("of",)),
    )
    return Table("left-out", "Missing and invalid values, with reasons", columns, tuple(rows))


def failures_table(analysis: Analysis, run_link: str) -> Table:
    """Cases with runs that are not ok."""
    rows = []
    for case in analysis.cases:
        for (outcome, reason), runs in case.failures.items():
            rows.append(
                (
                    text_cell(case.case.title(), href=f"{run_link}/{case.case.id}/" if case.folders else None),
                    text_cell(outcome),
                    text_cell(reason),
                    number_cell(runs),
                )
            )
    columns = (
        Column("Case", ("case",)),
        Column("Outcome", ("outcome",)),
        Column("Reason", ("reason",)),
        Column("Runs", ("runs",), numeric=True),
    )
    return Table("not-ok", "Runs that are not ok", columns, tuple(rows))


def builds_table(analysis: Analysis) -> Table:
    """How much of the variance lies between builds of one engine, metric by metric."""
    engines = [finding.cases[0] for finding in analysis.builds]
    names = [name for name in varying_factors(engines) if name != "build"]
    columns = (
        Column("Engine", ("engine_build_1",)),
        Column("Metric", ("metric",)),
        Column("Builds", ("builds",), numeric=True),
        Column("Blocks", ("blocks", "blocks_left_out"), numeric=True),
        Column("SD between builds", ("sd_between_builds",), numeric=True),
        Column("SD of runs in a block", ("sd_residual",), numeric=True),
        Column("Share between builds", estimate_fields("share_between_builds"), numeric=True),
        Column("p (builds equal)", ("p_value",), numeric=True),
    )
    rows = tuple(
        (
            Cell(case_text(finding.cases[0], names) or "all", csv=(finding.cases[0].id,)),
            Cell(finding.metric.label, csv=(finding.metric.name,)),
            number_cell(len(finding.cases)),
            _blocks_cell(finding),
            _deviation_cell(finding.between, finding.is_relative),
            _deviation_cell(finding.residual, finding.is_relative),
            estimate_cell(finding.share),
            p_cell(finding.p_value),
        )
        for finding in analysis.builds
    )
    notes = (
        "Model: random effects of build and block, from blocks with runs of all builds.",
        "Percentages are standard deviations of logarithms. Drift common to a block is in neither of them.",
        "With few builds the share is uncertain, and its interval is wide.",
    )
    return Table("builds", "Variance between builds and of runs in a block", columns, rows, notes)


def boards_table(found: Sequence[BoardEffects]) -> Table:
    """Declared effects over blocks of several boards, board by board."""
    boards = list(dict.fromkeys(board for one in found for board in one.by_board))
    names = varying_factors([case for one in found for case in (one.pair.case, one.pair.baseline)])
    columns = (
        Column("Case", ("case",)),
        Column("Baseline", ("baseline",)),
        Column("Quantity", ("metric", "inverse")),
        *(Column(short_board(board), estimate_fields(board), numeric=True) for board in boards),
        Column("p (boards equal)", ("p_value",), numeric=True),
        Column("Holm's p", ("p_adjusted",), numeric=True),
    )
    rows = tuple(
        (
            *(Cell(case_text(case, names), csv=(case.id,)) for case in (one.pair.case, one.pair.baseline)),
            Cell(
                comparison_label(one.metric, one.metric.scale, inverse=one.inverse),
                csv=(one.metric.name, str(one.inverse).lower()),
            ),
            *(estimate_cell(one.by_board.get(board), signed=one.metric.scale == "difference") for board in boards),
            p_cell(one.p_value),
            p_cell(one.p_adjusted),
        )
        for one in found
    )
    notes = (
        "Each effect is that of the blocks of one board.",
        "Where boards differ, the effect over all blocks is a mean, and its interval may contain none of theirs.",
        "It says nothing of other boards.",
    )
    return Table("boards", "Effects by board", columns, rows, notes)


def short_board(board: str) -> str:
    """The first part of a UUID, which is enough to tell boards apart."""
    return board[:12]


def _blocks_cell(finding: BuildVariance) -> Cell:
    left_out = finding.blocks_left_out
    note = f"{left_out} blocks excluded, because a build has no value or other software" if left_out else None
    return Cell(str(finding.blocks), number=float(finding.blocks), note=note, csv=(str(finding.blocks), str(left_out)))


def _deviation_cell(value: float, is_relative: bool) -> Cell:
    return number_cell(value, text=f"{100 * value:.2g} %" if is_relative else f"{value:.2g}")
