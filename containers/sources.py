# SPDX-License-Identifier: Apache-2.0
"""What an image is made of: the files of this repository that enter it, and those that say how it is made.

One hash over all of them, `inputs_sha256`, tells whether two builds should give the same bytes.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

ENTERING = ("pyproject.toml", "uv.lock", "README.md", "LICENSE", "pybench", "native", "tokenizer-rs",
            "orchestrator-go", "plans", "containers/sif")  # fmt: skip
RECIPE = ("containers/build.py", "containers/canonical_tar.py", "containers/debian_root.py", "containers/debs.lock",
          "containers/debs.txt", "containers/debs_lock.py", "containers/hostility.py",
          "containers/image_content.py", "containers/oci_archive.py", "containers/sources.py", "containers/steps.py",
          "containers/tensorrt.lock", "containers/tensorrt_wheels.py")  # fmt: skip


def listed(project: Path, roots: Iterable[str]) -> list[str]:
    """Files below `roots`, sorted: those that git knows or would take, all of them where there is no git."""
    if (project / ".git").exists():
        command = ["git", "-c", f"safe.directory={project}", "-C", str(project), "ls-files", "-z",
                   "--cached", "--others", "--exclude-standard", "--", *roots]  # fmt: skip
        known = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
        names = {name for name in known if name and (project / name).is_file()}
    else:
        starts = [project / name for name in roots]
        paths = [path for start in starts for path in ([start] if start.is_file() else start.rglob("*"))]
        names = {path.relative_to(project).as_posix() for path in paths if path.is_file()}
    return sorted(names)


def inputs_sha256(project: Path) -> str:
    """A hash over names, execute bits and contents of everything that decides an image's bytes."""
    lines = []
    for name in listed(project, (*ENTERING, *RECIPE)):
        path = project / name
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{'x' if _is_executable(path) else '-'} {content} {name}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def copy(project: Path, target: Path, roots: Iterable[str] = ENTERING, order: random.Random | None = None) -> None:
    """Copy the files below `roots`, with plain permissions. `order`: in which files are created, by default sorted."""
    names = listed(project, roots)
    if order is not None:
        order.shuffle(names)
    for name in names:
        copied = target / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(project / name, copied)
        copied.chmod(0o755 if _is_executable(project / name) else 0o644)


def _is_executable(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o100)
