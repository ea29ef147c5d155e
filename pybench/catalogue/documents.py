# SPDX-License-Identifier: Apache-2.0
"""Documents that are made of rows: docs/metrics.md, docs/cautions.md and docs/reasons.md, and the tables of
docs/user/plans.md.

    python -m pybench.catalogue.documents docs

A test compares the files with the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from pybench.catalogue.causes import Cause
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.criteria import CRITERIA
from pybench.catalogue.metrics import METRICS, Metric
from pybench.catalogue.precisions import quantised_type
from pybench.catalogue.reason_rows import ReasonRow
from pybench.catalogue.reasons import ReasonCode
from pybench.catalogue.runtimes import RUNTIMES, Backend, Runtime, Where
from pybench.catalogue.workloads import WORKLOADS, Workload

_MADE = "<!-- Made of rows by `python -m pybench.catalogue.documents docs`. Change the rows, not this file. -->"
_TABLE_IS_MADE = _MADE.replace("this file", "this table")

_METRICS = """\
A run stores each metric in `summary.json` under its name, with its unit, window and uncertainty.
`pybench report` prints the meaning of every metric that occurs in a campaign.

- **Rests on**: a run whose validity of this kind is false does not count for the metric.
  A run whose `precision` is invalid counts for no metric.
  A report lists values that do not count, with their [reasons](reasons.md).
- **Compared by**: two cases are compared by the ratio or by the difference of their values.
- **Mean**: values are averaged over the repetitions of a case.
  A geometric mean needs values above 0.
  Without them the mean is arithmetic.
- **Better**: the direction that criteria and `pybench compare` judge by.
  A metric without a direction is context and is not judged.
"""
_CAUTIONS = """\
A caution is a doubt about a run.
It is stored in `run.json` and printed next to the numbers that it concerns.
A run with a caution stays valid.
The caution says what could have moved its numbers, and what to do.
"""
_REASONS = """\
A reason is a short code that says why something is missing or does not count.
Search this page for the code; most messages add facts to it, and a hint.

| where you find the code | what it is about |
| --- | --- |
| `reason` of a metric in `summary.json`, `reasons` in `energy.json` | one value |
| `valid` in `run.json` | the timing, energy, precision or accuracy of a run |
| `reason` in `run.json`, the last column of `pybench check` | a whole run |

`<word>` in a code stands for a name, as in `no_int8_in_torch`.
Doubts that leave a run valid are in [cautions](cautions.md).
"""
_SECTIONS = {
    "invalid": ("Energies that do not count", "The value is stored, and no table or comparison uses it."),
    "remark": ("Energies that count, with a remark", "The value is valid."),
    "missing": ("Values that are missing", "The value is null."),
    "sensor": ("Gaps in the profile of a sensor", "`pybench sensor show` prints the profile with these reasons."),
    "validity": (
        "Runs of which a part does not count",
        "A part that is false does not count; one that is null was not judged.",
    ),
    "unsupported": (
        "Cases that cannot run here",
        "The outcome is `unsupported`, and `run --dry-run` gives the same code beforehand where it can know it.",
    ),
    "outcome": ("Runs without a result", "The outcome says what kind of end it was, and the reason says why."),
}


def metrics_page() -> str:
    """docs/metrics.md."""
    parts = ["# Metrics", _MADE, _METRICS]
    for group in dict.fromkeys(metric.group for metric in METRICS.values()):
        parts.append(f"## {group[0].upper()}{group[1:]}")
        parts += [_metric(metric) for metric in METRICS.values() if metric.group == group]
    return _joined(parts)


def cautions_page() -> str:
    """docs/cautions.md."""
    parts = ["# Cautions", _MADE, _CAUTIONS]
    for caution in CautionCode:
        parts.append(f"## `{caution.code}`\n\n{_sentence(caution.meaning)}\n\n**Do:** {_sentence(caution.advice)}")
    return _joined(parts)


def reasons_page() -> str:
    """docs/reasons.md."""
    rows: list[ReasonRow] = [*ReasonCode, *Cause]
    parts = ["# Reasons", _MADE, _REASONS]
    for kind, (title, text) in _SECTIONS.items():
        listed = "\n".join(_reason(row) for row in rows if row.kind == kind)
        parts.append(f"## {title}\n\n{text}\n\n{listed}")
    return _joined(parts)


def workloads_table() -> str:
    """What an entry has to set for each workload, and the runtimes that it can name."""
    rows = ((f"`{row.name}`", _required(row), _run_in(row)) for row in WORKLOADS.values())
    return _table(("workload", "requires", "runtime"), rows)


def runtimes_table() -> str:
    """What each runtime, or each of its backends, infers in."""
    rows = (_infers_in(row, backend) for row in RUNTIMES.values() for backend in row.backends or (None,))
    return _table(("runtime", "what is timed", "on a CPU", "on a GPU", "weights alone"), rows)


def criteria_table() -> str:
    """What each criterion bounds."""
    rows = ((f"`{kind.name}`", kind.meaning, f"`{kind.metric}`") for kind in CRITERIA.values())
    return _table(("criterion", "bounds", "metric"), rows)


PAGES: Mapping[str, Callable[[], str]] = {
    "metrics.md": metrics_page,
    "cautions.md": cautions_page,
    "reasons.md": reasons_page,
}
TABLES: Mapping[str, Callable[[], str]] = {
    "workloads": workloads_table,
    "runtimes": runtimes_table,
    "criteria": criteria_table,
}
PAGE_OF_TABLES = "user/plans.md"


def filled(text: str) -> str:
    """A page whose tables are what the rows say. Each is between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Raises ValueError where the page has no place for a table, or several."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        if not text.count(begin) == text.count(end) == 1:
            raise ValueError(f"the table of {name} has no place, or several")
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{_TABLE_IS_MADE}\n\n{table()}\n\n{end}{rest.partition(end)[2]}"
    return text


