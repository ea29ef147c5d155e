# SPDX-License-Identifier: Apache-2.0
"""Documents that are made of rows: docs/metrics.md and docs/cautions.md.

    python -m pybench.catalogue.documents docs

A test compares the files with the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.metrics import METRICS, Metric

_MADE = "<!-- Made of rows by `python -m pybench.catalogue.documents docs`. Change the rows, not this file. -->"

_METRICS = """\
A run stores each metric in `summary.json` under its name, with its unit, window and uncertainty.
`pybench report` prints the meaning of every metric that occurs in a campaign.

- **Rests on**: a run whose validity of this kind is false does not count for the metric.
  A run whose `precision` is invalid counts for no metric.
  Values that do not count are listed with their reasons.
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


PAGES: Mapping[str, Callable[[], str]] = {"metrics.md": metrics_page, "cautions.md": cautions_page}


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
    if metric.hit_column is not None:
        facts["Interval over"] = "images, where predictions are stored; else runs"
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
