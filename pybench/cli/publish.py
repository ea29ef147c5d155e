# SPDX-License-Identifier: Apache-2.0
"""`pybench publish`: a campaign packed for others."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from pybench.campaign import storage
from pybench.cli.options import JsonOption, PlainHttpOption, RegistryTimeoutOption
from pybench.cli.show import added_sentences, print_json, say
from pybench.cli.stopping import check_stop
from pybench.errors import CoverageError, UsageError
from pybench.words import counted

if TYPE_CHECKING:
    from pybench.publication import (
        OciArtefact,
        PackedPublication,
        PublishOptions,
        RegistryAccess,
        RegistryReference,
        ReportParts,
    )

_MOST_SHOWN = 10
_DESTINATIONS = "give --to HOST/NAME:TAG, --archive FILE.zip, --archive FILE.tar.zst, --oci DIR or --dry-run"

_Source = Annotated[
    Path, typer.Argument(metavar="DIR", help="The campaign's directory, or a published archive to make again.")
]
_To = Annotated[Optional[str], typer.Option("--to", metavar="REF", help="Push to a registry: HOST/NAME:TAG.")]
_Archive = Annotated[
    Optional[Path],
    typer.Option(
        "--archive", metavar="FILE", help="Write a .zip, as for Zenodo, or a .tar.zst, which has half the size."
    ),
]
_Oci = Annotated[Optional[Path], typer.Option("--oci", metavar="DIR", help="Add the publication to an OCI layout.")]
_Sign = Annotated[Optional[Path], typer.Option("--sign", metavar="KEY", help="Sign with an SSH key.")]
_Title = Annotated[
    Optional[str], typer.Option(metavar="TEXT", help="Title of the publication [default: the plan's name].")
]
_License = Annotated[
    Optional[str],
    typer.Option("--license", metavar="SPDX", help="Licence, such as CC-BY-4.0 or an https:// address."),
]
_Authors = Annotated[
    Optional[list[str]],
    typer.Option("--author", metavar="NAME", help="Author of the publication; may be repeated."),
]
_WithArtefacts = Annotated[bool, typer.Option("--with-artefacts", help="Publish weights, ONNX files and engines, too.")]
_Report = Annotated[
    Optional[str],
    typer.Option(
        "--report",
        metavar="PARTS",
        help="all: the whole report. numbers: only its tables as CSV, because `replay` makes the rest "
        "[default: those of a published archive, else all].",
    ),
]
_Incomplete = Annotated[
    bool, typer.Option("--incomplete", help="Publish although runs are missing; the publication is marked.")
]
_KeepHostNames = Annotated[bool, typer.Option("--keep-host-names", help="Do not replace host names.")]
_KeepPaths = Annotated[bool, typer.Option("--keep-paths", help="Do not replace paths that contain user names.")]
_Redact = Annotated[
    Optional[list[str]], typer.Option("--redact", metavar="WORD", help="Also replace this word; may be repeated.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="List what would be published.")]


def publish(
    source: _Source,
    to: _To = None,
    archive: _Archive = None,
    oci: _Oci = None,
    sign: _Sign = None,
    title: _Title = None,
    license_name: _License = None,
    author: _Authors = None,
    with_artefacts: _WithArtefacts = False,
    report: _Report = None,
    incomplete: _Incomplete = False,
    keep_host_names: _KeepHostNames = False,
    keep_paths: _KeepPaths = False,
    redact: _Redact = None,
    plain_http: PlainHttpOption = None,
    timeout: RegistryTimeoutOption = 60.0,
    dry_run: _DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Pack a campaign for others.

    Writes an OCI artefact, an archive, or both. The report is made again from what is published. Host names, home
    folders and paths of your files are replaced. The same campaign gives the same digests.
    """
    from pybench.publication import (
        PublicationMetadata,
        PublishOptions,
        RedactionRules,
        RegistryAccess,
        parse_registry,
        unpacked,
    )
    from pybench.publication.carry.archive import form_of
    from pybench.publication.pack.licence import checked_licence

    if not (to or archive or oci or dry_run):
        raise UsageError("no destination given", hint=_DESTINATIONS)
    reference = parse_registry(to, needs_tag=True) if to else None
    if archive:
        form_of(archive)
    licence = None if license_name is None else checked_licence(license_name)
    options = PublishOptions(
        PublicationMetadata(title, licence, tuple(author or ())),
        RedactionRules(keep_host_names, keep_paths, tuple(redact or ())),
        with_artefacts,
        None if report is None else _parts(report),
        None if dry_run else sign,
    )
    with tempfile.TemporaryDirectory(prefix="pybench-publish-") as folder, unpacked(source) as directory:
        coverage = _coverage(directory, allow_gaps=incomplete)
        package = _stage(directory, Path(folder), options, coverage)
        _tell_author(package)
        done = _described(package, is_signed=sign is not None)
        if dry_run:
            done["names"] = sorted(package.digests)
        else:
            done |= _deliver(package, Path(folder), reference, RegistryAccess(plain_http, timeout), archive, oci)
    print_json(done) if as_json else _print_published(done)


