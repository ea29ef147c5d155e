# SPDX-License-Identifier: Apache-2.0
"""ro-crate-metadata.json: the publication for archives and their search engines.

RO-Crate 1.1 with the profile Process Run Crate 0.5: one action (the campaign) with its instrument, its object (the
plan) and its results (runs, report). The instrument is pybench, and the image where there was one. A plain JSON-LD
file; files that are not described one by one are covered by their folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybench.campaign import layout
from pybench.publication.pack.documents import Provenance
from pybench.publication.pack.facts import Facts, stamp
from pybench.publication.pack.sums import BILL, CAMPAIGN_FOLDERS, CRATE, DESCRIPTION, PROVENANCE, README

_CONTEXT = "https://w3id.org/ro/crate/1.1/context"
_SPECIFICATION = "https://w3id.org/ro/crate/1.1"
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_ACTION, _SOFTWARE, _IMAGE = "#campaign", "#pybench", "#image"

_FOLDERS = {
    layout.RUNS: "every run: case, environment, outcome, metrics and readings",
    layout.ARTEFACTS: "how checkpoints, graphs and engines were made",
    layout.SENSORS: "how the power sensors behaved",
    layout.ENVIRONMENTS: "what the environments of the plan had installed",
}
_FILES = {
    layout.PLAN_RESOLVED: ("what the plan means: every case, the seed, the criteria", "application/json"),
    layout.STOPPED: ("after which block the campaign stopped, and why", "application/json"),
    f"{layout.REPORT}/index.html": ("the report's page", "text/html"),
    DESCRIPTION: ("what this publication is, what was redacted or left out", "application/json"),
    BILL: ("bill of materials (CycloneDX)", "application/vnd.cyclonedx+json"),
    PROVENANCE: ("provenance (in-toto statement, SLSA)", "application/vnd.in-toto+json"),
    README: ("what a referee does", "text/markdown"),
}


def write(facts: Facts, provenance: Provenance, sizes: Mapping[str, int]) -> dict[str, Any]:
    """The crate. `sizes`: bytes of every file of the publication, the other documents included."""
    meanings = {**_FOLDERS, layout.REPORT: provenance.report.meaning}
    folders = [name for name in (*CAMPAIGN_FOLDERS, layout.REPORT) if any(one.startswith(f"{name}/") for one in sizes)]
    files = [name for name in (layout.PLAN, *_FILES) if name in sizes]
    return {
        "@context": _CONTEXT,
        "@graph": [
            _descriptor(),
            _root(facts, provenance, [*files, *(f"{name}/" for name in folders)]),
            {"@id": _PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
            *([_license(provenance.about.license)] if provenance.about.license else []),
            _action(facts, provenance, folders, files),
            *_instruments(facts),
            *(_file(name, sizes[name]) for name in files),
            *({"@id": f"{name}/", "@type": "Dataset", "name": name, "description": meanings[name]} for name in folders),
            *(_person(number, name) for number, name in enumerate(provenance.about.authors, start=1)),
        ],
    }


def _descriptor() -> dict[str, Any]:
    return {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _SPECIFICATION},
        "about": {"@id": "./"},
    }


def _root(facts: Facts, provenance: Provenance, parts: list[str]) -> dict[str, Any]:
    about = provenance.about
    description = str(facts.plan.content.get("description") or f"A benchmark campaign of {len(facts.plan.cases)} cases")
    if provenance.is_incomplete:
        description += " (incomplete: not every planned run is covered)"
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": about.title or facts.name,
        "description": description,
        "datePublished": facts.created,
        "conformsTo": {"@id": _PROFILE},
        "hasPart": [{"@id": part} for part in parts],
        "mentions": {"@id": _ACTION},
    }
    if about.license:
        root["license"] = {"@id": _license_id(about.license)}
    if about.authors:
        root["author"] = [{"@id": _person(number, "")["@id"]} for number, _ in enumerate(about.authors, start=1)]
    return root


def _license_id(name: str) -> str:
    return name if name.startswith("https://") else f"https://spdx.org/licenses/{name}"


def _license(name: str) -> dict[str, Any]:
    return {"@id": _license_id(name), "@type": "CreativeWork", "name": name}


def _person(number: int, name: str) -> dict[str, Any]:
    return {"@id": f"#author-{number}", "@type": "Person", "name": name}


def _action(facts: Facts, provenance: Provenance, folders: list[str], files: list[str]) -> dict[str, Any]:
    instruments = [_SOFTWARE, *(f"{_IMAGE}-{number}" for number, _ in enumerate(facts.images, start=1))]
    action: dict[str, Any] = {
        "@id": _ACTION,
        "@type": "CreateAction",
        "name": f"Running the plan {facts.name}",
        "instrument": [{"@id": name} for name in instruments],
        "object": [{"@id": name} for name in (layout.PLAN, layout.PLAN_RESOLVED) if name in files],
        "result": [{"@id": f"{name}/"} for name in folders],
        "startTime": stamp(facts.begun),
        "endTime": facts.created,
        "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
    }
    if provenance.about.authors:
        action["agent"] = {"@id": "#author-1"}
    return action


def _instruments(facts: Facts) -> list[dict[str, Any]]:
    software = {
        "@id": _SOFTWARE,
        "@type": "SoftwareApplication",
        "name": "pybench",
        "softwareVersion": ", ".join(facts.pybench) or "unknown",
    }
    images = [
        {"@id": f"{_IMAGE}-{number}", "@type": "SoftwareApplication", "name": "container image", "identifier": digest}
        for number, digest in enumerate(facts.images, start=1)
    ]
    return [software, *images]


def _file(name: str, size: int) -> dict[str, Any]:
    what, encoding = _FILES.get(name, ("the plan as it was given", "application/yaml"))
    return {
        "@id": name,
        "@type": "File",
        "name": name,
        "description": what,
        "encodingFormat": encoding,
        "contentSize": str(size),
    }
