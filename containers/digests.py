# SPDX-License-Identifier: Apache-2.0
"""The digests that images are expected to have, beside the locks: containers/digests.toml.

An entry says what a build of certain inputs (sources.py) gave, for a version of pybench. Commits in between change the
inputs, and the entry then says nothing about them: digests are renewed for a release, not for each commit. What never
may happen is one set of inputs with two digests; `compare` says so after a build, a test looks through the history.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PATH = Path(__file__).resolve().parent / "digests.toml"
_HEADER = """# SPDX-License-Identifier: Apache-2.0
# sha256 of what `containers/build.py` makes of the inputs named here. Generated: `containers/build.py --record`.
"""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Expected:
    """What one tier's image was, built from `inputs`, for version `version` of pybench; all else in sha256."""

    version: str
    inputs: str
    rootfs: str
    oci_manifest: str
    sif: str

    @property
    def digests(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in ("rootfs", "oci_manifest", "sif")}


def parse(text: str) -> dict[str, Expected]:
    """The entries by tier. ValueError for what is none."""
    entries = {tier: Expected(**fields) for tier, fields in tomllib.loads(text).items()}
    for tier, entry in entries.items():
        for name, value in {"inputs": entry.inputs, **entry.digests}.items():
            if not _SHA256.fullmatch(value):
                raise ValueError(f"{tier}.{name}: {value!r} is no sha256")
    return entries


def read(path: Path = PATH) -> dict[str, Expected]:
    """The entries of the file; none where there is no file."""
    return parse(path.read_text()) if path.exists() else {}


def write(tier: str, entry: Expected, path: Path = PATH) -> None:
    """Put one tier's entry in place of its former one."""
    entries = read(path) | {tier: entry}
    sections = [
        "\n".join([f"[{name}]", *(f'{key} = "{value}"' for key, value in asdict(found).items()), ""])
        for name, found in sorted(entries.items())
    ]
    path.write_text("\n".join([_HEADER, *sections]))


def compare(expected: Expected | None, inputs: str, built: Mapping[str, str]) -> tuple[str, bool]:
    """How a build stands to the record, in words, and whether that is as it must be."""
    if expected is None:
        return "containers/digests.toml has no digests of this tier; --record writes them", True
    if expected.inputs != inputs:
        return (
            f"containers/digests.toml has digests of other sources (version {expected.version}): none to compare",
            True,
        )
    differing = [name for name, digest in expected.digests.items() if built[name] != digest]
    if differing:
        return f"the same inputs as in containers/digests.toml, but another digest of {', '.join(differing)}", False
    return "the digests are those of containers/digests.toml", True
