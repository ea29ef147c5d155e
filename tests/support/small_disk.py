# SPDX-License-Identifier: Apache-2.0
"""A real file system that is nearly full from the start."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk_of(folder: Path, size: str) -> Iterator[Path]:
    """Mounts a tmpfs of so many bytes (`16k`) at a new folder; skips the test where that needs a root there is not."""
    folder.mkdir()
    mount = ["/usr/bin/mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"SKIPPED: no small file system can be mounted: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["/usr/bin/umount", "--lazy", str(folder)], check=True)
