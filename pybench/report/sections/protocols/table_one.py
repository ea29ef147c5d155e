# SPDX-License-Identifier: Apache-2.0
"""The first paper's Table 1, as it stands there (one row a precision) and in full (one row a precision and batch).

The short form keeps the paper's columns and decimals: Top-1, speed-up at each batch, range of the energy saved, size of
the engine, Top-1 against the baseline, status. Both print their notes in LaTeX, because a paper's reader needs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybench.analysis.findings.verdicts import Verdict
from pybench.analysis.protocols.protocol import ProtocolFinding
from pybench.analysis.protocols.trade_offs import ENERGY, Figure, TradeOff, TradeOffVerdict
from pybench.case import Case
from pybench.case.contrasts import Contrast
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.units import MEGA
from pybench.report.labels import (
    bound_text,
    case_text,
    constant_factors,
    criterion_label,
    is_protocol,
    metric_title,
    shared_notes,
    varying_factors,
)
from pybench.report.numbers import DASH, DisplayUnit, display_unit, format_fixed
from pybench.report.sections.findings.contrast_tables import TONES
from pybench.report.tables import (
    Cell,
    Column,
    Table,
    estimate_cell,
    estimate_fields,
    number_cell,
    text_cell,
)

STANDING_TONES = {
    TradeOffVerdict.ADVANTAGEOUS: "good",
    TradeOffVerdict.NOT_ADVANTAGEOUS: "bad",
    TradeOffVerdict.NOT_JUDGED: "neutral",
    TradeOffVerdict.BASELINE: None,
}
_IN_FULL = (
    "latency_mean_ms",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "throughput_samples_per_s",
    "gpu_energy_per_sample_j",
    "peak_device_bytes",
    "top1_percent",
    "top5_percent",
    "model_bytes",
)
_ENERGY_INTERVAL_NOTE = (
    "An interval of energy leaves out the gain of the board's sensor, which the ± in the tables of cases contains."
)

Line = tuple[TradeOff, ...]


def trade_off_tables(finding: ProtocolFinding) -> list[Table]:
    """Two tables for each contrast that compares inference: `table1` and `table1-by-batch`, then `table1-2`, ...

    Only the second where batches are what is compared: the first has a row for what is one model but for the batch."""
    found = [pair for pair in zip(finding.contrasts, finding.trade_offs, strict=True) if pair[1]]
    tables = []
    for number, (contrast, rows) in enumerate(found, start=1):
        name = "table1" if number == 1 else f"table1-{number}"
        tables += [] if "batch" in contrast.baseline else [_short_table(name, contrast, rows)]
        tables.append(_full_table(f"{name}-by-batch", contrast, rows))
    return tables


def lines_of(contrast: Contrast, rows: Sequence[TradeOff]) -> list[tuple[str, Line]]:
    """(what it is, its rows at each batch) of everything that is one model but for the batch."""
    names, apart = line_factors(contrast, rows), _told_apart(contrast, rows)
    lines: dict[tuple[object, ...], list[TradeOff]] = {}
    for row in rows:
        lines.setdefault(_line_key(row.case, apart), []).append(row)
    return [
        (factor_label(line[0].case, names), tuple(sorted(line, key=lambda row: row.case.batch)))
        for line in lines.values()
    ]


def line_factors(contrast: Contrast, rows: Sequence[TradeOff]) -> tuple[str, ...]:
    """The baseline's factors, and others that tell lines apart if those do not."""
    apart = _told_apart(contrast, rows)
    cases = list({_line_key(row.case, apart): row.case for row in rows}.values())
    names = tuple(contrast.baseline)
    if len({case_text(case, names) for case in cases}) == len(cases):
        return names
    varying = [name for name in varying_factors(cases) if name in apart or not (name == "batch" or is_protocol(name))]
    return (*names, *(name for name in varying if name not in names))


def factor_label(case: Case, names: Sequence[str]) -> str:
    """A precision in capitals, as papers write it; other factors in words."""
    others = [name for name in names if name != "precision"]
    parts = [case.precision.upper()] if "precision" in names else []
    return ", ".join([*parts, *([case_text(case, others)] if others else [])])


