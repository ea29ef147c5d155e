#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build pybench's image: one root file system, packed as an OCI archive and as a SIF, the same bytes on every build.

    sudo containers/build.py [--tier full|slim|tensorrt]

The root file system is Debian's packages (debs.txt), the Python packages of uv.lock, and pybench's own C++, Rust and
Go. These are compiled at fixed paths in a second Debian root, the builder, so that this machine's compilers do not
matter. Its tar's sha256 is the image's identity; both archives derive from it without a container engine. README.md has
the rest.

It needs only Python's standard library, Debian's mmdebstrap and root. It publishes nothing.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out
import debs_lock
import digests
import hostility
import steps
import tensorrt_wheels
from debian_root import BuildError, Mirror, mirror_of_this_machine, packages_in, run
from steps import PROJECT, TIERS, Build

SEARCH_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# The Debian package that brings each program or file; podman and runc are for containers/run.
HOST_TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "apt-config": "apt",
    "unshare": "util-linux",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
    "podman": "podman",
    "runc": "runc",
}

Result = TypeVar("Result")


@dataclass(frozen=True)
class Digests:
    """What was built, in sha256."""

    rootfs: str
    oci_manifest: str
    sif: str


def main() -> int:
    """Build one tier; print each step's seconds and the digests."""
    asked = parse_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        check_machine(asked)
        with workspace(asked) as build:
            base = step(build, "Debian root", steps.make_base)
            builder = step(build, "Debian builder", steps.make_builder)
            compare_with_lock(build, base, builder, asked)
            chroot = step(build, "tools and sources", lambda build: steps.prepare_builder(build, builder))
            step(build, "Python packages", lambda build: steps.install_python_packages(build, chroot))
            step(build, "pybench and tokenizer", lambda build: steps.install_wheels(build, chroot))
            step(build, "SIF writer", lambda build: steps.build_sif_writer(build, chroot))
            rootfs = step(build, "root file system", lambda build: steps.write_rootfs(build, base))
            digest = step(build, "OCI archive", lambda build: steps.write_oci(build, rootfs))
            step(build, "squashfs", lambda build: steps.write_squashfs(build, chroot))
            sif = step(build, "SIF", lambda build: steps.write_sif(build, chroot, rootfs))
            return publish(build, Digests(rootfs, digest, sif), asked)
    except BuildError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; nothing was written", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"error: {error}\nhint: a full disk or a read-only folder? --output names another one", file=sys.stderr)
        return 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build pybench's image as an OCI archive and a SIF.")
    tiers = "slim lacks torch; tensorrt has NVIDIA's wheels from --tensorrt (default: full)"
    parser.add_argument("--tier", choices=sorted(TIERS), default="full", help=tiers)
    parser.add_argument("--output", type=Path, default=PROJECT / "build" / "container", help="folder for the images")
    parser.add_argument("--fresh", action="store_true", help="use no cache: fetch and build everything again")
    parser.add_argument("--mirror", help="Debian mirror (default: the one in this machine's apt sources)")
    parser.add_argument("--security-mirror", help="mirror of debian-security (default: likewise)")
    parser.add_argument("--locked", action="store_true", help="fail when Debian's packages differ from debs.lock")
    update = "write what Debian's packages resolve to now, and the hashes of the wheels in --tensorrt"
    parser.add_argument("--update-lock", action="store_true", help=update)
    parser.add_argument("--tensorrt", type=Path, metavar="FOLDER", help="NVIDIA's TensorRT wheels, for its tier")
    parser.add_argument("--record", action="store_true", help="write the digests of this build to digests.toml")
    hostile = "shift the builder's clock and shuffle its folders, as verify.py does"
    parser.add_argument("--hostile", action="store_true", help=hostile)
    return parser.parse_args()


