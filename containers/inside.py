# SPDX-License-Identifier: Apache-2.0
"""build.py's steps inside an engine's build, for Containerfile and apptainer.def.

inside.py install TIER          the Python packages of uv.lock and pybench's own wheels, into /opt/pybench
inside.py compare TIER LOCKED   Debian's packages against debs.lock; with LOCKED 1 a difference is an error

TIER is one of TIERS, which lacks `tensorrt`: NVIDIA's wheels lie outside of an engine's build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out
import debs_lock
import steps
from debian_root import DEBIAN, BuildError, Package, passed_on

WORK = Path("/build")
TIERS = tuple(name for name, tier in steps.TIERS.items() if "tensorrt" not in tier.extras)


@dataclass(frozen=True)
class ThisRoot:
    """Commands in the root that this process is in, with build.py's own variables and nothing of the engine's."""

    def run(self, command: Sequence[str], folder: str = "/", **variables: str) -> None:
        environment = {**steps.builder_variables(), **passed_on(), **variables}
        done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise BuildError(f"{' '.join(command[:3])} failed (exit {done.returncode})", "see above")


def main(arguments: list[str]) -> int:
    task, tier, *rest = arguments
    try:
        check_tier(tier)
        if task == "install":
            install(tier)
        else:
            compare(tier, rest == ["1"])
    except BuildError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return 1
    return 0


def check_tier(tier: str) -> None:
    """Raises BuildError for a tier that an engine cannot build: it would be one without what its name says."""
    if tier not in TIERS:
        raise BuildError(
            f"TIER={tier}: an engine builds {' or '.join(TIERS)}",
            "for tensorrt, with NVIDIA's wheels: sudo containers/build.py --tier tensorrt --tensorrt FOLDER",
        )


def install(tier: str) -> None:
    """What build.py does in its builder, here."""
    os.umask(0o022)
    for left_over in [path for name in ("__pycache__", "*.so", "target") for path in steps.PROJECT.rglob(name)]:
        # of a build in the folder that these sources were copied from
        shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink(missing_ok=True)
    WORK.mkdir(exist_ok=True)
    build = steps.Build(tier, WORK, WORK, WORK, WORK, DEBIAN, sys.stderr)
    root = ThisRoot()
    steps.install_toolchain(root)
    steps.install_python_packages(build, root)
    steps.install_wheels(build, root)


def compare(tier: str, must_be_equal: bool) -> None:
    """Say which packages are not those of debs.lock: a base brings some that build.py's root does not have."""
    asked = ["dpkg-query", "--show", "--showformat", "${Package} ${Version} ${Architecture}\n"]
    listed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\n")
    versions = {name: version for name, version, _ in (line.split() for line in listed if line)}
    locked: list[Package] = debs_lock.read(debs_lock.FOLDER / "debs.lock")[steps.root_name(tier)]
    moved = [f"{package.name}: {package.version} -> {versions.get(package.name, 'absent')}"
             for package in locked if versions.get(package.name) != package.version]  # fmt: skip
    print(
        f"{len(moved)} of {len(locked)} Debian packages differ from debs.lock{': ' if moved else ''}{', '.join(moved)}"
    )
    if moved and must_be_equal:
        raise BuildError("Debian's packages are not those of debs.lock", "use a base and a mirror of that day")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
