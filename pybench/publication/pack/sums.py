# SPDX-License-Identifier: Apache-2.0
"""SHA256SUMS: the list that says what a publication is. Everything else hangs on it.

One line a file, sorted by name: 64 hex digits, two spaces, the name; `sha256sum -c SHA256SUMS` reads it. The sha256 of
the list is the digest of the contents, the same for the OCI artefact and the zip, whatever compressed them. It is also
what in-toto calls `dirHash` (Hash1 of Go's dirhash, in hexadecimal).

Names are checked here, once: relative, of plain characters, below a publication's own folders. Who unpacks by this list
cannot be led out of the target folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pybench.campaign import layout
from pybench.campaign.storage import sha256_of
from pybench.errors import CorruptError

SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
DESCRIPTION = layout.PUBLICATION
BILL = "sbom.cdx.json"
PROVENANCE = "provenance.intoto.json"
CRATE = "ro-crate-metadata.json"
README = "README.md"

DOCUMENTS = (DESCRIPTION, BILL, PROVENANCE, CRATE, README)
CAMPAIGN_FILES = (layout.PLAN, layout.PLAN_RESOLVED, layout.STOPPED)
CAMPAIGN_FOLDERS = (layout.SENSORS, layout.ENVIRONMENTS, layout.ARTEFACTS, layout.RUNS)
FOLDERS = (*CAMPAIGN_FOLDERS, layout.REPORT)

_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")  # USTAR has 100 characters for a name,
_LONGEST_NAME = 250  # and 155 for the folders before it: enough for those of pybench


def is_plain_name(name: str) -> bool:
    """Whether a publication may hold a file of this name: no way out of the folder, nothing hidden, nothing odd."""
    parts = name.split("/")
    if len(name) > _LONGEST_NAME or not all(_PART.fullmatch(part) for part in parts):
        return False
    return name in (*DOCUMENTS, *CAMPAIGN_FILES) if len(parts) == 1 else parts[0] in FOLDERS


def render(digests: Mapping[str, str]) -> bytes:
    """The list's bytes."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()


def digest_of(digests: Mapping[str, str]) -> str:
    """The sha256 of the list: one digest for a set of files with their names."""
    return hashlib.sha256(render(digests)).hexdigest()


def parse(content: bytes, where: str) -> dict[str, str]:
    """Name -> sha256. Raises `CorruptError` for a list that pybench would not have written."""
    digests: dict[str, str] = {}
    for number, line in enumerate(content.decode("ascii", errors="replace").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or not is_plain_name(match[2]):
            raise CorruptError(
                f"{where}, line {number}: not the name and sha256 of a publication's file: {line[:120]!r}"
            )
        if match[2] in digests:
            raise CorruptError(f"{where}, line {number}: {match[2]} is listed twice")
        digests[match[2]] = match[1]
    for name in digests:
        above = name.rpartition("/")[0]
        while above:
            if above in digests:
                raise CorruptError(f"{where}: {above} is both a file and the folder of {name}")
            above = above.rpartition("/")[0]
    if render(digests) != content:
        raise CorruptError(f"{where}: the list is not sorted or has odd line ends")
    return digests


def hash_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Name -> sha256 of files below `folder`."""
    return {name: sha256_of(folder / name) for name in names}


def hash_bytes(content: bytes) -> str:
    """The sha256 of bytes."""
    return hashlib.sha256(content).hexdigest()