def check_machine(asked: argparse.Namespace) -> None:
    """Refuse early what could only fail late; as root, install the tools that are missing."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise BuildError(f"cannot build on {sys.platform} {platform.machine()}", "the recipe is for Linux on x86_64")
    if asked.tier == "tensorrt":
        tensorrt_wheels.find(asked.tensorrt)
    missing = missing_packages()
    if os.geteuid() != 0:
        needs = f"; first: sudo apt-get install {' '.join(missing)}" if missing else ""
        raise BuildError("building a root file system needs root", f"sudo {sys.argv[0]} --tier {asked.tier}{needs}")
    if missing and shutil.which("apt-get") is None:
        raise BuildError(f"missing: {', '.join(missing)}", "install them; they are packages of Debian and Ubuntu")
    asked.output.mkdir(parents=True, exist_ok=True)
    needed, free = TIERS[asked.tier].disk_bytes, shutil.disk_usage(asked.output).free
    if free < needed:
        raise BuildError(
            f"{asked.output} has {free / 2**30:.1f} GiB free, the {asked.tier} tier needs {needed / 2**30:.0f}",
            "free some space, choose another folder with --output, or --tier slim, which needs little",
        )
    if missing:
        print(f"installing {' '.join(missing)}", flush=True)
        install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *missing]
        with (asked.output / "build.log").open("w") as log:
            run(install, log, {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "apt-get failed to install tools")


def missing_packages() -> list[str]:
    """The Debian packages without which neither building nor running works here."""
    return [
        package
        for needed, package in HOST_TOOLS.items()
        if not Path(needed).exists() and shutil.which(needed, path=SEARCH_PATH) is None
    ]


@contextmanager
def workspace(asked: argparse.Namespace) -> Iterator[Build]:
    """A folder that vanishes whatever happens, the log, and a lock against a second build at the same time."""
    output = asked.output.resolve()
    found = mirror_of_this_machine()
    mirror = Mirror(asked.mirror or found.main, asked.security_mirror or found.security)
    with (output / ".lock").open("w") as lock, (output / "build.log").open("w") as log:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError(f"another build works in {output}", "wait for it, or use another --output") from None
        for left_over in output.glob(".work-*"):  # of a build that was killed: the lock says that none is running
            shutil.rmtree(left_over)
        work = Path(tempfile.mkdtemp(prefix=".work-", dir=output))
        work.chmod(0o755)
        cache = work / "cache" if asked.fresh else output / "cache"
        shared = Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache" / "uv")
        uv_cache = cache / "uv" if asked.fresh else shared
        try:
            yield Build(asked.tier, output, work, cache, uv_cache, mirror, log, wheels_of(asked), hostility_of(asked))
        finally:
            shutil.rmtree(work, ignore_errors=True)


def wheels_of(asked: argparse.Namespace) -> tuple[Path, ...]:
    """NVIDIA's wheels for the tier that takes them: those of the lock, or those that the lock then has."""
    if asked.tier != "tensorrt":
        return ()
    lines = tensorrt_wheels.lock_lines(tensorrt_wheels.find(asked.tensorrt))
    if asked.update_lock:
        tensorrt_wheels.update_lock(lines)
    else:
        tensorrt_wheels.check(lines)
    return tuple(lines)


def hostility_of(asked: argparse.Namespace) -> hostility.Hostility:
    """As hostile as this machine can be, if that was asked for."""
    if not asked.hostile:
        return hostility.PEACE
    found, lacking = hostility.possible_here()
    for what in lacking:
        print(f"           note: {what}", flush=True)
    return found


def step(build: Build, name: str, work: Callable[[Build], Result]) -> Result:
    """Do one step and say how long it took."""
    start = time.monotonic()
    result = work(build)
    build.seconds[name] = round(time.monotonic() - start, 1)
    print(f"{build.seconds[name]:7.1f} s  {name}", flush=True)
    return result


def compare_with_lock(build: Build, base: Path, builder: Path, asked: argparse.Namespace) -> None:
    """Say which Debian packages moved since debs.lock was written, or write it anew."""
    path = debs_lock.FOLDER / "debs.lock"
    locked = debs_lock.read(path)
    resolved = {
        steps.root_name(build.tier): packages_in(Path(f"{base}.packages")),
        "builder": packages_in(Path(f"{builder}.packages")),
    }
    differences = debs_lock.compare(locked, resolved)
    if asked.update_lock:
        debs_lock.write(path, {**locked, **resolved})
        print(f"           debs.lock written: {len(differences)} changes", flush=True)
    elif differences and asked.locked:
        raise BuildError(
            f"{len(differences)} Debian packages differ from debs.lock, first: {differences[0]}",
            "take them with --update-lock, or name a mirror that still has the old ones with --mirror",
        )
    elif differences:
        build.packages_moved = True
        print(f"           note: {len(differences)} Debian packages moved since debs.lock, first: {differences[0]}; "
              "the digests will differ from published ones", flush=True)  # fmt: skip


def publish(build: Build, built: Digests, asked: argparse.Namespace) -> int:
    """Move the images into the output folder and print them; the record comes last, as the sign that all are whole."""
    record_path = build.output / f"pybench-{build.tier}.json"
    record_path.unlink(missing_ok=True)
    sizes = {}
    for name in (f"pybench-{build.tier}.oci.tar", f"pybench-{build.tier}.sif"):
        sizes[name] = (build.work / name).stat().st_size
        (build.work / name).replace(build.output / name)
        print(f"{sizes[name] / 1e6:7.0f} MB {build.output / name}")
    record = {
        "tier": build.tier,
        "inputs_sha256": build.inputs_sha256,
        "sha256": asdict(built),
        "size_bytes": sizes,
        "seconds": build.seconds,
    }
    provisional = build.work / record_path.name
    provisional.write_text(json.dumps(record, indent=2) + "\n")
    provisional.replace(record_path)
    print(f"rootfs       sha256:{built.rootfs}\nOCI manifest sha256:{built.oci_manifest}\n"
          f"SIF          sha256:{built.sif}")  # fmt: skip
    return compare_with_record(build, built, asked)


def compare_with_record(build: Build, built: Digests, asked: argparse.Namespace) -> int:
    """Say how the digests stand to those kept beside the locks, or keep these; the exit code."""
    if build.packages_moved:
        print("containers/digests.toml has digests of other Debian packages (--update-lock, --record take these)")
        return 0
    if asked.record:
        digests.write(build.tier, digests.Expected(steps.project_version(), build.inputs_sha256, **asdict(built)))
        print("the digests are written to containers/digests.toml")
        return 0
    said, as_expected = digests.compare(digests.read().get(build.tier), build.inputs_sha256, asdict(built))
    if as_expected:
        print(said)
        return 0
    print(f"error: {said}\nhint: `make container-verify TIER={build.tier}` finds what differs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
