# SPDX-License-Identifier: Apache-2.0
"""A small image of what tests run in containers: this Python, numpy, pybench as it is installed, tini, env, taskset.

Made in seconds from the machine's own files by the recipe's own tar and archive writers. The real image takes minutes
(tests/containers/test_image.py).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "containers"))

import canonical_tar
import oci_archive
from steps import EPOCH_S

from pybench.launcher.interpreter import WORKER_PACKAGES

PROGRAMS = ("tini", "env", "taskset", "sh", "true")
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
# No test needs them.
_LEFT_OUT = frozenset({"__pycache__", "test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip"})
_PACKAGES = frozenset({"site-packages", "dist-packages"})


def write_small_image(
    folder: Path, name: str = "small", content: canonical_tar.Members | None = None
) -> tuple[Path, str]:
    """Writes `folder`/NAME.oci.tar; returns it and its digest. `content`: of the image, if not `members()`."""
    layer, archive = folder / f"{name}.tar", folder / f"{name}.oci.tar"
    sha256 = canonical_tar.write(members() if content is None else content, layer, EPOCH_S)
    image = oci_archive.ImageConfig(
        reference=f"pybench-test:{name}",
        architecture="amd64",
        environment={"PATH": "/opt/bin", "PYTHONPATH": "/opt/site", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp"},
        entrypoint=(),
        command=("python", "--version"),
        user="1000:1000",
        working_folder="/tmp",
        labels={},
        epoch_s=EPOCH_S,
    )
    digest = oci_archive.write(layer, sha256, image, archive)
    layer.unlink()
    return archive, f"sha256:{digest}"


def stack_members(marker: str, left_out: str = "") -> canonical_tar.Members:
    """An image that can be an environment of a plan: its Python finds all that every worker needs, but for the module
    `left_out`. `marker`: the version of its `acme-marker`, which each of its processes loads."""
    found = members()
    for name in {*WORKER_PACKAGES} - {"numpy", left_out}:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        file = Path(spec.origin)
        if file.name == "__init__.py":
            found |= _tree(file.parent, f"opt/site/{name}")
        else:
            found |= canonical_tar.file(f"opt/site/{file.name}", file.read_text())
    found |= canonical_tar.file("opt/site/acme_marker.py", f"__version__ = {marker!r}\n")
    found |= canonical_tar.file("opt/site/sitecustomize.py", "import acme_marker\n")
    described = f"Metadata-Version: 2.1\nName: acme-marker\nVersion: {marker}\n"
    found |= canonical_tar.file(f"opt/site/acme_marker-{marker}.dist-info/METADATA", described)
    return canonical_tar.with_parents(found)


def members() -> canonical_tar.Members:
    """Every file of the image."""
    python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path(sys.base_prefix) / "lib" / version
    found: canonical_tar.Members = {}
    for name in ("tmp", "var/tmp"):
        found |= canonical_tar.directory(name, 0o1777)
    for name in ("proc", "sys", "dev", "run", "etc"):
        found |= canonical_tar.directory(name)
    found |= canonical_tar.file("etc/passwd", "root:x:0:0::/:/bin/sh\nsmall:x:1000:1000::/tmp:/bin/sh\n")
    found |= canonical_tar.file("etc/group", "root:x:0:\nsmall:x:1000:\n")
    for name in ("hosts", "resolv.conf"):  # engines mount over them
        found |= canonical_tar.file(f"etc/{name}", "")
    for part in library.iterdir():
        found |= _tree(part, str(part).lstrip("/"))
    pybench, numpy = _package("pybench"), _package("numpy")
    # In a clone the C++ sources lie beside the package, and the package holds its object to them.
    for package in (pybench, pybench.with_name("native"), numpy, numpy.with_name("numpy.libs")):
        found |= _tree(package, f"opt/site/{package.name}")
    binaries = [python, *(Path(str(shutil.which(name))).resolve() for name in PROGRAMS)]
    for binary in binaries:
        found |= _file(binary)
        found |= canonical_tar.symlink(f"opt/bin/{binary.name}", str(binary))
    found |= canonical_tar.symlink("opt/bin/python", str(python))
    found |= canonical_tar.symlink("opt/bin/sh", str(binaries[1 + PROGRAMS.index("sh")]))
    folders = (library / "lib-dynload", pybench, numpy / "_core")
    loaded = [path for root in folders for path in root.glob("*.so") if "tkinter" not in path.name]
    for needed in _libraries([*binaries, *loaded]):
        found |= _file(needed)
    return canonical_tar.with_parents(found)


def _package(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _tree(path: Path, prefix: str) -> canonical_tar.Members:
    """A folder, where it exists, without what no test needs; or one file."""
    if path.is_file():
        return _file(path)
    if path.name in _LEFT_OUT | _PACKAGES or not path.is_dir():
        return {}
    found = canonical_tar.from_tree(path, prefix).items()
    return {name: member for name, member in found if _LEFT_OUT.isdisjoint(Path(name.removeprefix(prefix)).parts)}


def _file(path: Path) -> canonical_tar.Members:
    """One file of this machine at its own path, whatever links lead there."""
    header = tarfile.TarInfo(str(path).lstrip("/"))
    header.size, header.mode = path.stat().st_size, 0o755
    return {header.name: canonical_tar.Member(header, lambda: path.open("rb"))}


def _libraries(binaries: Iterable[Path]) -> set[Path]:
    """What the loader opens for these binaries, by the names that it opens."""
    listed = subprocess.run(
        ["ldd", *map(str, binaries)], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
    ).stdout
    found = {Path(os.path.normpath(name)) for name in re.findall(r"=> (/\S+) \(0x", listed)}
    brought_along = {path for path in found if "numpy.libs" in path.parts}
    return found - brought_along | {LOADER}
