# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path


def contents_of(folder: Path) -> dict[str, bytes]:
    """Path of each file below the folder -> its bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
