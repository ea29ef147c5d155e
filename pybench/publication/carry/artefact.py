# SPDX-License-Identifier: Apache-2.0
"""The OCI artefact: a manifest over layers and documents (OCI image specification 1.1), and the layout that holds it.

    campaign-001.tar.zst, ...   plan, sensors, runs, records of artefacts
    artefacts-001.tar.zst, ...  the artefacts' own files, where the author publishes them
    report-001.tar.zst          the report
    publication.json, sbom.cdx.json, provenance.intoto.json, ro-crate-metadata.json, README.md, SHA256SUMS and its
                                signature: a blob each, so that they can be read without unpacking anything

A layer holds at most 256 MB of files (or one larger file), so that little is sent again when a connection breaks. Every
blob bears its file name (`org.opencontainers.image.title`), as ORAS has it. The only time is the campaign's, so
the same campaign has the same digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.campaign import layout, storage
from pybench.campaign.directory import read_json
from pybench.errors import CorruptError, UsageError
from pybench.publication.carry import layers
from pybench.publication.pack import sums
from pybench.publication.pack.package import PackedPublication

ARTEFACT_TYPE = "application/vnd.pybench.campaign.v1"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
EMPTY = b"{}"
TITLE = "org.opencontainers.image.title"
REFERENCE = "org.opencontainers.image.ref.name"
CONTENTS = "pybench.contents.sha256"
INCOMPLETE = "pybench.incomplete"
DEFAULT_TAG = "latest"
LAYOUT = "oci-layout"
INDEX = "index.json"

LAYER_TITLE = re.compile(r"(?:campaign|artefacts|report)-\d{3,5}\.tar\.zst")
_OPTION = "--oci"  # of the command line, which names the folder of a layout
_LAYER_BYTES = 256_000_000
_DOCUMENT_TYPES = {
    sums.DESCRIPTION: "application/vnd.pybench.publication.v1+json",
    sums.BILL: "application/vnd.cyclonedx+json",
    sums.PROVENANCE: "application/vnd.in-toto+json",
    sums.CRATE: "application/ld+json",
    sums.README: "text/markdown",
    sums.SUMS: "text/plain",
    sums.SIGNATURE: "application/vnd.pybench.signature.ssh.v1",
}


@dataclass(frozen=True, slots=True)
class Blob:
    """One blob of an artefact: where its bytes lie, and how a manifest names it."""

    path: Path
    media_type: str
    digest: str
    bytes: int
    title: str | None = None

    def descriptor(self) -> dict[str, Any]:
        titled = {"annotations": {TITLE: self.title}} if self.title else {}
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.bytes, **titled}


@dataclass(frozen=True, slots=True)
class OciArtefact:
    """A manifest and the blobs that it names; `digest` is the artefact's."""

    manifest: bytes
    blobs: tuple[Blob, ...]

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.manifest).hexdigest()}"

    @property
    def bytes(self) -> int:
        return len(self.manifest) + sum(blob.bytes for blob in self.blobs)


def assemble(package: PackedPublication, work: Path) -> OciArtefact:
    """Writes the layers into the folder `work` and the manifest over them."""
    artefacts = {name for name in package.digests if name.startswith(f"{layout.ARTEFACTS}/")}
    own = {name for name in artefacts if name.rpartition("/")[2] not in layout.OF_EVERY_MAKING}
    report = {name for name in package.digests if name.startswith(f"{layout.REPORT}/")}
    rest = set(package.digests) - own - report - set(sums.DOCUMENTS)
    blobs: list[Blob] = []
    try:
        (work / "empty").write_bytes(EMPTY)
        for stem, names in (("campaign", rest), ("artefacts", own), ("report", report)):
            for number, group in enumerate(_grouped(package.folder, names), start=1):
                title = f"{stem}-{number:03d}.tar.zst"
                layers.write(package.folder, group, work / title, package.facts.epoch_s)
                blobs.append(_blob(work / title, layers.MEDIA_TYPE, title))
        blobs += [
            _blob(package.folder / name, kind, name)
            for name, kind in _DOCUMENT_TYPES.items()
            if (package.folder / name).exists()
        ]
        config = _blob(work / "empty", EMPTY_TYPE, None)
    except OSError as error:
        raise storage.storage_error(error, work) from error
    return OciArtefact(_manifest(package, config, blobs), (config, *blobs))


def _grouped(folder: Path, names: Iterable[str]) -> Iterator[list[str]]:
    """Names in their order, as many together as a layer may hold."""
    group: list[str] = []
    total = 0
    for name in sorted(names):
        size = (folder / name).stat().st_size
        if group and total + size > _LAYER_BYTES:
            yield group
            group, total = [], 0
        group.append(name)
        total += size
    if group:
        yield group


