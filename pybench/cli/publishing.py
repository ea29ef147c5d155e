# SPDX-License-Identifier: Apache-2.0
"""`pybench publish`, `fetch` and `replay`: a campaign for others, and one from others."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from pybench import rundir, storage
from pybench.cli.plans import JsonOption, print_json
from pybench.errors import CoverageError, PybenchError, UsageError

if TYPE_CHECKING:
    from pybench.publication import Access, Artefact, Fetched, Package, RegistryReference, Replay, Wishes

_MOST_SHOWN = 10
_PlainHttp = Annotated[
    Optional[bool],
    typer.Option("--plain-http/--https", help="Without TLS or with it [default: without only on this machine]."),
]
_Timeout = Annotated[float, typer.Option(min=0.1, metavar="S", help="Seconds that a registry may keep silent.")]


def register(app: typer.Typer) -> None:
    for command in (publish, fetch, replay):
        app.command()(command)


def publish(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The campaign's directory.")],
    to: Annotated[Optional[str], typer.Option("--to", metavar="REF", help="Push to a registry: HOST/NAME:TAG.")] = None,
    archive: Annotated[
        Optional[Path],
        typer.Option("--archive", metavar="FILE.zip", help="Write a zip, for archives like Zenodo."),
    ] = None,
    oci: Annotated[Optional[Path], typer.Option("--oci", metavar="DIR", help="Add to an OCI layout.")] = None,
    sign: Annotated[Optional[Path], typer.Option("--sign", metavar="KEY", help="Sign with an SSH key.")] = None,
    title: Annotated[Optional[str], typer.Option(metavar="TEXT", help="Its title [default: the plan's name].")] = None,
    license_name: Annotated[
        Optional[str], typer.Option("--license", metavar="SPDX", help="Such as CC-BY-4.0, or an https:// address.")
    ] = None,
    author: Annotated[Optional[list[str]], typer.Option("--author", metavar="NAME", help="May be repeated.")] = None,
    with_artefacts: Annotated[
        bool, typer.Option("--with-artefacts", help="Publish weights, ONNX files and engines, too.")
    ] = False,
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Publish although runs are missing; it will say so.")
    ] = False,
    keep_host_names: Annotated[bool, typer.Option("--keep-host-names", help="Do not replace host names.")] = False,
    keep_paths: Annotated[bool, typer.Option("--keep-paths", help="Do not replace paths of users.")] = False,
    redact: Annotated[
        Optional[list[str]], typer.Option("--redact", metavar="WORD", help="Replace this, too; may be repeated.")
    ] = None,
    plain_http: _PlainHttp = None,
    timeout: _Timeout = 60.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="List what would be published.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Pack a campaign for others: as an OCI artefact, as a zip, or both. The report is made anew from what is
    published.

    Host names, home folders and paths of your files are replaced. The same campaign gives the same digests.
    """
    from pybench.publication import About, Access, Rules, Wishes, parse_registry

    if not (to or archive or oci or dry_run):
        raise UsageError("publish where?", hint="--to HOST/NAME:TAG, --archive FILE.zip, --oci DIR; or --dry-run")
    reference = parse_registry(to, needs_tag=True) if to else None
    coverage = _coverage(directory, allow_gaps=incomplete)
    wishes = Wishes(
        About(title, license_name, tuple(author or ())),
        Rules(keep_host_names, keep_paths, tuple(redact or ())),
        with_artefacts,
        None if dry_run else sign,
    )
    with tempfile.TemporaryDirectory(prefix="pybench-publish-") as folder:
        package = _stage(directory, Path(folder), wishes, coverage)
        _tell_author(package)
        done: dict[str, Any] = {"name": package.facts.name, "contents": f"sha256:{package.contents_sha256}"}
        done |= {"files": len(package.digests), "bytes": package.bytes, "signed": sign is not None}
        done |= {"incomplete": package.circumstances.is_incomplete}
        if dry_run:
            done["names"] = sorted(package.digests)
        else:
            done |= _deliver(package, Path(folder), reference, Access(plain_http, timeout), archive, oci)
    print_json(done) if as_json else _print_published(done)


def _coverage(directory: Path, *, allow_gaps: bool) -> dict[str, Any]:
    """What ran of what was planned; raises where that falls short and nobody said that it may."""
    from pybench.coverage import measure
    from pybench.dataset import load

    coverage = measure(load(directory))
    if not coverage.is_full and not allow_gaps:
        states = ", ".join(f"{count} {state}" for state, count in coverage.states.items())
        raise CoverageError(
            f"{coverage.planned - coverage.covered} of {coverage.planned} planned runs have no answer ({states})",
            hint="run the plan again, or publish it with --incomplete, which labels it",
        )
    return coverage.as_json()


def _stage(directory: Path, work: Path, wishes: Wishes, coverage: dict[str, Any]) -> Package:
    from pybench.dataset import load
    from pybench.publication import stage
    from pybench.report import write_report

    staged = work / "staged"
    storage.make_folder(staged)
    return stage(directory, staged, wishes, coverage, lambda folder: write_report(load(folder)))