def standing_text(line: Line) -> tuple[str, TradeOffVerdict]:
    """One word where it holds at every batch, else each with its batches; `only` where all the others are refused."""
    batches: dict[TradeOffVerdict, list[str]] = {}
    for row in line:
        if row.standing is not TradeOffVerdict.BASELINE or len(line) == 1:
            batches.setdefault(row.standing, []).append(str(row.case.batch))
    if len(batches) < 2:
        standing = next(iter(batches), TradeOffVerdict.BASELINE)
        return standing.value, standing
    if TradeOffVerdict.NOT_JUDGED not in batches:
        return (
            f"advantageous at batch {', '.join(batches[TradeOffVerdict.ADVANTAGEOUS])} only",
            TradeOffVerdict.NOT_JUDGED,
        )
    ordered = [standing for standing in TradeOffVerdict if standing in batches]
    texts = (f"{standing.value} at batch {', '.join(batches[standing])}" for standing in ordered)
    return "; ".join(texts), TradeOffVerdict.NOT_JUDGED


def _told_apart(contrast: Contrast, rows: Sequence[TradeOff]) -> frozenset[str]:
    """Factors that usually vary with the batch, and here make lines of their own.

    That is the batch where the baseline names it, and how long was measured where that alone tells cases apart.
    """
    same: dict[tuple[object, ...], list[Case]] = {}
    for row in rows:
        same.setdefault((row.case.batch, *_line_key(row.case, frozenset())), []).append(row.case)
    apart = {name for cases in same.values() for name in varying_factors(cases) if is_protocol(name)}
    return frozenset(apart | ({"batch"} & set(contrast.baseline)))


def _line_key(case: Case, apart: frozenset[str]) -> tuple[object, ...]:
    """Batch aside, and how long it was measured. `apart`: of these, what tells lines apart."""
    factors = case.factors().items()
    return tuple(
        (name, value) for name, value in factors if name in apart or not (name == "batch" or is_protocol(name))
    )


# --- one row a precision ---------------------------------------------------------------------------------------------


def _short_table(name: str, contrast: Contrast, rows: Sequence[TradeOff]) -> Table:
    lines = lines_of(contrast, rows)
    batches = sorted({row.case.batch for row in rows})
    baseline = factor_label(rows[0].baseline, tuple(contrast.baseline))
    columns = (
        Column(_head(contrast), ("case",)),
        Column("Top-1 (%)", ("top1_percent",), numeric=True),
        Column(f"Speed-up ({'/'.join(map(str, batches))})", tuple(f"speedup_batch_{b}" for b in batches), numeric=True),
        Column("Energy reduction (%)", ("energy_reduction_percent_min", "energy_reduction_percent_max"), numeric=True),
        Column(f"{_engine(rows)} (MB)", ("model_mb_min", "model_mb_max"), numeric=True),
        Column(f"Δ Top-1 vs {baseline} (pp)", ("top1_delta_pp",), numeric=True),
        Column("Status", ("status",)),
    )
    return Table(
        name,
        f"Trade-offs: {contrast.title()}",
        columns,
        tuple(_short_row(label, line, batches) for label, line in lines),
        tuple(_notes(contrast, rows, batches)),
        prints_notes=True,
    )


def _short_row(label: str, line: Line, batches: Sequence[int]) -> tuple[Cell, ...]:
    by_batch = {row.case.batch: row for row in line}
    text, standing = standing_text(line)
    why = "; ".join(dict.fromkeys(row.why_not_judged for row in line if row.why_not_judged)) or None
    top1, sizes = (
        {batch: row.figures[name] for batch, row in by_batch.items()} for name in ("top1_percent", "model_bytes")
    )
    delta = {batch: row.top1_delta_pp for batch, row in by_batch.items()}
    return (
        text_cell(label, cases=tuple(row.case.id for row in line)),
        _range_cell(top1, 2, 1.0, ends=False),
        _listed_cell({b: by_batch[b].speedup if b in by_batch else _NOT_PLANNED for b in batches}, 2),
        _range_cell({b: row.energy_reduction_percent for b, row in by_batch.items()}, 1, 1.0, ends=True),
        _range_cell(sizes, 2, MEGA, ends=True),
        _range_cell(delta, 2, 1.0, ends=False, signed=standing is not TradeOffVerdict.BASELINE),
        text_cell(text, tone=STANDING_TONES[standing], note=why),
    )


_NOT_PLANNED = Figure(None, "not planned at this batch")


