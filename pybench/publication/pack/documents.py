# SPDX-License-Identifier: Apache-2.0
"""The documents beside a campaign: what the publication is, a bill of materials, its provenance, a README.

    publication.json          coverage, versions that made the report, what was redacted or left out
    sbom.cdx.json             CycloneDX 1.6: what took part in measuring, and what made the report
    provenance.intoto.json    in-toto Statement v1 with a SLSA provenance v1 predicate: from which plan, by what, when
    README.md                 what a referee does

(ro-crate-metadata.json is `crate`.) All are plain JSON by their specifications, without a library:
they are written once, never read back but for publication.json, and judged by outside validators in the tests. The only
time in them is that of the campaign, so the same campaign gives the same bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pybench import __version__
from pybench.campaign import layout, storage
from pybench.campaign.directory import read_json
from pybench.campaign.reported import REPORTED_WITH
from pybench.errors import CorruptError
from pybench.publication.pack import versions
from pybench.publication.pack.contents import ArtefactFile
from pybench.publication.pack.facts import Facts, stamp
from pybench.publication.pack.report_parts import KEY, ReportParts, parts_of
from pybench.publication.pack.sums import (
    BILL,
    CAMPAIGN_FILES,
    CAMPAIGN_FOLDERS,
    DESCRIPTION,
    PROVENANCE,
    README,
    digest_of,
)

SCHEMA_VERSION = 1
BUILD_TYPE = "urn:pybench:campaign:1"  # what `externalParameters` mean: docs/user/publishing.md
_BUILDER = "urn:pybench:runner"
DISTRIBUTION = "pybench-campaign"  # pyproject.toml's; on PyPI the name pybench belongs to another project


@dataclass(frozen=True, slots=True)
class PublicationMetadata:
    """What the author says of the publication; None or empty is left out."""

    title: str | None = None
    license: str | None = None
    authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """How the publication came about.

    about: what the author says of it
    coverage: as `pybench check` counts it
    redactions: see `Redactor.summary`
    artefacts_left_out: files that the campaign has and the publication does not
    report: how much of the report the publication has
    """

    about: PublicationMetadata
    coverage: Mapping[str, Any]
    redactions: list[dict[str, Any]]
    artefacts_left_out: tuple[ArtefactFile, ...]
    report: ReportParts

    @property
    def is_incomplete(self) -> bool:
        return not self.coverage["full"]


@dataclass(frozen=True, slots=True)
class EarlierPublication:
    """What a publication that is published again says and its files cannot: empty for a campaign."""

    about: PublicationMetadata = field(default_factory=PublicationMetadata)
    redactions: tuple[dict[str, Any], ...] = ()
    artefacts_left_out: tuple[ArtefactFile, ...] = ()
    report: ReportParts = ReportParts.ALL


def read_earlier(folder: Path) -> EarlierPublication:
    """From the description of the publication in `folder`, if it is one.

    Raises `CorruptError` where the description is not pybench's.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        return EarlierPublication()
    stored = read_json(path, hint="fetch it again")
    try:
        about = PublicationMetadata(stored["title"], stored["license"], tuple(stored["authors"]))
        redactions = tuple(
            {name: one[name] for name in ("kind", "replacement", "times")} for one in stored["redactions"]
        )
        left_out = tuple(ArtefactFile(one["name"], one["bytes"], one["sha256"]) for one in stored["artefacts_left_out"])
    except (KeyError, TypeError) as error:
        raise CorruptError(f"{path} does not describe a publication: {error!r}", hint="fetch it again") from error
    return EarlierPublication(about, redactions, left_out, parts_of(stored, path))


def write(facts: Facts, provenance: Provenance, digests: Mapping[str, str]) -> dict[str, bytes]:
    """Name -> content of every document but the crate. `digests`: of the campaign's and the report's files."""
    return {
        DESCRIPTION: storage.json_bytes(_description(facts, provenance)),
        BILL: storage.json_bytes(_bill(facts, digests)),
        PROVENANCE: storage.json_bytes(_provenance(facts, digests)),
        README: _readme(facts, provenance).encode(),
    }


