# SPDX-License-Identifier: Apache-2.0
"""The page: one HTML file that needs no network, reads without scripts and prints.

Every string is escaped by the template engine. Beyond that the page's own policy lets no script run but the one whose
hash it names, and lets nothing be loaded from anywhere. No date of making stands in it: the same runs give the same
bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from typing import TYPE_CHECKING

from pybench import __version__
from pybench.analysis import Analysis
from pybench.dataset import Dataset
from pybench.dataset.software import PROCESSOR
from pybench.report.canvas import Picture, inline
from pybench.report.numbers import DASH, format_duration
from pybench.report.page_cases import PageCases
from pybench.report.sections.elements import BuiltSection, Element, Material
from pybench.report.tables import Table, letters_of

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_STACKED_FROM = 5  # columns with intervals


class Page:
    """index.html of a campaign, of which whatever has no figure can be made while the figures are drawn."""

    def __init__(self, material: Material, sections: Sequence[BuiltSection]) -> None:
        self._material, self._sections = material, sections
        self._cases = PageCases([case.case for case in material.analysis.cases])
        self._environment = _environment(self._cases)
        self._macros = self._environment.from_string(_template("elements.html.j2")).module
        self._made: dict[int, Markup] = {}
        """By the identity of the element: equal ones are rare, and comparing tables takes long."""

    def begin(self) -> None:
        """Makes the elements without figures."""
        elements = (element for section in self._sections for element in section.elements)
        self._made |= {id(element): self._make(element) for element in elements if not element.drawings}

    def text(self) -> str:
        """The whole of it."""
        from markupsafe import Markup

        script = _template("page.js")
        return self._environment.from_string(_template("page.html.j2")).render(
            name=self._material.dataset.plan.name,
            version=__version__,
            facts=_facts(self._material.dataset, self._material.analysis),
            sections=[
                {"anchor": one.section.anchor, "title": one.section.title, "elements": one.elements}
                for one in self._sections
            ],
            render=lambda element: self._made.get(id(element)) or self._make(element),
            page_cases=self._cases.as_json,
            stylesheet=Markup(_template("style.css")),
            script=Markup(script),
            script_hash=_policy_hash(script),
        )

    def _make(self, element: Element) -> Markup:
        shown: Markup = getattr(self._macros, type(element).__name__.lower())(element)
        return shown


def _environment(cases: PageCases) -> Environment:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )

    def svg_of(picture: Picture) -> Markup:
        return Markup(cases.numbered(inline(picture)))

    environment.globals.update(
        dash=DASH, svg_of=svg_of, cases=cases, letters_of=letters_of, is_stacked=_is_stacked, zip=zip
    )
    return environment


def _template(name: str) -> str:
    return resources.files("pybench.report").joinpath("templates", name).read_text(encoding="utf-8")


def _policy_hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _is_stacked(table: Table) -> bool:
    """Many intervals side by side do not fit a page: they then stand below their values."""
    return sum(len(column.fields) > 1 for column in table.columns) >= _STACKED_FROM


def _facts(dataset: Dataset, analysis: Analysis) -> list[str]:
    """One line under the title: size, machine, time."""
    facts = [
        f"{len(analysis.cases)} cases",
        dataset.plan.repetitions.text(dataset.plan.cases),
        f"{dataset.runs.height} runs",
    ]
    models = _models(dataset)
    facts += [f"on {', '.join(models)}"] if models else []
    started, finished = (
        dataset.runs["started_utc"].drop_nulls().sort(),
        dataset.runs["finished_utc"].drop_nulls().sort(),
    )
    if started.len() and finished.len():
        begin, end = datetime.fromisoformat(started[0]), datetime.fromisoformat(finished[-1])
        facts.append(f"{begin:%Y-%m-%d %H:%M} UTC, {format_duration((end - begin).total_seconds())}")
    return facts


def _models(dataset: Dataset) -> list[str]:
    """`2 × NVIDIA H200`: the names of the boards and processors that runs used, not their UUIDs."""
    named: dict[str, set[str]] = {}
    unnamed: set[str] = set()
    for case_id, block, device in dataset.runs.select("case_id", "block", "device").iter_rows():
        software = dataset.software.get(case_id, {}).get(block)
        if device is None:
            continue
        model = None if software is None else software.board_model or software.facts.get(PROCESSOR)
        if model:
            named.setdefault(model, set()).add(device)
        else:
            unnamed.add(device)
    unnamed -= {device for devices in named.values() for device in devices}
    texts = [f"{len(devices)} × {model}" if len(devices) > 1 else model for model, devices in sorted(named.items())]
    return [*texts, *sorted(unnamed)]
