# SPDX-License-Identifier: Apache-2.0
"""Names of metrics, criteria and cases for tables and figures. A metric's label is in its row of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pybench.case import Case
from pybench.case.contrasts import Criterion
from pybench.case.factors import FACTORS, factor_named, factor_names, is_idle
from pybench.case.pairing import Pair
from pybench.case.references import Reference
from pybench.catalogue.metrics import Metric
from pybench.report.numbers import DisplayUnit, format_plain
from pybench.words import counted


def metric_title(metric: Metric, unit: DisplayUnit) -> str:
    """`Mean latency (ms)`: a metric as the head of a column."""
    return _with_unit(metric.label, unit.name)


def _with_unit(text: str, unit: str) -> str:
    return text if unit in ("1", "", "1/s") else f"{text} ({unit})"


def criterion_label(criterion: Criterion | Reference) -> str:
    """The number that is bounded or was published: `Speed-up`, `Goodput`, `Top-1 difference (pp)`."""
    return comparison_label(criterion.row, criterion.kind, inverse=criterion.inverse)


def comparison_label(metric: Metric, kind: str, *, inverse: bool) -> str:
    """What a comparison of two values is called. `kind`: as of a criterion; `inverse`: baseline over case."""
    if inverse and metric.name == "latency_mean_ms":
        return "Speed-up"
    if kind == "ratio":
        return f"{metric.label} ratio"
    if kind == "absolute":
        return _with_unit(metric.label, metric.unit)
    return _with_unit(f"{metric.label} difference", "pp" if metric.unit == "%" else metric.unit)


def bound_text(criterion: Criterion) -> str:
    """`≥ 1.15`."""
    return f"{'≥' if criterion.sense == 'min' else '≤'} {format_plain(criterion.threshold)}"


# Limits and settings of how a case is measured, beside which other factors tell cases apart for a reader.
_MINOR = frozenset({"calibration_images", "corpus_field", "corpus_limit_bytes", "fed", "image_limit", "threads"})


def varying_factors(cases: Sequence[Case]) -> tuple[str, ...]:
    """Factors that are not the same in all cases that they mean something for, in the order of `FACTORS`."""
    return tuple(name for name, values in _values(cases).items() if _differ(values))


def _differ(values: Iterable[object]) -> bool:
    """Whether values are not all the same; 1, 1.0 and True are three."""
    return len(set(map(repr, values))) > 1


def _values(cases: Sequence[Case]) -> dict[str, list[object]]:
    """Factor -> its value in each of the cases that it means something for."""
    meant = [case.meant for case in cases]
    return {name: [values[name] for values in meant if name in values] for name in factor_names(cases)}


def case_names(cases: Sequence[Case]) -> list[str]:
    """A short name of each case among the others."""
    names = [name for name in naming_factors(cases) if name != "workload"]
    several = len({case.workload for case in cases}) > 1
    leads = [case.workload_row.label if several else "" for case in cases]
    texts = [case_text(case, names) for case in cases]
    joined = [": ".join(part for part in pair if part) for pair in zip(leads, texts, strict=True)]
    return [text or case.title() for text, case in zip(joined, cases, strict=True)]


def naming_factors(cases: Sequence[Case]) -> tuple[str, ...]:
    """The varying factors that a figure's label needs: those of `_MINOR` are left out as far as no two cases then share
    a name. Tables show them all."""
    names = list(varying_factors(cases))
    told_apart = len({case_text(case, names) for case in cases})
    for minor in [name for name in names if is_protocol(name) or name in _MINOR]:
        fewer = [name for name in names if name != minor]
        if len({case_text(case, fewer) for case in cases}) == told_apart:
            names = fewer
    return tuple(names)


def shared_notes(cases: Sequence[Case], factors: Mapping[str, object]) -> list[str]:
    """Notes of a table with `constant_factors` of its cases: apart from the others those that mean nothing for some."""
    everywhere: list[str] = []
    elsewhere: list[str] = []
    for name, value in factors.items():
        told = elsewhere if any(is_idle(name, case) for case in cases) else everywhere
        told.append(f"{name.replace('_', ' ')} {value}")
    leads = {"In all rows": everywhere, "In all rows for which it means something": elsewhere}
    return [f"{lead}: {', '.join(told)}." for lead, told in leads.items() if told]


def constant_factors(cases: Sequence[Case]) -> dict[str, object]:
    """Factors that all cases share which they mean something for, and that some case set, protocol included."""
    chosen = {name for case in cases for name in case.chosen()}
    return {
        name: values[0]
        for name, values in _values(cases).items()
        if name in chosen and values and name != "workload" and not _differ(values)
    }


def is_protocol(name: str) -> bool:
    """Whether a factor says how a case is measured rather than what. No option does."""
    return name in FACTORS and FACTORS[name].protocol


def factor_title(name: str) -> str:
    """`Batch tokens`: a factor as the head of a column."""
    return name.replace("_", " ").capitalize()


def value_text(value: object) -> str:
    """`8`, `yes`, `default`: the value of a factor below its title."""
    return {True: "yes", False: "no", None: "default"}[value] if isinstance(value, bool | None) else str(value)


def factor_text(name: str, value: object) -> str:
    """`fp32`, `batch 8`, `task default`: values of closed lists and models speak for themselves, a default does not."""
    shown = value_text(value)
    speaks = value is not None and (name == "model" or (name in FACTORS and FACTORS[name].kind == "choice"))
    return shown if speaks else f"{name.replace('_', ' ')} {shown}"


def case_text(case: Case, names: Iterable[str]) -> str:
    """The given factors of a case in one line; left out are those that mean nothing for it, and files not given."""
    values = {name: case.meant[name] for name in names if name in case.meant}
    given = {
        name: value for name, value in values.items() if value is not None or factor_named(name, case).kind != "file"
    }
    return ", ".join(factor_text(name, value) for name, value in given.items())


def pair_texts(pair: Pair, fixed: Sequence[str], context: Sequence[str]) -> tuple[str, str, str]:
    """(what the case has, what the baseline has, where): `int8`, `fp32`, `onnxruntime, batch 8`."""
    shown = [name for name in context if name not in fixed]
    return case_text(pair.case, fixed), case_text(pair.baseline, fixed), case_text(pair.case, shown)


def left_out_notes(count: int) -> list[str]:
    """That so many rows of a table are left out, because their cases did not run."""
    if not count:
        return []
    rows = f"{counted(count, 'row')} with a case"
    return [f"Left out: {rows} that did not run. The table of coverage has every case."]