def _table(titles: Collection[str], rows: Iterable[Iterable[str]]) -> str:
    lines = (titles, ["---"] * len(titles), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _required(row: Workload) -> str:
    """Factors without a default, as far as the row tells: data and weights also follow from the model."""
    if row.model == "none":
        return "a GPU" if row.needs_gpu is not None else "nothing"
    parts = ["`model`"] if row.model == "required" else ["`path`, if no `model` is given"]
    if row.runtime is None:
        parts.append("`runtime`")
    if row.fits:
        parts.append("`target_top1_percent`")
    if row.parts_pairs:
        parts.append(f"`precision: {' or '.join(_taken_apart(row))}`")
    if row.needs_images:
        parts.append("`images` for an image model")
    return ", ".join(parts)


def _taken_apart(row: Workload) -> list[str]:
    """The quantised precisions of the runtime that takes pairs of Q/DQ apart on a CPU."""
    backend = RUNTIMES[str(row.runtime)].backend(None, has_gpu=False)
    return [name for name in (backend.precisions if backend else ()) if quantised_type(name) is not None]


def _run_in(row: Workload) -> str:
    """The runtimes that a workload can use."""
    if row.model == "none":
        return "none"
    if row.parts_pairs:
        return f"`{row.runtime}` on a CPU"
    if row.trains:
        return _code(each.name for each in RUNTIMES.values() if each.trains)
    if row.generates:
        return _code(each.name for each in RUNTIMES.values() if each.generates is not None)
    return "any" if row.runtime is None else f"any, by default `{row.runtime}`"


def _infers_in(row: Runtime, backend: Backend | None) -> tuple[str, ...]:
    name = f"`{row.name}`" if backend is None else f"`{row.name}`, `provider: {backend.name}`"
    if row.computes_in is not None:
        return (name, row.meaning, f"always `{row.computes_in}`", "none", "none")
    executes = row.precisions if backend is None else backend.precisions
    on_cpu = backend is None or not backend.needs_gpu
    on_gpu = row.gpu_fact is not None if backend is None else backend.needs_gpu

    def at(*places: Where) -> str:
        return _code(name for name, place in executes.items() if place in places)

    some = f"{at('on_some_cpus')} if the CPU multiplies in them" if at("on_some_cpus") else ""
    cpu = "; ".join(part for part in (at("anywhere"), some) if part and on_cpu)
    gpu = at("anywhere", "on_gpu") if on_gpu else ""
    stored = _code(backend.stores) if backend is not None else ""
    return (name, row.meaning, cpu or "none", gpu or "none", stored or "none")


def _reason(row: ReasonRow) -> str:
    return f"- **`{row.code}`**: {row.meaning}.\n  {_sentence(row.advice)}"


def _metric(metric: Metric) -> str:
    facts = {
        "Unit": metric.unit if metric.unit != "1" else "none",
        "Better": metric.better if metric.better != "none" else "not judged",
        "Rests on": metric.rests_on or "only precision",
        "Compared by": metric.scale,
        "Mean": "none: the metric is an interval" if metric.is_interval else metric.mean,
    }
    if metric.is_counted:
        facts["Exact"] = "counted, so equal values have no interval"
    if metric.is_over_units:
        facts["Interval over"] = "units of the data, such as images, where predictions are stored; else runs"
    listed = " · ".join(f"{name}: {value}" for name, value in facts.items())
    return f"### `{metric.name}`\n\n**{metric.label}**: {metric.meaning}.\n\n{listed}"


def _sentence(text: str) -> str:
    """With a capital letter where it begins with a word, and a full stop."""
    return (text if text.startswith("`") else text[0].upper() + text[1:]).rstrip(".") + "."


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(sys.argv[1]) / name).write_text(page())
    tabled = Path(sys.argv[1]) / PAGE_OF_TABLES
    tabled.write_text(filled(tabled.read_text()))