def _listed_cell(figures: Mapping[int, Figure], decimals: int) -> Cell:
    """`4.22 / 4.54 / 4.51`, a dash for each that is missing. `figures`: batch -> number."""
    estimates = [one.estimate for one in figures.values()]
    texts = [DASH if one is None else format_fixed(one.value, decimals) for one in estimates]
    values = [one.value for one in estimates if one is not None]
    stored = tuple("" if one is None else repr(one.value) for one in estimates)
    return Cell(" / ".join(texts), number=min(values, default=None), note=_why(figures), csv=stored)


def _range_cell(
    figures: Mapping[int, Figure], decimals: int, scale: float, *, ends: bool, signed: bool = False
) -> Cell:
    """The number, or its smallest and largest over the batches; what is missing at some of them is said in a note."""
    values = sorted(one.estimate.value / scale for one in figures.values() if one.estimate is not None)
    if not values:
        return Cell(DASH, note=_why(figures), csv=("", "") if ends else ("",))
    shown = list(dict.fromkeys(_fixed(value, decimals, signed) for value in (values[0], values[-1])))
    stored = (repr(values[0]), repr(values[-1])) if ends else (repr(values[0]),)
    return Cell("–".join(shown), number=values[0], note=_why(figures), csv=stored)


def _fixed(value: float, decimals: int, signed: bool) -> str:
    text = format_fixed(value, decimals)
    return f"+{text}" if signed and round(value, decimals) > 0 else text


def _why(figures: Mapping[int, Figure]) -> str | None:
    """Why numbers are missing, and at which batches if not at all of them."""
    missing: dict[str, list[str]] = {}
    for batch, one in figures.items():
        if one.estimate is None:
            missing.setdefault(one.why_none or "not measured", []).append(str(batch))
    parts = [
        why if len(batches) == len(figures) else f"batch {', '.join(batches)}: {why}"
        for why, batches in missing.items()
    ]
    return "; ".join(parts) or None


# --- one row a precision and batch -----------------------------------------------------------------------------------


def _full_table(name: str, contrast: Contrast, rows: Sequence[TradeOff]) -> Table:
    shown = [metric for metric in _IN_FULL if any(row.figures[metric].estimate for row in rows)]
    units = {
        metric: display_unit(METRICS[metric].unit, [f.value for row in rows if (f := row.figures[metric].estimate)])
        for metric in shown
    }
    heads = {metric: metric_title(METRICS[metric], units[metric]) for metric in shown}
    heads |= {"model_bytes": f"{_engine(rows)} ({units['model_bytes'].name})"} if "model_bytes" in units else {}
    by_batch = "batch" in contrast.baseline  # what a row is says its batch then
    columns = (
        Column(_head(contrast), ("case", "case_id")),
        *([] if by_batch else [Column("Batch", ("batch",), numeric=True)]),
        *(Column(heads[metric], estimate_fields(metric), numeric=True) for metric in shown),
        Column("Speed-up", ("speedup",), numeric=True),
        Column("Energy reduction (%)", ("energy_reduction_percent",), numeric=True),
        Column("Δ Top-1 (pp)", estimate_fields("top1_delta_pp"), numeric=True),
        Column("Status", ("status",)),
        Column("By intervals", ("verdict_by_intervals",)),
    )
    names = line_factors(contrast, rows)
    cells = []
    for row in rows:
        figures = [_mean_cell(row.figures[metric], metric, units[metric]) for metric in shown]
        label = factor_label(row.case, names)
        batch = [] if by_batch else [number_cell(row.case.batch)]
        cells.append((Cell(label, csv=(label, row.case.id)), *batch, *figures, *_verdicts(row)))
    notes = (
        *_notes(contrast, rows, ()),
        "Brackets: 95 % intervals, of accuracies by scores over images, of the rest Student's over repetitions.",
        *([_ENERGY_INTERVAL_NOTE] if ENERGY in shown else []),
        "By intervals: the verdict of the paired comparison on the bounds of the plan (table of verdicts).",
    )
    title = f"Trade-offs at each batch: {contrast.title()}"
    return Table(name, title, columns, tuple(cells), notes, prints_notes=True)


