#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build pybench's image again in an environment as different as can be, and compare every byte.

    sudo containers/verify.py [--tier full|slim]        (or: make container-verify TIER=slim)

The first image is the one in build/container, where that is of these very sources; else it is built. The second is
built from a copy of the sources elsewhere, without any cache, with a shifted clock and shuffled folders. Its host name,
time zone, locale, umask, home, current folder and number of CPUs are others, too. Where digests differ, the members
that do are named, and diffoscope explains the first of them. Exit code: 0 the same, 1 not, or a build failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out
import difference
import sources
from steps import PROJECT, TIERS

HOST_NAME = "somewhere-else"
COPIED = (*sources.ENTERING, "containers")


def main() -> int:
    asked = parse_arguments()
    if os.geteuid() != 0:
        print(f"error: building a root file system needs root\nhint: sudo {sys.argv[0]}", file=sys.stderr)
        return 1
    extra = ["--tensorrt", str(asked.tensorrt.resolve())] if asked.tensorrt else []
    first = record_of(asked.images, asked.tier)
    if first is None or first.get("inputs_sha256") != sources.inputs_sha256(PROJECT):
        print(f"building {asked.tier} as it is always built", flush=True)
        build = [sys.executable, PROJECT / "containers" / "build.py", "--tier", asked.tier, "--output", asked.images]
        if subprocess.run([*build, *extra], check=False).returncode != 0:
            return 1
        first = record_of(asked.images, asked.tier)
    with tempfile.TemporaryDirectory(prefix="pybench verify ", dir=asked.images) as folder:
        second = build_elsewhere(Path(folder), asked.tier, extra)
        if first is None or second is None:
            return 1
        return compare(asked, first, second, Path(folder) / "out")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build the image again in a hostile environment, and compare.")
    parser.add_argument("--tier", choices=sorted(TIERS), default="full", help="which one (default: full)")
    images = PROJECT / "build" / "container"
    parser.add_argument("--images", type=Path, default=images, help="folder of the first image, and of the work")
    parser.add_argument("--tensorrt", type=Path, metavar="FOLDER", help="as for build.py")
    asked = parser.parse_args()
    asked.images.mkdir(parents=True, exist_ok=True)
    asked.images = asked.images.resolve()
    return asked


def record_of(folder: Path, tier: str) -> dict[str, Any] | None:
    """What build.py wrote of an image; None where there is no whole one."""
    path = folder / f"pybench-{tier}.json"
    if not path.exists() or not (folder / f"pybench-{tier}.oci.tar").exists():
        return None
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def build_elsewhere(folder: Path, tier: str, extra: list[str]) -> dict[str, Any] | None:
    """The record of a build in the hostile environment; None where it failed."""
    checkout, home, output = folder / "a checkout", folder / "home", folder / "out"
    sources.copy(PROJECT, checkout, COPIED, random.Random(str(folder)))
    home.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if name != "UV_CACHE_DIR"},
        "HOME": str(home),
        "TZ": "Pacific/Kiritimati",  # UTC+14: another date, most of the day
        "LANG": "tr_TR.UTF-8",  # where it is installed, I is not the capital of i
        "LC_ALL": "tr_TR.UTF-8",
        "PYTHONHASHSEED": "12345",
    }
    cpu = min(os.sched_getaffinity(0))
    command = [sys.executable, "-B", str(checkout / "containers" / "build.py"), "--tier", tier, "--output", str(output),
               "--fresh", "--hostile", *extra]  # fmt: skip
    script = f"hostname {HOST_NAME} && umask 077 && exec taskset -c {cpu} {shlex.join(command)}"
    where = f"as {HOST_NAME}, in {environment['TZ']} and {environment['LANG']}, with umask 077, on one CPU"
    print(f"building {tier} again: {where}; home, sources and caches elsewhere", flush=True)
    begin = time.monotonic()
    done = subprocess.run(["unshare", "--uts", "sh", "-c", script], cwd="/", env=environment, check=False)
    print(f"{time.monotonic() - begin:7.1f} s  in all", flush=True)
    # build.py ends with 1 where the digests are not the recorded ones: the comparison here says more.
    return record_of(output, tier) if done.returncode in (0, 1) else None


def compare(asked: argparse.Namespace, first: dict[str, Any], second: dict[str, Any], output: Path) -> int:
    """Say what is equal; explain the first thing that is not, as all else follows from it."""
    differing = [name for name, digest in first["sha256"].items() if second["sha256"][name] != digest]
    for name, digest in first["sha256"].items():
        print(f"{'differs' if name in differing else 'same':<8} {name:<13} sha256:{digest}"
              + (f" and sha256:{second['sha256'][name]}" if name in differing else ""))  # fmt: skip
    if not differing:
        return 0
    if first["inputs_sha256"] != second["inputs_sha256"]:
        print("error: the sources changed while they were built\nhint: run it again", file=sys.stderr)
        return 1
    archives = [folder / f"pybench-{asked.tier}.oci.tar" for folder in (asked.images, output)]
    report = asked.images / f"difference-{asked.tier}.txt"
    difference.explain(archives[0], archives[1], report)
    print(f"error: {', '.join(differing)} of {asked.tier} cannot be built twice\nhint: {report} says where they differ",
          file=sys.stderr)  # fmt: skip
    return 1


if __name__ == "__main__":
    sys.exit(main())
