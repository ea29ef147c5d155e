# SPDX-License-Identifier: Apache-2.0
"""Where a publication is: in a registry, in an OCI layout, or in one file.

    ghcr.io/ada/quickstart:1      ghcr.io/ada/quickstart@sha256:...      127.0.0.1:5000/quickstart
    ./layout                      ./layout:latest                        ./layout@sha256:...
    ./quickstart.zip              ./quickstart.tar.zst

What exists as a file or folder is one; everything else has to be a reference as docker and skopeo have it, with the
registry's name in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pybench.errors import UsageError

ZIP, TAR = ".zip", ".tar.zst"
ENDINGS = (ZIP, TAR)
"""Of the names of archives."""

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_PATH = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*")
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d{1,5})?")
_SCHEMES = ("docker://", "oci://")
_LOOPBACK = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?")


@dataclass(frozen=True, slots=True)
class RegistryReference:
    """`host` has its port; of `tag` and `digest` at least one is there."""

    host: str
    repository: str
    tag: str | None
    digest: str | None

    @property
    def wanted(self) -> str:
        """What a manifest is asked for by."""
        return self.digest or self.tag or ""

    @property
    def is_loopback(self) -> bool:
        return _LOOPBACK.fullmatch(self.host) is not None

    def pinned(self, digest: str) -> str:
        """The reference that always means the same bytes."""
        return f"{self.host}/{self.repository}@{digest}"

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.host}/{self.repository}{tag}{f'@{self.digest}' if self.digest else ''}"


@dataclass(frozen=True, slots=True)
class LayoutReference:
    """An artefact in an OCI layout; without tag and digest its only one, or the latest of several."""

    folder: Path
    tag: str | None
    digest: str | None


@dataclass(frozen=True, slots=True)
class FileReference:
    """A zip or a tar."""

    file: Path


Reference = RegistryReference | LayoutReference | FileReference


def parse(text: str) -> Reference:
    """What `fetch` is asked for; `UsageError` where it is none of these."""
    plain = text.removeprefix("oci:") if not text.startswith("oci://") else text
    if Path(plain).is_file():
        return FileReference(Path(plain))
    path, tag, digest = _split(plain)
    if Path(plain).is_dir():
        return LayoutReference(Path(plain), None, None)
    if Path(path).is_dir():
        return LayoutReference(Path(path), tag, digest)
    if text.startswith((".", "/", "oci:/", "oci:.")) or text.endswith(ENDINGS):
        is_on_the_web = text.startswith(("https://", "http://"))
        raise UsageError(
            f"{text} is an address of the web, which is not downloaded" if is_on_the_web else f"{text} does not exist",
            hint="download the archive, as with `curl -LO`, then give its path"
            if is_on_the_web
            else f"give an archive ({', '.join(ENDINGS)}), a folder with an OCI layout, or HOST/NAME:TAG",
        )
    return parse_registry(text)


def parse_registry(text: str, *, needs_tag: bool = False) -> RegistryReference:
    """A reference to a registry. Without tag and digest the tag is `latest`, as everywhere."""
    plain = text
    for scheme in _SCHEMES:
        plain = plain.removeprefix(scheme)
    path, tag, digest = _split(plain)
    host, _, repository = path.partition("/")
    is_host = _HOST.fullmatch(host) is not None and (any(sign in host for sign in ".:[") or host == "localhost")
    if not is_host or not _PATH.fullmatch(repository):
        raise UsageError(
            f"{text} is not a valid reference to a registry",
            hint="write HOST/NAME:TAG in lower case, such as ghcr.io/ada/quickstart:1",
        )
    if needs_tag and digest is not None:
        raise UsageError(
            f"{text} has a digest, but the digest follows from the published bytes", hint="give a tag instead"
        )
    return RegistryReference(host, repository, tag if tag or digest else "latest", digest)


def _split(text: str) -> tuple[str, str | None, str | None]:
    """path, tag, digest. A colon before a slash belongs to a port."""
    path, _, digest = text.partition("@")
    if digest and not DIGEST.fullmatch(digest):
        raise UsageError(f"{text}: {digest!r} is not a digest", hint="a digest is sha256: and 64 hexadecimal digits")
    head, colon, tag = path.rpartition(":")
    if not colon or "/" in tag:
        return path, None, digest or None
    if not _TAG.fullmatch(tag):
        raise UsageError(f"{text}: {tag!r} is not a valid tag")
    return head, tag, digest or None