def _description(facts: Facts, provenance: Provenance) -> dict[str, Any]:
    about = provenance.about
    coverage = provenance.coverage
    return {
        "schema_version": SCHEMA_VERSION,
        "name": facts.name,
        "title": about.title,
        "license": about.license,
        "authors": list(about.authors),
        "created_utc": facts.created,
        "incomplete": provenance.is_incomplete,
        "coverage": {name: coverage[name] for name in ("planned", "covered", "states")},
        "image_digests": list(facts.images),
        KEY: str(provenance.report),
        "report_made_with": versions.of_report(),
        "redactions": provenance.redactions,
        "artefacts_left_out": [
            {"name": one.name, "bytes": one.bytes, "sha256": one.sha256} for one in provenance.artefacts_left_out
        ],
    }


# --- bill of materials -----------------------------------------------------------------------------------------------


def _bill(facts: Facts, digests: Mapping[str, str]) -> dict[str, Any]:
    """What runs recorded, which is what they loaded; the image that they ran in has a complete bill of its own."""
    components = _measured(facts) + _reporting(facts)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest_of(digests))}",
        "version": 1,
        "metadata": {
            "timestamp": facts.created,
            "tools": {"components": [{"type": "application", "name": "pybench", "version": __version__}]},
            "component": {"type": "data", "bom-ref": "campaign", "name": facts.name},
        },
        "components": components,
        "dependencies": [
            {"ref": "campaign", "dependsOn": [component["bom-ref"] for component in components]},
            *({"ref": component["bom-ref"]} for component in components),
        ],
        "compositions": [{"aggregate": "incomplete", "assemblies": ["campaign"]}],
    }


def _measured(facts: Facts) -> list[dict[str, Any]]:
    python = [_package("pybench", version, "measured") for version in facts.pybench]
    python += [_package(name, version, "measured", runs) for (name, version), runs in facts.packages.items()]
    kinds = {"python": "platform", "linux": "operating-system", "nvidia-driver": "device-driver"}
    systems = [
        _component(kinds[name], name, version, "measured", f"pkg:generic/{name}@{quote(version, safe='')}", runs)
        for (name, version), runs in facts.systems.items()
    ]
    builds = [_component("library", "pybench._native", build, "measured") for build in facts.native_builds]
    return python + systems + builds + [_image(digest) for digest in facts.images]


def _reporting(facts: Facts) -> list[dict[str, Any]]:
    known = versions.of_report()
    return [_package(name, known[name], "report") for name in ("pybench", *REPORTED_WITH) if name in known]


def _package(name: str, version: str, role: str, runs: int | None = None) -> dict[str, Any]:
    """A package of PyPI: a version with a local part (torch 2.9.0+cu128) keeps it, percent-encoded."""
    plain = DISTRIBUTION if name == "pybench" else name.lower().replace("_", "-")
    return _component("library", name, version, role, f"pkg:pypi/{plain}@{quote(version, safe='')}", runs)


def _component(
    kind: str, name: str, version: str, role: str, purl: str | None = None, runs: int | None = None
) -> dict[str, Any]:
    properties = [{"name": "pybench:role", "value": role}]
    properties += [{"name": "pybench:runs", "value": str(runs)}] if runs is not None else []
    found: dict[str, Any] = {"type": kind, "bom-ref": f"{role}:{name}@{version}", "name": name, "version": version}
    return {**found, **({"purl": purl} if purl else {}), "properties": properties}


def _image(digest: str) -> dict[str, Any]:
    """`sha256:...` of the OCI image or the SIF that runs were in."""
    found: dict[str, Any] = {"type": "container", "bom-ref": f"measured:image@{digest}", "name": "image"}
    algorithm, _, value = digest.rpartition(":")
    if algorithm in ("", "sha256") and len(value) == 64:
        found["hashes"] = [{"alg": "SHA-256", "content": value}]
    return {**found, "version": digest, "properties": [{"name": "pybench:role", "value": "measured"}]}


# --- provenance ------------------------------------------------------------------------------------------------------


def _provenance(facts: Facts, digests: Mapping[str, str]) -> dict[str, Any]:
    """The subject is the campaign's files as they are published, by their `dirHash`; the report is a by-product."""
    campaign = {name: value for name, value in digests.items() if _is_of_campaign(name)}
    report = {name: value for name, value in digests.items() if not _is_of_campaign(name)}
    content = facts.plan.content
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": facts.name, "digest": {"dirHash": digest_of(campaign)}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "plan": {"name": facts.name, "digest": {"sha256": digests.get(layout.PLAN)}},
                    "overrides": list(content.get("overrides", [])),
                    "seed": facts.plan.seed,
                    **facts.plan.repetitions.as_json(),
                },
                "resolvedDependencies": _dependencies(facts),
            },
            "runDetails": {
                "builder": {"id": _BUILDER, "version": {"pybench": ", ".join(facts.pybench)}},
                "metadata": {
                    "invocationId": digest_of(campaign),
                    "startedOn": stamp(facts.begun),
                    "finishedOn": facts.created,
                },
                "byproducts": [{"name": layout.REPORT, "digest": {"dirHash": digest_of(report)}}],
            },
        },
    }