def _parts(named: str) -> ReportParts:
    from pybench.publication import ReportParts

    if named not in list(ReportParts):
        raise UsageError(f"--report {named} is neither {' nor '.join(ReportParts)}")
    return ReportParts(named)


def _coverage(directory: Path, *, allow_gaps: bool) -> dict[str, Any]:
    """What ran of what was planned; raises where that falls short and nobody said that it may."""
    from pybench.dataset import load
    from pybench.dataset.coverage import measure
    from pybench.publication import check_published

    for sentence in added_sentences(check_published(directory)):
        say(sentence)
    dataset = load(directory, hash_all=True)
    check_stop(dataset.campaign, dataset.plan)
    coverage = measure(dataset)
    if not coverage.is_full and not allow_gaps:
        states = ", ".join(f"{count} {state}" for state, count in coverage.states.items())
        raise CoverageError(
            f"{coverage.uncovered_text} ({states})",
            hint="run the plan again, or publish with --incomplete, which marks the publication",
        )
    return coverage.as_json()


def _stage(directory: Path, work: Path, options: PublishOptions, coverage: dict[str, Any]) -> PackedPublication:
    from pybench.dataset import load
    from pybench.publication import ReportParts, stage
    from pybench.report import write_numbers, write_report

    makers = {ReportParts.ALL: write_report, ReportParts.NUMBERS: write_numbers}
    staged = work / "staged"
    storage.make_folder(staged)
    return stage(directory, staged, options, coverage, lambda folder, parts: makers[parts](load(folder)))


def _described(package: PackedPublication, *, is_signed: bool) -> dict[str, Any]:
    return {
        "name": package.facts.name,
        "contents": f"sha256:{package.contents_sha256}",
        "files": len(package.digests),
        "bytes": package.bytes,
        "signed": is_signed,
        "report": package.provenance.report,
        "incomplete": package.provenance.is_incomplete,
    }


def _deliver(
    package: PackedPublication,
    work: Path,
    reference: RegistryReference | None,
    access: RegistryAccess,
    archive: Path | None,
    oci: Path | None,
) -> dict[str, Any]:
    """To each place that was asked for; what was done."""
    from pybench.publication import Registry, assemble, write_layout
    from pybench.publication.carry import archive as archives

    done: dict[str, Any] = {}
    if archive:
        done["archive"] = {"file": str(archive), "sha256": archives.write(package, archive)}
        done["archive"]["bytes"] = archive.stat().st_size
    if oci or reference:
        storage.make_folder(work / "blobs")
        artefact: OciArtefact = assemble(package, work / "blobs")
        done["artefact"] = {"digest": artefact.digest, "bytes": artefact.bytes}
        if oci:
            write_layout(artefact, oci)
            done["artefact"]["layout"] = str(oci)
        if reference:
            Registry(reference, access, writes=True).push(artefact, str(reference.tag))
            done["artefact"]["reference"] = reference.pinned(artefact.digest)
    return done


def _tell_author(package: PackedPublication) -> None:
    """What was replaced, what is left out, and what looks personal and is still there."""
    for one in package.provenance.redactions:
        say(f"replaced by {one['replacement']}: a {one['kind']}, {counted(one['times'], 'time')}")
    for word in package.unused_words:
        say(f"--redact {word} was found nowhere")
    left_out = package.selection.artefacts_left_out
    if left_out:
        files, megabytes = counted(len(left_out), "file"), sum(one.bytes for one in left_out) / 1e6
        say(f"not published: {files} of artefacts, {megabytes:.1f} MB; --with-artefacts includes them")
    for name in package.selection.foreign[:_MOST_SHOWN]:
        say(f"not published, because pybench did not write it: {name}")
    if len(package.selection.foreign) > _MOST_SHOWN:
        say(f"also not published: {len(package.selection.foreign) - _MOST_SHOWN} more such files")
    for found in package.leftovers[:_MOST_SHOWN]:
        say(f"check before you publish: {found.kind}, {found.text!r} in {found.name} ({counted(found.times, 'time')})")
    if len(package.leftovers) > _MOST_SHOWN:
        say(f"check also: {len(package.leftovers) - _MOST_SHOWN} more that look personal")


def _print_published(done: dict[str, Any]) -> None:
    for name in done.get("names", ()):
        print(name)
    state = " (incomplete)" if done["incomplete"] else ""
    print(f"contents {done['contents']}: {done['files']} files, {done['bytes'] / 1e6:.1f} MB{state}")
    if "archive" in done:
        print(f"archive {done['archive']['file']} sha256:{done['archive']['sha256']}")
    artefact = done.get("artefact", {})
    if "layout" in artefact:
        print(f"layout {artefact['layout']}@{artefact['digest']}")
    if "reference" in artefact:
        print(f"artefact {artefact['reference']}")
