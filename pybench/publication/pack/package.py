# SPDX-License-Identifier: Apache-2.0
"""A campaign staged for publication: a folder with exactly what will be published, and the list of it.

The report is made from the staged copy, not taken from the campaign: what is redacted there is redacted in the report,
too. Whoever makes the report again from the publication has what it was made from.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybench.campaign import layout, storage
from pybench.campaign.directory import CampaignDirectory, open_campaign
from pybench.campaign.resolved_plan import guarded_anew
from pybench.errors import PybenchError, UsageError
from pybench.publication.pack import crate, documents, sums
from pybench.publication.pack.contents import Selection, select
from pybench.publication.pack.documents import Provenance, PublicationMetadata
from pybench.publication.pack.facts import Facts, gather
from pybench.publication.pack.finished_runs import list_published
from pybench.publication.pack.redaction import (
    Leftover,
    RedactionRules,
    Redactor,
    is_text,
    leftovers,
    plan_redaction,
    refuse_words_left,
)
from pybench.publication.pack.report_parts import ReportParts
from pybench.publication.pack.signature import check_key, sign


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """What the author asks for.

    report: None: as much as an earlier publication has, else all
    key: an SSH key to sign with
    """

    about: PublicationMetadata = field(default_factory=PublicationMetadata)
    rules: RedactionRules = field(default_factory=RedactionRules)
    with_artefacts: bool = False
    report: ReportParts | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class PackedPublication:
    """What will be published: `folder` holds the files that `digests` names, SHA256SUMS, and its signature if any.

    unused_words: of `RedactionRules.words`, those that no file contained
    """

    folder: Path
    facts: Facts
    provenance: Provenance
    digests: Mapping[str, str]
    selection: Selection
    leftovers: tuple[Leftover, ...]
    unused_words: tuple[str, ...]
    is_signed: bool

    @property
    def contents_sha256(self) -> str:
        return sums.digest_of(self.digests)

    @property
    def bytes(self) -> int:
        return sum((self.folder / name).stat().st_size for name in self.digests)


def stage(
    path: Path,
    folder: Path,
    options: PublishOptions,
    coverage: Mapping[str, Any],
    render: Callable[[Path, ReportParts], object],
) -> PackedPublication:
    """Fills the empty `folder` from the campaign at `path`. `render` makes these parts of the report of a campaign's
    folder; `coverage` is what `pybench.dataset.coverage` says of it."""
    campaign = open_campaign(path)
    if options.key is not None:
        check_key(options.key)
    try:
        selection = select(campaign, with_artefacts=options.with_artefacts)
        redactor = plan_redaction(campaign.path, selection.files, options.rules)
        rewritten = {name for name in selection.files if _copy(campaign.path / name, folder / name, name, redactor)}
        refuse_words_left(folder, selection.files, redactor.words)
        if layout.PLAN in rewritten:
            _name_published_plan(folder)
        for name in selection.files:
            if Path(name).name == layout.COMPLETE:
                list_published(campaign.path / name, folder, name, rewritten)
        provenance = _provenance(campaign.path, options, coverage, redactor, selection)
        render(folder, provenance.report)
        facts = gather(CampaignDirectory(folder))
        digests = _describe(folder, selection, facts, provenance)
        (folder / sums.SUMS).write_bytes(sums.render(digests))
        if options.key is not None:
            sign(folder / sums.SUMS, folder / sums.SIGNATURE, options.key)
        found = tuple(leftovers(folder, selection.files))
    except OSError as error:
        raise _storage_error(error, campaign.path, folder) from error
    return PackedPublication(
        folder, facts, provenance, digests, selection, found, redactor.unused_words, options.key is not None
    )


def _provenance(
    folder: Path, options: PublishOptions, coverage: Mapping[str, Any], redactor: Redactor, selection: Selection
) -> Provenance:
    """With what an earlier publication says where `folder` is one: what it replaced and left out is not there now."""
    earlier, about = documents.read_earlier(folder), options.about
    said = PublicationMetadata(
        about.title or earlier.about.title,
        about.license or earlier.about.license,
        about.authors or earlier.about.authors,
    )
    replaced = {one["replacement"] for one in earlier.redactions}
    redactions = [*earlier.redactions, *(one for one in redactor.summary() if one["replacement"] not in replaced)]
    known = {*selection.files, *(one.name for one in selection.artefacts_left_out)}
    left_out = [
        *selection.artefacts_left_out,
        *(one for one in earlier.artefacts_left_out if one.name not in known),
    ]
    left_out.sort(key=lambda one: one.name)
    return Provenance(said, coverage, redactions, tuple(left_out), options.report or earlier.report)


def _storage_error(error: OSError, source: Path, target: Path) -> PybenchError:
    """What cannot be read of the campaign is another trouble than what cannot be written."""
    place = Path(str(error.filename)) if error.filename else target
    if error.errno in (errno.ENOSPC, errno.EDQUOT):  # of a copy, Python names the source
        return storage.storage_error(error, target)
    if place.is_relative_to(source):
        return UsageError(
            f"cannot read {place}: {error.strerror}", hint="make all files of the campaign readable (chmod)"
        )
    return storage.storage_error(error, place)


def _copy(source: Path, target: Path, name: str, redactor: Redactor) -> bool:
    """Whether the published bytes are others than those of the campaign."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not is_text(name):
        shutil.copyfile(source, target)
        return False
    content = source.read_bytes()
    published = redactor.apply(name, content)
    target.write_bytes(published)
    return published != content


def _name_published_plan(folder: Path) -> None:
    """plan.resolved.json names the plan as it is published, without names: readers compare the two."""
    resolved = folder / layout.PLAN_RESOLVED
    content = json.loads(resolved.read_bytes())
    content["plan_sha256"] = storage.sha256_of(folder / layout.PLAN)
    resolved.write_bytes(storage.json_bytes(guarded_anew(content)))


def _describe(folder: Path, selection: Selection, facts: Facts, provenance: Provenance) -> dict[str, str]:
    """Writes the documents; the sha256 of every file of the publication by its name."""
    report = [path.relative_to(folder).as_posix() for path in (folder / layout.REPORT).rglob("*") if path.is_file()]
    odd = [name for name in report if not sums.is_plain_name(name)]
    if odd:
        raise UsageError(f"the report has a file that cannot be published under its name: {odd[0]}")
    digests = sums.hash_files(folder, [*selection.files, *report])
    for name, content in documents.write(facts, provenance, digests).items():
        (folder / name).write_bytes(content)
        digests[name] = storage.sha256_of(folder / name)
    sizes = {name: (folder / name).stat().st_size for name in digests}
    (folder / sums.CRATE).write_bytes(storage.json_bytes(crate.write(facts, provenance, sizes)))
    digests[sums.CRATE] = storage.sha256_of(folder / sums.CRATE)
    return digests
