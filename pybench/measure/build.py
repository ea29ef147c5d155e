# SPDX-License-Identifier: Apache-2.0
"""Asserts, at import, that the loaded C++ object was built from the sources that belong to this Python code.

Where the sources lie beside the package (a clone, an editable installation) they are hashed; installed without them,
the object is compared with what the same build wrote into `pybench/_native_build.py`. The hash is the sha256 over lines
"<sha256 of the file>  <name>\\n", sorted by name, of native/*.cpp, native/*.hpp and native/CMakeLists.txt, as
`sha256sum` prints them and as native/CMakeLists.txt computes them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pybench import _native
from pybench.errors import PybenchError

_SOURCES = Path(__file__).resolve().parents[2] / "native"


def hash_sources(folder: Path) -> str | None:
    """The build id of the sources in `folder`, hexadecimal; None where there are none."""
    if not (folder / "CMakeLists.txt").is_file():
        return None
    files = [*folder.glob("*.cpp"), *folder.glob("*.hpp"), folder / "CMakeLists.txt"]
    lines = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def check_build(loaded: str, expected: str | None) -> str:
    """Returns `loaded` if it is the `expected` build id; raises PybenchError otherwise."""
    if loaded != expected:
        belongs = "no build" if expected is None else expected[:12]
        raise PybenchError(
            f"pybench._native was built from other sources ({loaded[:12]}, but this code belongs to {belongs})",
            hint="run make, or install pybench again",
        )
    return loaded


def _installed_build() -> str | None:
    try:
        from pybench._native_build import SOURCES_SHA256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    return str(SOURCES_SHA256)


NATIVE_BUILD_ID = check_build(_native.BUILD_ID, hash_sources(_SOURCES) or _installed_build())