def _is_of_campaign(name: str) -> bool:
    return name in CAMPAIGN_FILES or name.split("/")[0] in CAMPAIGN_FOLDERS


def _dependencies(facts: Facts) -> list[dict[str, Any]]:
    """The images, the user's files and the compiled part; packages are in the bill of materials."""
    images = [{"name": "image", "digest": {"sha256": digest.rpartition(":")[2]}} for digest in facts.images]
    files = [
        {"name": value, "digest": {"sha256": entry["sha256"]}, "annotations": {"covers": entry.get("covers")}}
        for value, entry in facts.plan.content["files"].items()
    ]
    return [
        *images,
        *files,
        *(
            {"name": "pybench._native", "digest": {"sha256": build}}
            for build in facts.native_builds
            if len(build) == 64
        ),
    ]


# --- README ----------------------------------------------------------------------------------------------------------


_MADE_FROM_RUNS = {
    ReportParts.ALL: "the report made from them",
    ReportParts.NUMBERS: "the numbers of the report made from them",
}
_LOOKING = {
    ReportParts.ALL: "Open `report/index.html`. Nothing has to be installed or loaded for it.",
    ReportParts.NUMBERS: """The page and the figures are not published, because they follow from the runs.
`pybench replay . --out page` makes them: open `page/index.html`.""",
}
_REPLAYED = {
    ReportParts.ALL: "compares it byte for byte",
    ReportParts.NUMBERS: "compares its tables with those published",
}
_ENVIRONMENTS = f"| `{layout.ENVIRONMENTS}/` | what the environments of the plan had installed |\n"
_STOPPED = f"| `{layout.STOPPED}` | after which block the campaign stopped, and why |\n"


def _readme(facts: Facts, provenance: Provenance) -> str:
    coverage, about, parts = provenance.coverage, provenance.about, provenance.report
    outcomes = ", ".join(f"{count} {name}" for name, count in facts.outcomes.items())
    warning = "\n**Incomplete**: not every planned run is covered.\n" if provenance.is_incomplete else ""
    stopped = "" if facts.plan.repetitions.stop is None else _STOPPED
    environments = _ENVIRONMENTS if facts.plan.environments else ""
    by = f"\nBy {', '.join(about.authors)}.\n" if about.authors else ""
    terms = f"\nLicence: {about.license}.\n" if about.license else ""
    return f"""# {about.title or facts.name}

A benchmark campaign, measured and published with pybench {", ".join(facts.pybench)}: every run's records and readings,
the plan, and {_MADE_FROM_RUNS[parts]}.
{by}{warning}
{coverage["covered"]} of {coverage["planned"]} planned runs are covered: {outcomes}. The last ended {facts.created}.
{terms}
## Looking at it

{_LOOKING[parts]}

A zip compresses the larger files in `runs/` with LZMA, which 7-Zip, Python and `pybench fetch` read. An old `unzip`
unpacks everything else.

## Checking it

```
sha256sum --check --quiet SHA256SUMS      # no file was changed
pybench replay .                          # makes the report again from the runs, and {_REPLAYED[parts]}
```

The second needs pybench ({__version__} made this report), but no GPU and no torch. The numbers are in `report/tables`,
and in Python `pybench.load(".")` has all of them.

| file | what |
| --- | --- |
| `plan.yaml`, `plan.resolved.json` | what was asked, and what it means |
{stopped}| `runs/`, `artefacts/`, `sensors/` | what was measured, run by run |
{environments}| `report/` | {parts.meaning} |
| `publication.json` | what this is, what was redacted or left out, what made the report |
| `sbom.cdx.json` | what took part (CycloneDX) |
| `provenance.intoto.json` | where it comes from (in-toto, SLSA) |
| `ro-crate-metadata.json` | the same for archives (RO-Crate) |
| `SHA256SUMS` | every file's digest; its own sha256 names the whole |
"""
