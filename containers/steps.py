# SPDX-License-Identifier: Apache-2.0
"""The steps of a build, each a function from the build to what it made.

Debian roots come first, then pybench's own parts compiled in the builder at fixed paths, then the one root file
system, then the two archives made of it. build.py calls the steps in order and keeps their results.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

import canonical_tar
import debs_lock
import image_content
import oci_archive
import sources
import tensorrt_wheels
from debian_root import CERTIFICATES, SUITE, BuildError, Chroot, Mirror, bootstrap
from hostility import PEACE, Hostility

PROJECT = Path(__file__).resolve().parent.parent
# No file in the image is younger. Fixed, not the commit's time: a commit that changes nothing in the image must not
# change its digest.
EPOCH_S = 1767225600  # 2026-01-01T00:00:00Z
_PYTHON = "/usr/bin/python3"
_GO_BUILD = ("build", "-trimpath", "-buildvcs=false", "-ldflags=-buildid=")


@dataclass(frozen=True)
class Tier:
    """One variant of the image: which extras of pybench, which sections of debs.txt, what a build needs."""

    extras: tuple[str, ...]
    sections: tuple[str, ...]
    disk_bytes: int


TIERS = {
    "slim": Tier(("onnx", "digits", "hf"), ("image",), 6 << 30),
    "full": Tier(("onnx", "digits", "hf", "torch"), ("image", "image-full"), 20 << 30),
    # A recipe and no more: NVIDIA's licence lets nobody publish what it makes.
    "tensorrt": Tier(("onnx", "digits", "hf", "torch", "tensorrt"), ("image", "image-full"), 32 << 30),
}


@dataclass
class Build:
    """One build: what was asked, and where it works."""

    tier: str
    output: Path
    work: Path
    cache: Path
    uv_cache: Path
    mirror: Mirror
    log: IO[str]
    tensorrt: tuple[Path, ...] = ()
    hostility: Hostility = PEACE
    packages_moved: bool = False  # Debian's are not those of debs.lock
    inputs_sha256: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def rootfs(self) -> Path:
        return self.work / "rootfs.tar"

    @property
    def squashfs(self) -> Path:
        return self.work / "rootfs.squashfs"


def make_base(build: Build) -> Path:
    """The image's Debian packages as a tar, from the cache when neither the names nor the archive changed."""
    names = [name for section in TIERS[build.tier].sections for name in debs_lock.names_in(section)]
    return _cached_root(build, root_name(build.tier), names, "essential", ".tar")


def root_name(tier: str) -> str:
    """The section of debs.lock that a tier's Debian packages are in: tiers with the same packages share it."""
    same = [name for name, other in TIERS.items() if other.sections == TIERS[tier].sections]
    return f"image.{min(same)}"


def make_builder(build: Build) -> Path:
    """The folder with the compilers that build the image's own parts."""
    return _cached_root(build, "builder", debs_lock.names_in("builder"), "apt", "")


def _cached_root(build: Build, name: str, packages: list[str], variant: str, suffix: str) -> Path:
    key = hashlib.sha256(repr((_archive_state(build.mirror), sorted(packages), variant, EPOCH_S)).encode()).hexdigest()
    root = build.cache / f"{name}-{key[:16]}{suffix}"
    if root.exists():
        return root
    build.cache.mkdir(parents=True, exist_ok=True)
    for outdated in build.cache.glob(f"{name}-*"):
        _remove(outdated)
    provisional = build.work / f"{name}{suffix}"
    bootstrap(packages, variant, provisional, build.mirror, EPOCH_S, build.log)
    Path(f"{provisional}.packages").replace(f"{root}.packages")
    return provisional.rename(root)


def _archive_state(mirror: Mirror) -> str:
    """A digest of the archive's signed indexes: while it stays the same, so does what every name resolves to."""
    state = hashlib.sha256()
    for address in (f"{mirror.main}/dists/{SUITE}", f"{mirror.main}/dists/{SUITE}-updates",
                    f"{mirror.security}/dists/{SUITE}-security"):  # fmt: skip
        try:
            with urllib.request.urlopen(f"{address}/InRelease", timeout=60) as index:
                state.update(index.read())
        except (urllib.error.URLError, TimeoutError) as error:
            raise BuildError(f"cannot read {address}: {error}", "choose a mirror that answers with --mirror") from None
    return state.hexdigest()


