# SPDX-License-Identifier: Apache-2.0
"""A registry's client: the part of the OCI distribution specification 1.1 that pushing and pulling one artefact needs.

Blobs that the registry has are not sent, so a push that broke goes on with the blob at which it did; a download goes on
within the blob. The manifest comes last: nobody sees half an artefact. Nothing a registry says is believed: every blob
and manifest is checked against its digest here. How requests are made is `pybench.publication.carry.transport`.

An upload is not continued within a blob, though the specification has a way. The reason is that docker-registry drops
an upload that broke (its state names the offset before). Blobs are kept small instead
(`pybench.publication.carry.artefact`).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import IO

from pybench.campaign import storage
from pybench.campaign.storage import sha256_of
from pybench.errors import CorruptError, PybenchError
from pybench.publication.carry.artefact import MANIFEST_TYPE, Blob, OciArtefact
from pybench.publication.carry.reference import RegistryReference
from pybench.publication.carry.transport import (
    ACCEPTED,
    BAD_RANGE,
    CREATED,
    NOT_FOUND,
    OK,
    PARTIAL,
    Answer,
    RegistryAccess,
    TransientError,
    Transport,
    chunks_of,
    content_of,
    said,
    shown,
    with_query,
)
from pybench.publication.pack.sums import hash_bytes

_LARGEST_MANIFEST_BYTES = 4 << 20  # what the specification asks registries to take


class Registry:
    """One repository of one registry. `writes`: whether to ask for the right to push."""

    def __init__(self, reference: RegistryReference, access: RegistryAccess, *, writes: bool = False) -> None:
        self._reference = reference
        self._transport = Transport(reference, access, "pull,push" if writes else "pull")

    def push(self, artefact: OciArtefact, tag: str) -> None:
        """Sends what the registry lacks, then the manifest."""
        for blob in artefact.blobs:
            self._transport.patiently(f"taking {blob.title or 'a blob'}", partial(self._push_blob, blob))
        self._transport.patiently("taking the manifest", lambda: self._push_manifest(artefact, tag))

    def manifest(self) -> bytes:
        """The manifest's bytes, which are what the reference's digest says, if it has one."""
        return self._transport.patiently("giving the manifest", self._manifest)

    def download(self, digest: str, size: int, target: Path) -> None:
        """Brings a blob to `target`, continuing what is there of it; `CorruptError` where it is not what it should."""
        self._transport.patiently(f"giving {digest[:19]}", lambda: self._download(digest, size, target))

    def _push_blob(self, blob: Blob) -> None:
        found = self._transport.ask("HEAD", self._transport.url(f"blobs/{blob.digest}"))
        found.drain_conn()
        if found.status == OK:
            return
        url = self._transport.url("blobs/uploads/")
        begun = self._transport.ask("POST", url, {"Content-Length": "0"})
        if begun.status != ACCEPTED:
            raise self._transport.failure("take uploads", begun)
        begun.drain_conn()
        target = with_query(self._transport.onward(begun, url), {"digest": blob.digest})
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(blob.bytes)}
        answer = self._transport.ask("PUT", target, headers, partial(_opened, blob.path))
        if answer.status != CREATED:
            raise self._transport.failure(f"take {blob.title or 'a blob'}", answer)
        answer.drain_conn()

    def _push_manifest(self, artefact: OciArtefact, tag: str) -> None:
        url, headers = self._transport.url(f"manifests/{tag}"), {"Content-Type": MANIFEST_TYPE}
        answer = self._transport.ask("PUT", url, headers, lambda: artefact.manifest)
        if answer.status != CREATED:
            raise self._transport.failure("take the manifest", answer)
        answer.drain_conn()
        kept = answer.headers.get("Docker-Content-Digest", artefact.digest)
        if kept != artefact.digest:
            raise CorruptError(f"{self._reference.host} stored the manifest as {shown(kept)}, not {artefact.digest}")

    def _manifest(self) -> bytes:
        url = self._transport.url(f"manifests/{self._reference.wanted}")
        answer = self._transport.ask("GET", url, {"Accept": MANIFEST_TYPE})
        if answer.status == NOT_FOUND:
            raise PybenchError(
                f"{self._reference} does not exist or is not public: {said(answer)}",
                hint="check the name; if it is not public, log in with `skopeo login` (or docker, podman)",
            )
        if answer.status != OK:
            raise self._transport.failure("give the manifest", answer)
        content = content_of(answer, _LARGEST_MANIFEST_BYTES)
        digest = f"sha256:{hash_bytes(content)}"
        wanted = self._reference.digest or answer.headers.get("Docker-Content-Digest", digest)
        if digest != wanted:
            raise CorruptError(
                f"{self._reference} has another digest than requested: {digest} instead of {shown(wanted)}"
            )
        return content

    def _download(self, digest: str, size: int, target: Path) -> None:
        have = target.stat().st_size if target.is_file() else 0
        if have < size:
            part = {"Range": f"bytes={have}-"} if have else {}
            answer = self._transport.ask("GET", self._transport.url(f"blobs/{digest}"), part)
            if answer.status in (OK, PARTIAL):
                _save(answer, target, from_start=answer.status == OK, size=size)
            elif answer.status != BAD_RANGE:  # that is the end of a blob that is shorter than the manifest says
                raise self._transport.failure(f"give {digest[:19]}", answer)
        if target.stat().st_size != size or f"sha256:{sha256_of(target)}" != digest:
            target.unlink()
            raise CorruptError(
                f"{self._reference.host} sent bytes that do not match {digest}", hint="nothing was written; try again"
            )


def _opened(path: Path) -> IO[bytes]:
    return path.open("rb")  # closed by who sends it


def _save(answer: Answer, target: Path, *, from_start: bool, size: int) -> None:
    """Writes a body to the end of `target`, and no more than `size` bytes in all."""
    try:
        with open(target, "wb" if from_start else "ab") as file:
            for chunk in chunks_of(answer):
                if file.tell() + len(chunk) > size:
                    raise CorruptError(f"a blob has more than the {size} bytes that the manifest says")
                file.write(chunk)
            is_short = file.tell() < size
    except OSError as error:
        raise storage.storage_error(error, target) from error
    finally:
        answer.close()
    if is_short:
        raise TransientError("it stopped in the middle")