def _mean_cell(figure: Figure, metric: str, unit: DisplayUnit) -> Cell:
    if METRICS[metric].unit == "%":
        return estimate_cell(figure.estimate, unit=unit, why_none=figure.why_none)
    if METRICS[metric].is_counted and figure.estimate is not None:  # repetitions that are equal are no doubt here
        return number_cell(figure.estimate.value, text=format_fixed(figure.estimate.value / unit.scale, 2))
    return estimate_cell(figure.estimate, unit=unit, why_none=figure.why_none)


def _verdicts(row: TradeOff) -> tuple[Cell, ...]:
    own = row.own_verdict
    if row.standing is TradeOffVerdict.BASELINE:
        beside = Cell("", csv=("",))  # nothing is missing: a baseline is not judged
    else:
        beside = text_cell(own.value if own else None, tone=TONES[own] if own else None, note=_unjudged(own))
    return (
        _figure_cell(row.speedup, 2),
        _figure_cell(row.energy_reduction_percent, 1),
        number_cell(0.0, text="0.00")  # by definition, so without an interval
        if row.standing is TradeOffVerdict.BASELINE and row.top1_delta_pp.estimate is not None
        else estimate_cell(row.top1_delta_pp.estimate, signed=True, why_none=row.top1_delta_pp.why_none),
        text_cell(row.standing.value, tone=STANDING_TONES[row.standing], note=row.why_not_judged),
        beside,
    )


def _unjudged(own: Verdict | None) -> str | None:
    return None if own else "the plan sets no bounds"


def _figure_cell(figure: Figure, decimals: int) -> Cell:
    if figure.estimate is None:
        return number_cell(None, note=figure.why_none)
    return number_cell(figure.estimate.value, text=format_fixed(figure.estimate.value, decimals))


# --- words -----------------------------------------------------------------------------------------------------------


def _head(contrast: Contrast) -> str:
    return ", ".join(name.replace("_", " ") for name in contrast.baseline).capitalize()


def _engine(rows: Sequence[TradeOff]) -> str:
    opened = {None if row.case.runtime_row is None else row.case.runtime_row.opens for row in rows}
    return "Engine" if opened == {"engine"} else METRICS["model_bytes"].label


def _notes(contrast: Contrast, rows: Sequence[TradeOff], batches: Sequence[int]) -> list[str]:
    at = f", at batch {' / '.join(map(str, batches))}" if batches else ""
    notes = shared_notes([row.case for row in rows], _constant(rows))
    notes.append(
        f"{_repetitions(rows)} Speed-up: mean latency of the baseline over that of the case{at}. 1 MB = 10⁶ bytes."
    )
    notes.append(_energy_note(rows))
    images = {row.figures["top1_percent"].estimate for row in rows}
    counts = sorted({one.n for one in images if one is not None and one.method.startswith("Wilson")})
    over = f" (over {' or '.join(map(str, counts))} images)" if counts else ""
    notes.append(f"A positive Δ Top-1{over} is better than the baseline.")
    notes.append(_rule_note(rows))
    return notes


def _constant(rows: Sequence[TradeOff]) -> Mapping[str, object]:
    return {name: value for name, value in constant_factors([row.case for row in rows]).items() if name != "batch"}


def _repetitions(rows: Sequence[TradeOff]) -> str:
    counts = sorted({one.n for row in rows if (one := row.figures["latency_mean_ms"].estimate)})
    shown = "–".join(map(str, dict.fromkeys((counts[0], counts[-1])))) if counts else "no"
    return f"Arithmetic means over {shown} repetitions (processes)."


def _energy_note(rows: Sequence[TradeOff]) -> str:
    figures = [row.figures[ENERGY] for row in rows]
    windows = sorted({name for figure in figures for name in figure.windows})
    methods = sorted({name for figure in figures for name in figure.methods})
    if not windows:
        return "Energy: no run has a valid energy."
    by = f", method {', '.join(methods)}" if methods else ""
    return f"Energy: of the GPU board for one sample, in the window `{'` and `'.join(windows)}`{by}."


def _rule_note(rows: Sequence[TradeOff]) -> str:
    bounds = {one.criterion: one.is_own for row in rows for one in row.bounded}
    said = [
        f"{criterion_label(criterion)} {bound_text(criterion)} (set by the {'protocol' if is_own else 'plan'})"
        for criterion, is_own in bounds.items()
    ]
    return f"Advantageous: {' and '.join(said) or 'no bound is set'}, judged by point estimates."