def _blob(path: Path, media_type: str, title: str | None) -> Blob:
    return Blob(path, media_type, f"sha256:{storage.sha256_of(path)}", path.stat().st_size, title)


def _manifest(package: PackedPublication, config: Blob, blobs: list[Blob]) -> bytes:
    about = package.provenance.about
    annotations = {
        "org.opencontainers.image.created": package.facts.created,
        "org.opencontainers.image.title": about.title or package.facts.name,
        **({"org.opencontainers.image.licenses": about.license} if about.license else {}),
        **({"org.opencontainers.image.authors": ", ".join(about.authors)} if about.authors else {}),
        CONTENTS: package.contents_sha256,
        **({INCOMPLETE: "true"} if package.provenance.is_incomplete else {}),
    }
    return _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": ARTEFACT_TYPE,
            "config": config.descriptor(),
            "layers": [blob.descriptor() for blob in blobs],
            "annotations": annotations,
        }
    )


# --- the layout ------------------------------------------------------------------------------------------------------


def write_layout(artefact: OciArtefact, folder: Path) -> None:
    """Adds the artefact to an OCI layout, as its latest; makes the layout where there is none. An earlier artefact
    stays, by its digest. The index comes last: until then a reader sees what was there before."""
    index = _index(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / LAYOUT).is_file():
        raise UsageError(f"{folder} is neither empty nor an OCI layout", hint=f"choose another folder with {_OPTION}")
    blobs = folder / "blobs" / "sha256"
    storage.make_folder(blobs, exist_ok=True, option=_OPTION)
    for blob in artefact.blobs:
        _store(blob, blobs / blob.digest.removeprefix("sha256:"))
    storage.write_bytes(blobs / artefact.digest.removeprefix("sha256:"), artefact.manifest, option=_OPTION)
    entry = {
        "mediaType": MANIFEST_TYPE,
        "artifactType": ARTEFACT_TYPE,
        "digest": artefact.digest,
        "size": len(artefact.manifest),
        "annotations": {REFERENCE: DEFAULT_TAG},
    }
    others = [
        _untagged(one)
        for one in index.get("manifests", [])
        if one.get("digest") != artefact.digest or _tag(one) not in (None, DEFAULT_TAG)
    ]
    storage.write_bytes(folder / LAYOUT, _json({"imageLayoutVersion": "1.0.0"}), option=_OPTION)
    storage.write_bytes(folder / INDEX, _json({"schemaVersion": 2, "manifests": [*others, entry]}), option=_OPTION)


def read_index(folder: Path) -> list[dict[str, Any]]:
    """The manifests that a layout names; `CorruptError` where it is malformed."""
    manifests = read_json(folder / INDEX, hint="copy the layout again").get("manifests")
    if not isinstance(manifests, list) or not all(isinstance(one, dict) for one in manifests):
        raise CorruptError(f"{folder / INDEX}: `manifests` must be a list of objects")
    return manifests


def _index(folder: Path) -> dict[str, Any]:
    return {"manifests": read_index(folder)} if (folder / INDEX).is_file() else {}


def _tag(entry: Mapping[str, Any]) -> str | None:
    annotations = entry.get("annotations")
    return annotations.get(REFERENCE) if isinstance(annotations, dict) else None


def _untagged(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry without the tag that another artefact gets; one of any other tag as it is."""
    if _tag(entry) != DEFAULT_TAG:
        return entry
    return {**entry, "annotations": {name: text for name, text in entry["annotations"].items() if name != REFERENCE}}


def find_in_index(folder: Path, tag: str | None, digest: str | None) -> str:
    """The digest of the artefact in a layout: by digest, by tag, the only one there is, or the latest."""
    entries = read_index(folder)
    if tag is None and len({one.get("digest") for one in entries}) > 1:
        tag = DEFAULT_TAG
    fitting = [one for one in entries if (one.get("digest") == digest if digest else tag in (None, _tag(one)))]
    if len({one.get("digest") for one in fitting}) != 1 or not isinstance(fitting[0].get("digest"), str):
        wanted = digest or tag or "one artefact"
        tags = ", ".join(sorted(str(_tag(one) or one.get("digest")) for one in entries)) or "nothing"
        raise UsageError(f"{folder} has no single artefact for {wanted}", hint=f"it contains {tags}: give {folder}:TAG")
    return str(fitting[0]["digest"])


def _store(blob: Blob, target: Path) -> None:
    """Copies a blob to its address, unless a whole one is there."""
    has_size = target.is_file() and target.stat().st_size == blob.bytes
    if has_size and f"sha256:{storage.sha256_of(target)}" == blob.digest:
        return
    temporary = storage.temporary_name(target)
    try:
        shutil.copyfile(blob.path, temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise storage.storage_error(error, target, _OPTION) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
