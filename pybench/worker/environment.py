# SPDX-License-Identifier: Apache-2.0
"""What a run ran on: enough to tell two machines, or two states of one, apart. Nothing personal but the host's name."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from pybench import __version__
from pybench.campaign import layout
from pybench.case import affinity
from pybench.catalogue.packages import PACKAGES
from pybench.catalogue.plugins import Plugin

# Module -> the distributions that it may come from, where these have other names than the module.
# Without a distribution the module tells its version. The first ones are no packages that a case asks for.
LOADED = {
    "ml_dtypes": ("ml-dtypes",),
    "google.protobuf": ("protobuf",),
    "PIL": ("pillow",),
    "yaml": ("PyYAML",),
    "cv2": ("opencv-python", "opencv-python-headless"),
    "sklearn": ("scikit-learn",),
    **{row.loaded_as: row.distributions for row in PACKAGES.values() if row.loaded_as is not None},
}
IMAGE_DIGEST = "PYBENCH_IMAGE_DIGEST"  # set by whoever starts a container, as is the next
CONTAINER_ENGINE = "PYBENCH_CONTAINER_ENGINE"


def collect(device: str | None, measuring: Mapping[str, Any], plugins: Iterable[Plugin] = ()) -> dict[str, Any]:
    """The content of environment.json. `device`: what the case ran on; `measuring`: what measured it, and found;
    `plugins`: the packages that add rows of the case."""
    from pybench import measure

    return {
        "schema_version": layout.SCHEMA_VERSION,
        "host": socket.gethostname(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cpus_allowed": affinity.render(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": os.getloadavg(),
        "cpu_governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "python": platform.python_version(),
        "pybench": __version__,
        "native_build_id": measure.NATIVE_BUILD_ID,
        "packages": {**loaded_packages(plugins), **{each.distribution: _told(each) for each in plugins}},
        "device": device,
        "measuring": dict(measuring),
        "image_digest": os.environ.get(IMAGE_DIGEST),
        "container_engine": os.environ.get(CONTAINER_ENGINE),
    }


def cpu_model() -> str | None:
    """The processor's name as the kernel gives it."""
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None


def loaded_packages(plugins: Iterable[Plugin] = ()) -> dict[str, str]:
    """Versions of what this process has imported, by distribution; what it has not imported did not take part.
    `plugins` are told by `_told`."""
    found: dict[str, str] = {}
    for module in sorted({*LOADED, *_top_level_modules()} & sys.modules.keys() - {each.package for each in plugins}):
        distributions = LOADED.get(module, (module,))
        versions = {name: version for name in distributions if (version := _installed(name)) is not None}
        own = getattr(sys.modules[module], "__version__", None)
        found |= versions or ({module: str(own)} if own is not None else {})
    return found


def _told(plugin: Plugin) -> str:
    """The version with the digest of the code: who writes a package changes it more often than its version."""
    return f"{plugin.version} (code {plugin.sha256[:12]})"


def _top_level_modules() -> set[str]:
    """What was imported from outside of Python's own library; pybench has a fact of its own."""
    named = {name for name in list(sys.modules) if "." not in name and not name.startswith("_")}
    return named - sys.stdlib_module_names - {"pybench", "sitecustomize", "usercustomize"}


def _installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