def _deliver(
    package: Package,
    work: Path,
    reference: RegistryReference | None,
    access: Access,
    archive: Path | None,
    oci: Path | None,
) -> dict[str, Any]:
    """To each place that was asked for; what was done."""
    from pybench.publication import Registry, assemble, write_layout
    from pybench.publication import archive as zips

    done: dict[str, Any] = {}
    if archive:
        done["archive"] = {"file": str(archive), "sha256": zips.write(package, archive)}
        done["archive"]["bytes"] = archive.stat().st_size
    if oci or reference:
        storage.make_folder(work / "blobs")
        artefact: Artefact = assemble(package, work / "blobs")
        done["artefact"] = {"digest": artefact.digest, "bytes": artefact.bytes}
        if oci:
            write_layout(artefact, oci)
            done["artefact"]["layout"] = str(oci)
        if reference:
            Registry(reference, access, writes=True).push(artefact, str(reference.tag))
            done["artefact"]["reference"] = reference.pinned(artefact.digest)
    return done


def _tell_author(package: Package) -> None:
    """What was replaced, what is left out, and what looks personal and is still there."""
    for one in package.circumstances.redactions:
        _say(f"replaced by {one['replacement']}: a {one['kind']}, {one['times']} times")
    left_out = package.circumstances.artefacts_left_out
    if left_out:
        total = sum(one.bytes for one in left_out)
        _say(f"left out: {len(left_out)} files of artefacts, {total / 1e6:.1f} MB; --with-artefacts publishes them")
    for name in package.selection.foreign[:_MOST_SHOWN]:
        _say(f"left out, as pybench did not write it: {name}")
    if len(package.selection.foreign) > _MOST_SHOWN:
        _say(f"left out, too: {len(package.selection.foreign) - _MOST_SHOWN} more such files")
    for found in package.remains[:_MOST_SHOWN]:
        _say(f"look at this before you publish: {found.kind}, {found.text!r} in {found.name} ({found.times} times)")
    if len(package.remains) > _MOST_SHOWN:
        _say(f"look at these, too: {len(package.remains) - _MOST_SHOWN} more that look personal")


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


def fetch(
    reference: Annotated[
        str, typer.Argument(metavar="REF", help="HOST/NAME:TAG or HOST/NAME@sha256:..., an OCI layout, or a zip.")
    ],
    out: Annotated[
        Optional[Path], typer.Option("--out", "-o", metavar="DIR", help="Where to [default: results/<name>].")
    ] = None,
    expect: Annotated[
        Optional[str],
        typer.Option("--expect", metavar="SHA256", help="The digest that its contents have to have."),
    ] = None,
    key: Annotated[
        Optional[Path],
        typer.Option("--key", metavar="FILE", help="SSH public keys; one of them signed it."),
    ] = None,
    max_gb: Annotated[float, typer.Option("--max-gb", metavar="GB", min=0.001, help="What it may unpack to.")] = 20.0,
    plain_http: _PlainHttp = None,
    timeout: _Timeout = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Fetch a published campaign and check every byte of it. Nothing of it is executed; nothing is there until all of
    it is. The last line printed is where it lies."""
    from pybench.publication import Access, Demands, Limits, parse
    from pybench.publication import fetch as bring

    demands = Demands(_digest(expect), key, Limits(bytes=int(max_gb * 1e9)))
    fetched = bring(parse(reference), out, Access(plain_http, timeout), demands)
    if as_json:
        print_json(_fetched_json(fetched))
        return
    print(f"contents sha256:{fetched.contents_sha256}: {fetched.files} files, signature: {fetched.signed}")
    if fetched.digest:
        print(f"artefact {fetched.digest}")
    print(fetched.folder)


def _digest(text: str | None) -> str | None:
    plain = (text or "").removeprefix("sha256:")
    if text is not None and (len(plain) != 64 or set(plain) - set("0123456789abcdef")):
        raise UsageError(f"--expect {text} is no sha256", hint="64 hexadecimal digits, as `pybench publish` prints")
    return plain or None


def _fetched_json(fetched: Fetched) -> dict[str, Any]:
    return {
        "directory": str(fetched.folder),
        "contents": f"sha256:{fetched.contents_sha256}",
        "artefact": fetched.digest,
        "files": fetched.files,
        "signature": fetched.signed,
    }


def replay(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A publication, as `pybench fetch` left it.")],
    out: Annotated[
        Optional[Path], typer.Option("--out", "-o", metavar="DIR", help="Keep the report that is made here.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a published report and its figures again from the runs, without a GPU, and compare byte for byte: exit 0
    equal, 1 different, 4 the publication was changed."""
    from pybench.dataset import load
    from pybench.publication import check_unpacked, compare
    from pybench.report import write_report

    listed = check_unpacked(directory)
    with tempfile.TemporaryDirectory(prefix="pybench-replay-") as folder:
        remade = out or Path(folder) / rundir.REPORT
        if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out} exists", hint="choose another folder with --out")
        write_report(load(directory), remade, run_link=f"../{rundir.RUNS}")
        result = compare(directory, listed, remade)
    if as_json:
        print_json(result.as_json())
    elif not result.differences:
        print(f"equal: {result.files} files of the report, byte for byte")
    if result.differences:
        raise _not_equal(result)


def _not_equal(result: Replay) -> PybenchError:
    lines = [f"{one.name} {one.how}" for one in result.differences[:_MOST_SHOWN]]
    rest = len(result.differences) - _MOST_SHOWN
    lines += [f"and {rest} more"] if rest > 0 else []
    cause = (
        "it was made with other versions, which is the likely cause: " + "; ".join(result.causes)
        if result.causes
        else "every version is the one that made it: the processor or a build of a package differs, or pybench is wrong"
    )
    return PybenchError(
        "\n  ".join([f"{len(result.differences)} of {result.files} files of the report differ", *lines]), hint=cause
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr)
