# SPDX-License-Identifier: Apache-2.0
"""Virtual environments that see the packages of this one and have one of their own, which each of their processes
loads: `acme-marker`, in a version that the test chooses."""

from __future__ import annotations

import shutil
import sysconfig
import venv
from pathlib import Path

MARKER = "acme_marker"


def make_environment(folder: Path, version: str) -> Path:
    """Its interpreter. Packages of this environment come after its own."""
    venv.create(folder, symlinks=True)
    packages = packages_of(folder)
    Path(packages, "here.pth").write_text(f"{sysconfig.get_paths()['purelib']}\nimport {MARKER}\n")
    install_marker(packages, version)
    return folder / "bin" / "python"


def install_marker(packages: Path, version: str) -> None:
    """In place of another version."""
    for found in packages.glob(f"{MARKER}-*"):
        shutil.rmtree(found)
    packages.mkdir(parents=True, exist_ok=True)
    Path(packages, f"{MARKER}.py").write_text(f"__version__ = {version!r}\n")
    described = packages / f"{MARKER}-{version}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-marker\nVersion: {version}\n")


def packages_of(folder: Path) -> Path:
    (packages,) = folder.glob("lib/python*/site-packages")
    return packages
