# SPDX-License-Identifier: Apache-2.0
"""What an attacker can make: artefacts and zips whose digests are all right and whose contents are not."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import zstandard

from pybench.publication.carry import layers
from pybench.publication.carry.artefact import ARTEFACT_TYPE, EMPTY, EMPTY_TYPE, MANIFEST_TYPE, REFERENCE, TITLE
from pybench.publication.pack import sums

CAMPAIGN_LAYER = "campaign-001.tar.zst"


def parts_of(layout: Path) -> dict[str, bytes]:
    """Title -> bytes of everything in the only artefact of a layout."""
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(_blob(layout, index["manifests"][0]["digest"]).read_text())
    return {one["annotations"][TITLE]: _blob(layout, one["digest"]).read_bytes() for one in manifest["layers"]}


def manifest_path(layout: Path) -> Path:
    return _blob(layout, json.loads((layout / "index.json").read_text())["manifests"][0]["digest"])


def forge(layout: Path, parts: Mapping[str, bytes]) -> Path:
    """A layout whose artefact has these parts, all under their right digests."""
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    entries = [_descriptor(blobs, content, layers.MEDIA_TYPE, title) for title, content in parts.items()]
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": ARTEFACT_TYPE,
        "config": _descriptor(blobs, EMPTY, EMPTY_TYPE, None),
        "layers": entries,
    }
    one = _descriptor(blobs, json.dumps(manifest).encode(), MANIFEST_TYPE, None)
    one["annotations"] = {REFERENCE: "latest"}
    (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [one]}))
    return layout


def forge_contents(layout: Path, files: Mapping[str, bytes], members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> Path:
    """A layout whose list names `files`, and whose one layer holds them and then `members`."""
    plain = [(_header(name), content) for name, content in files.items()]
    listed = sums.render({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})
    return forge(layout, {CAMPAIGN_LAYER: tar_layer([*plain, *members]), sums.SUMS: listed})


def _header(name: str) -> tarfile.TarInfo:
    return tarfile.TarInfo(name)


def tar_layer(members: Iterable[tuple[tarfile.TarInfo, bytes]], tar_format: int = tarfile.USTAR_FORMAT) -> bytes:
    """The members as they are, however malicious, in a zstd frame."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tar_format) as archive:
        for header, content in members:
            if header.type == tarfile.REGTYPE:
                header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return zstandard.ZstdCompressor().compress(stream.getvalue())


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    """A member that is no plain file."""
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, target
    return header, b""


def rewritten_zip(source: Path, target: Path, change: Mapping[str, bytes | None]) -> Path:
    """A zip with members replaced, added or (None) left out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name not in change:
                new.writestr(name, old.read(name))
        for name, content in change.items():
            if content is not None:
                new.writestr(name, content)
    return target


def rewritten_tar(source: Path, target: Path, change: Mapping[str, bytes | None]) -> Path:
    """A `.tar.zst` with members replaced where they stand, added at the end, or (None) left out."""
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(source.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(plain)) as old:
        content = {member.name: file.read() for member in old if (file := old.extractfile(member)) is not None}
    members = [(_header(name), new) for name, new in {**content, **change}.items() if new is not None]
    target.write_bytes(tar_layer(members))
    return target


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")


def _descriptor(blobs: Path, content: bytes, kind: str, title: str | None) -> dict[str, object]:
    digest = hashlib.sha256(content).hexdigest()
    (blobs / digest).write_bytes(content)
    titled = {"annotations": {TITLE: title}} if title else {}
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content), **titled}


def lzma_member(content: bytes) -> bytes:
    """The content as it is in a zip: a header of nine bytes, then LZMA."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x", content)
    return stream.getvalue()[31 : 31 + archive.getinfo("x").compress_size]


def forge_zip(target: Path, files: Mapping[str, bytes], raw: Mapping[str, bytes]) -> Path:
    """A zip of listed files. Those in `raw` have these compressed bytes in place of their own, and call them LZMA."""
    listed = sums.render({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(sums.SUMS, listed)
        for name, content in files.items():
            archive.writestr(name, raw.get(name, content), zipfile.ZIP_STORED if name in raw else None)
        for name in raw:  # only the directory is believed
            member = archive.getinfo(name)
            member.compress_type, member.file_size = zipfile.ZIP_LZMA, len(files[name])
            member.CRC = zlib.crc32(files[name])
    return target
