# SPDX-License-Identifier: Apache-2.0
"""The page: one HTML file that needs no network, reads without scripts and prints.

Every string is escaped by the template engine; beyond that the page's own policy lets no script run but the one whose
hash it names, and lets nothing be loaded from anywhere. No date of making stands in it: the same runs give the same
bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from typing import Any

from pybench import __version__
from pybench.analysis import Analysis
from pybench.case import catalogue_of
from pybench.dataset import Dataset
from pybench.report.canvas import Picture, inline
from pybench.report.numbers import DASH, format_duration
from pybench.report.sections.findings import Findings
from pybench.report.sections.kernels import on_page
from pybench.report.sections.protocols import ProtocolSection
from pybench.report.sections.results.method import paragraphs
from pybench.report.tables import Table

_STACKED_FROM = 5  # columns with intervals
_RUNS_SHOWN = 4  # power traces with their budgets on the page; the rest is in files


@dataclass(frozen=True, slots=True)
class Contents:
    """What the page shows, in its parts. `joule_tables`: that of all cases, then one for each case, of which
    the first have `power_pictures`."""

    findings: Findings
    found_tables: Sequence[Table]
    sure_tables: Sequence[Table]
    behind_tables: Sequence[Table]
    pictures: Sequence[Picture]
    kernel_tables: Sequence[Table]
    joule_tables: Sequence[Table]
    power_pictures: Sequence[Picture]
    protocols: Sequence[ProtocolSection]


def render_page(dataset: Dataset, analysis: Analysis, contents: Contents, run_link: str) -> str:
    """The whole of index.html."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    script = _template("sort.js")
    # Without a comparison the plain picture of each workload is the finding.
    first = (
        ("paths", "forest", "plane")
        if analysis.contrasts
        else tuple(dict.fromkeys(_kind(shown) for shown in contents.pictures if _kind(shown) != "order"))
    )
    return environment.from_string(_template("page.html.j2")).render(
        name=dataset.plan.name,
        version=__version__,
        dash=DASH,
        facts=_facts(dataset, analysis),
        findings=contents.findings,
        found_pictures=_drawn(contents.pictures, *first),
        found_tables=_listed([table for table in contents.found_tables if table.rows]),
        sure_pictures=_drawn(contents.pictures, "order"),
        sure_tables=_listed([table for table in contents.sure_tables if table.rows]),
        kernel_tables=_listed([on_page(table) for table in contents.kernel_tables if table.rows]),
        joules=_joules(contents),
        protocols=[{"section": one, "tables": _listed(one.tables)} for one in contents.protocols],
        behind_pictures=_drawn([shown for shown in contents.pictures if _kind(shown) not in (*first, "order")]),
        behind_tables=_listed([table for table in contents.behind_tables if table.rows]),
        runs=_runs(analysis, run_link),
        run_count=dataset.runs.height,
        method=paragraphs(dataset),
        metrics=_meanings(analysis),
        plan_text=dataset.plan_text,
        stylesheet=Markup(_template("style.css")),
        script=Markup(script),
        script_hash=_policy_hash(script),
    )


def _template(name: str) -> str:
    return resources.files("pybench.report").joinpath("templates", name).read_text(encoding="utf-8")


def _policy_hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _listed(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Tables with the footnote marks of their cells' notes."""
    return [
        {
            "table": table,
            "marks": {reason: str(index) for index, reason in enumerate(table.reasons, start=1)},
            # Many intervals side by side do not fit a page: they then stand below their values.
            "stacked": sum(len(column.fields) > 1 for column in table.columns) >= _STACKED_FROM,
        }
        for table in tables
    ]


def _drawn(pictures: Sequence[Picture], *kinds: str) -> list[dict[str, Any]]:
    from markupsafe import Markup

    return [
        {"picture": shown, "svg": Markup(inline(shown))} for shown in pictures if not kinds or _kind(shown) in kinds
    ]


def _joules(contents: Contents) -> dict[str, Any] | None:
    """The section of joules: the table of all cases, the first runs with trace and budget, how many more there are."""
    if not contents.joule_tables:
        return None
    overview, *budgets = _listed(contents.joule_tables)
    pictures = [shown.name for shown in contents.power_pictures]
    return {
        "overview": overview,
        "runs": list(zip(_drawn(contents.power_pictures[:_RUNS_SHOWN]), budgets[:_RUNS_SHOWN], strict=True)),
        "rest": [
            {"table": budget["table"], "picture": pictures[number] if number < len(pictures) else None}
            for number, budget in enumerate(budgets)
            if number >= _RUNS_SHOWN
        ],
    }


def _kind(shown: Picture) -> str:
    return shown.name.split("-")[0]


def _facts(dataset: Dataset, analysis: Analysis) -> list[str]:
    """One line under the title: size, machine, time."""
    facts = [
        f"{len(analysis.cases)} cases",
        dataset.plan.repetitions.text(dataset.plan.cases),
        f"{dataset.runs.height} runs",
    ]
    devices = sorted(device for device in dataset.runs["device"].drop_nulls().unique())
    facts += [f"on {', '.join(devices)}"] if devices else []
    started, finished = (
        dataset.runs["started_utc"].drop_nulls().sort(),
        dataset.runs["finished_utc"].drop_nulls().sort(),
    )
    if started.len() and finished.len():
        begin, end = datetime.fromisoformat(started[0]), datetime.fromisoformat(finished[-1])
        facts.append(f"{begin:%Y-%m-%d %H:%M} UTC, {format_duration((end - begin).total_seconds())}")
    return facts


def _runs(analysis: Analysis, run_link: str) -> list[dict[str, Any]]:
    return [
        {
            "title": case.case.title(),
            "href": f"{run_link}/{case.case.id}/",
            "runs": [
                {"block": block, "href": f"{run_link}/{folder.split('/', 1)[1]}/"}
                for block, folder in sorted(case.folders.items())
            ],
        }
        for case in analysis.cases
        if case.folders
    ]


def _meanings(analysis: Analysis) -> list[dict[str, str]]:
    used = {name for case in analysis.cases for name in case.metrics}
    return [
        {"name": name, "label": metric.label, "meaning": metric.meaning, "unit": metric.unit}
        for name, metric in catalogue_of(case.case for case in analysis.cases).metrics.items()
        if name in used
    ]