def prepare_builder(build: Build, root: Path) -> Chroot:
    """Copy the sources to their fixed path in the builder, and install uv and Go at the versions of the lock."""
    build.inputs_sha256 = sources.inputs_sha256(PROJECT)
    sources.copy(PROJECT, build.work / "src")
    mounts = {
        build.work / "src": "/src",
        build.work / "opt": "/opt",
        build.work / "toolchain": "/toolchain",
        build.uv_cache: "/cache/uv",
        build.cache / "cargo": "/cache/cargo",
        build.cache / "go": "/cache/go",
        build.work: "/build",
    }
    variables = {**builder_variables(), **build.hostility.variables(build.work / "toolchain", "/toolchain")}
    hostile = build.hostility
    chroot = Chroot(root, mounts, variables, build.log, hostile.shuffled, hostile.wrapper, hostile.told)
    for command in hostile.first("/toolchain"):
        chroot.run(command)
    install_toolchain(chroot)
    return chroot


class Root(Protocol):
    """Where the steps below run their commands: the builder, or the root that an engine builds in (inside.py)."""

    def run(self, command: Sequence[str], folder: str = "/", **variables: str) -> None: ...


def install_toolchain(root: Root) -> None:
    """uv and Go, at the versions of the lock."""
    uv = toolchain()["uv"]
    root.run([_PYTHON, "-m", "venv", "/toolchain/uv"])
    root.run(["/toolchain/uv/bin/pip", "install", "--quiet", "--no-cache-dir", f"uv=={uv}"])
    sync = ["uv", "sync", "--locked", "--only-group", "go", "--no-build", "--no-install-workspace"]
    root.run(sync, "/src", UV_PROJECT_ENVIRONMENT="/toolchain/go")


def builder_variables() -> dict[str, str]:
    """All that a command in the builder sees of the outside, so that neither locale nor home can leak in."""
    return {
        "PATH": "/toolchain/uv/bin:/toolchain/go/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": str(EPOCH_S),
        "SSL_CERT_FILE": CERTIFICATES,  # not the list that uv brings along: a site may have its own authority
        "PYTHONHASHSEED": "0",  # the order of sets is written into bytecode
        "UV_CACHE_DIR": "/cache/uv",
        "UV_HTTP_TIMEOUT": "300",
        "UV_LINK_MODE": "copy",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON": _PYTHON,
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_INSTALLER_METADATA": "1",  # it holds times and paths
        "UV_COMPILE_BYTECODE": "1",
        "PYC_INVALIDATION_MODE": "UNCHECKED_HASH",  # the default writes each source's time into its bytecode
        "UV_CONCURRENT_INSTALLS": "1",  # parallel compilation can reorder marshalled constants (cpython issue 129724)
        "CFLAGS": "-ffile-prefix-map=/src=. -Wdate-time",
        "CXXFLAGS": "-ffile-prefix-map=/src=. -Wdate-time",
        "CARGO_HOME": "/cache/cargo",
        "MATURIN_NO_INSTALL_RUST": "1",
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOPATH": "/cache/go",
        "GOCACHE": "/cache/go/build",
        "GOFLAGS": "-mod=readonly -modcacherw",
    }


def install_python_packages(build: Build, root: Root) -> None:
    """Install what uv.lock names, by hash and as wheels only, into the environment at its final path."""
    extras = [word for extra in TIERS[build.tier].extras for word in ("--extra", extra)]
    sync = ["uv", "sync", "--locked", "--no-default-groups", "--no-install-workspace", "--no-build", *extras]
    root.run(sync, "/src", UV_PROJECT_ENVIRONMENT=f"{image_content.PREFIX}/.venv")
    if build.tensorrt:
        _install_tensorrt(build, root)


def _install_tensorrt(build: Build, root: Root) -> None:
    """uv holds each wheel to its hash in tensorrt.lock, and fetches none."""
    (build.work / "tensorrt").mkdir()
    for wheel in build.tensorrt:
        shutil.copyfile(wheel, build.work / "tensorrt" / wheel.name)
    shutil.copyfile(tensorrt_wheels.LOCK, build.work / "tensorrt.lock")
    install = ["uv", "pip", "install", "--no-cache", "--no-deps", "--no-index", "--find-links", "/build/tensorrt",
               "--require-hashes", "--requirement", "/build/tensorrt.lock"]  # fmt: skip
    root.run(install, "/src", VIRTUAL_ENV=f"{image_content.PREFIX}/.venv", UV_PYTHON="")
    shutil.rmtree(build.work / "tensorrt")


