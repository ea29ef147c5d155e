# SPDX-License-Identifier: Apache-2.0
"""docs/metrics.md, docs/cautions.md and docs/reasons.md: a section for each row."""

from __future__ import annotations

from documents.markdown import ROWS_SAY, joined
from pybench.catalogue.causes import Cause
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.metrics import METRICS, Metric
from pybench.catalogue.reason_rows import ReasonRow
from pybench.catalogue.reasons import ReasonCode

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
- **Gated**: `pybench compare` judges it without being told; other metrics are context of the comparison.
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
    parts = ["# Metrics", ROWS_SAY, _METRICS]
    for group in dict.fromkeys(metric.group for metric in METRICS.values()):
        parts.append(f"## {group[0].upper()}{group[1:]}")
        parts += [_metric(metric) for metric in METRICS.values() if metric.group == group]
    return joined(parts)


def cautions_page() -> str:
    """docs/cautions.md."""
    parts = ["# Cautions", ROWS_SAY, _CAUTIONS]
    for caution in CautionCode:
        parts.append(f"## `{caution.code}`\n\n{_sentence(caution.meaning)}\n\n**Do:** {_sentence(caution.advice)}")
    return joined(parts)


def reasons_page() -> str:
    """docs/reasons.md."""
    rows: list[ReasonRow] = [*ReasonCode, *Cause]
    parts = ["# Reasons", ROWS_SAY, _REASONS]
    for kind, (title, text) in _SECTIONS.items():
        listed = "\n".join(_reason(row) for row in rows if row.kind == kind)
        parts.append(f"## {title}\n\n{text}\n\n{listed}")
    return joined(parts)


def _reason(row: ReasonRow) -> str:
    return f"- **`{row.code}`**: {row.meaning}.\n  {_sentence(row.advice)}"


def _metric(metric: Metric) -> str:
    facts = {
        "Unit": metric.unit if metric.unit != "1" else "none",
        "Better": metric.better if metric.better != "none" else "not judged",
        "Rests on": " and ".join(metric.validities) or "only precision",
        "Compared by": metric.scale,
        "Mean": "none: the metric is an interval" if metric.is_interval else metric.mean,
    }
    if metric.gated:
        facts["Gated"] = "yes"
    if metric.is_counted:
        facts["Exact"] = "counted, so equal values have no interval"
    if metric.is_over_units:
        facts["Interval over"] = "units of the data, such as images, where predictions are stored; else runs"
    listed = " · ".join(f"{name}: {value}" for name, value in facts.items())
    return f"### `{metric.name}`\n\n**{metric.label}**: {metric.meaning}.\n\n{listed}"


def _sentence(text: str) -> str:
    """With a capital letter where it begins with a word, and a full stop."""
    return (text if text.startswith("`") else text[0].upper() + text[1:]).rstrip(".") + "."
