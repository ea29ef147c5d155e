# SPDX-License-Identifier: Apache-2.0
"""Fetching: bring it here, check it, unpack it beside the target, and rename it into place as the last step.

What came from a registry is kept in a hidden folder beside the target while fetching, and stays there when the network
fails: the same command then goes on. When the target is there, or what came is wrong, or the disk is full, it goes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pybench.campaign import layout, storage
from pybench.errors import CorruptError, PybenchError, UsageError
from pybench.publication.carry.reference import (
    ENDINGS,
    FileReference,
    LayoutReference,
    Reference,
    RegistryReference,
)
from pybench.publication.carry.transport import RegistryAccess
from pybench.publication.pack import signature, sums
from pybench.publication.pack.finished_runs import check_fetched
from pybench.publication.verify.bundle import Bundle, open_bundle
from pybench.publication.verify.unpacking import Limits, Unpacking


@dataclass(frozen=True, slots=True)
class FetchChecks:
    """What a publication has to be.

    contents: sha256 of its SHA256SUMS, 64 hexadecimal digits; None: any
    key: a file of SSH public keys, one of which signed it; None: no signature is required
    limits: how much it may unpack to
    """

    contents: str | None = None
    key: Path | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What came.

    folder: where it is now
    contents_sha256: of its SHA256SUMS, 64 hexadecimal digits
    digest: of the OCI artefact; None for an archive
    files: how many it has
    signed: `verified`, `not verified` or `no`
    """

    folder: Path
    contents_sha256: str
    digest: str | None
    files: int
    signed: str


def fetch(reference: Reference, target: Path | None, access: RegistryAccess, checks: FetchChecks) -> FetchResult:
    """Brings a publication to `target`, by default `results/` and its name. Nothing is there until all of it is."""
    folder = target or layout.RESULTS / _name(reference)
    if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise UsageError(f"{folder} is the current folder, which cannot be replaced", hint="give --out NEW_FOLDER")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists", hint="choose another folder with --out, or remove that one")
    try:
        with _workplace(folder) as work, open_bundle(reference, access, checks.limits, work) as bundle:
            return _take(bundle, folder, checks)
    except OSError as error:  # what cannot be written is a UsageError by now
        raise PybenchError(f"cannot read {error.filename or folder}: {error.strerror}") from error


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder of a campaign or publication at `path`. An archive is unpacked for as long as the context lasts.

    Raises `CorruptError` for a file that is no publication or of which a byte differs from its list.
    """
    if not path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="pybench-unpacked-") as folder:
        yield fetch(FileReference(path), Path(folder) / "publication", RegistryAccess(), FetchChecks()).folder


def _take(bundle: Bundle, folder: Path, checks: FetchChecks) -> FetchResult:
    listed = bundle.read(sums.SUMS)
    if listed is None:
        raise CorruptError(f"{bundle.where} is not a publication of pybench: it has no {sums.SUMS}")
    contents = sums.hash_bytes(listed)
    if checks.contents is not None and contents != checks.contents:
        raise CorruptError(f"{bundle.where} has contents sha256:{contents}, not sha256:{checks.contents}")
    expected = sums.parse(listed, f"{bundle.where} ({sums.SUMS})")
    mark = bundle.read(sums.SIGNATURE)
    if checks.key is not None:
        if mark is None:
            raise CorruptError(
                f"{bundle.where} is not signed", hint="fetch it without --key if you accept an unsigned publication"
            )
        signature.verify(listed, mark, checks.key)
    temporary = storage.temporary_name(folder)
    storage.make_folder(temporary)
    try:
        unpacking = Unpacking(temporary, expected, checks.limits, bundle.where)
        bundle.unpack(unpacking)
        unpacking.finish()
        check_fetched(temporary, bundle.where)
        _write(temporary, {sums.SUMS: listed, **({sums.SIGNATURE: mark} if mark is not None else {})})
        os.replace(temporary, folder)
        storage.sync(folder.parent)
    except OSError as error:
        raise storage.storage_error(error, folder) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    signed = "no" if mark is None else "verified" if checks.key is not None else "not verified"
    return FetchResult(folder, contents, bundle.digest, len(expected), signed)


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        storage.write_bytes(folder / name, content)


@contextlib.contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """A hidden folder for blobs. It outlives this call only when something passing stopped it; so does the folder that
    both are in, where it was not there before."""
    work = folder.with_name(f".{folder.name}.fetching")
    is_new = not folder.parent.exists()
    storage.make_folder(work, exist_ok=True)
    keep = False
    try:
        yield work
    except (CorruptError, UsageError):
        raise
    except (PybenchError, KeyboardInterrupt):
        keep = any(work.iterdir())
        raise
    finally:
        if not keep:
            shutil.rmtree(work, ignore_errors=True)
        if is_new:
            with contextlib.suppress(OSError):  # it holds what was fetched
                folder.parent.rmdir()


def _name(reference: Reference) -> str:
    if isinstance(reference, RegistryReference):
        return reference.repository.rpartition("/")[2]
    if isinstance(reference, LayoutReference):
        return reference.folder.resolve().name
    name = reference.file.name
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)