def install_wheels(build: Build, root: Root) -> None:
    """Compile pybench, its tokenizer and its orchestrator into wheels at a fixed path, and install them."""
    root.run(["uv", "build", "--wheel", "--all-packages", "--out-dir", "/build/wheels"], "/src")
    wheels = [f"/build/wheels/{wheel.name}" for wheel in sorted((build.work / "wheels").glob("*.whl"))]
    # No cache: it knows a wheel by its path and time, which an older build of other sources shares.
    install = ["uv", "pip", "install", "--no-cache", "--no-deps", "--no-index", *wheels]
    root.run(install, "/src", VIRTUAL_ENV=f"{image_content.PREFIX}/.venv", UV_PYTHON="")


def build_sif_writer(build: Build, chroot: Chroot) -> None:
    """Build the SIF writer into the work folder."""
    chroot.run(["go", *_GO_BUILD, "-o", "/build/sif", "."], "/src/containers/sif")


def write_rootfs(build: Build, base: Path) -> str:
    """Merge Debian's files, ours and the start scripts into one tar; return its sha256, the image's identity."""
    shutil.copytree(build.work / "src" / "plans", build.work / "opt" / "pybench" / "plans")
    with tarfile.open(base) as archive:
        members = canonical_tar.from_tar(archive, image_content.keep)
        passwd, group = (canonical_tar.text_of(members, f"etc/{name}") for name in ("passwd", "group"))
        members |= canonical_tar.from_tree(build.work / "opt", "opt")
        members |= image_content.own_files(passwd, group, build.tier)
        sha256 = canonical_tar.write(members, build.rootfs, EPOCH_S)
    shutil.rmtree(build.work / "opt" / "pybench")  # gigabytes in the full tier; the tar now holds it
    return sha256


def write_oci(build: Build, rootfs_sha256: str) -> str:
    """Write the OCI archive; return its manifest's digest."""
    image = oci_archive.ImageConfig(
        reference=f"pybench:{build.tier}",
        architecture="amd64",
        environment=image_content.ENVIRONMENT,
        entrypoint=image_content.ENTRYPOINT,
        command=("--help",),
        user=f"{image_content.USER_ID}:{image_content.USER_ID}",
        working_folder="/tmp",
        labels=image_content.labels(build.tier),
        epoch_s=EPOCH_S,
    )
    return oci_archive.write(build.rootfs, rootfs_sha256, image, build.work / f"pybench-{build.tier}.oci.tar")


def write_squashfs(build: Build, chroot: Chroot) -> None:
    """Pack the tar with the builder's squashfs-tools, whose version decides the bytes (4.5 and 4.6 differ)."""
    # gzip is what every site's kernel and squashfuse can read. Level 4 packs 4 % worse than the default 9, in a fifth
    # of the time; sqfstar 4.5 cannot be told a level. Without -root-mode the top folder would be 0777.
    options = "-tar -quiet -no-progress -exit-on-error -comp gzip -Xcompression-level 4 -root-uid 0 -root-gid 0"
    pack = f"mksquashfs - /build/{build.squashfs.name} {options} -root-mode 0755 < /build/{build.rootfs.name}"
    chroot.run(["sh", "-c", pack])
    build.rootfs.unlink()  # the OCI archive holds it


def write_sif(build: Build, chroot: Chroot, rootfs_sha256: str) -> str:
    """Wrap the squashfs into a SIF with its identity and time fixed; return the file's sha256."""
    (build.work / "inspect.json").write_text(image_content.inspect_metadata(build.tier))
    target = build.work / f"pybench-{build.tier}.sif"
    chroot.run(
        ["/build/sif", "-squashfs", f"/build/{build.squashfs.name}", "-metadata", "/build/inspect.json",
         "-identity", f"sha256:{rootfs_sha256}", "-epoch", str(EPOCH_S), "-output", f"/build/{target.name}"]
    )  # fmt: skip
    return canonical_tar.sha256_of(target)


def project_version() -> str:
    """pybench's version, as pyproject.toml has it."""
    version: str = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    return version


def toolchain() -> dict[str, str]:
    """The tool versions that pyproject.toml names for the whole project."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    versions: dict[str, str] = settings["tool"]["pybench"]["toolchain"]
    return versions


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
