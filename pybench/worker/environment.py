# SPDX-License-Identifier: Apache-2.0
"""What a run ran on: enough to tell two machines, or two states of one, apart. Nothing personal but the host's name."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from pybench import __version__, rundir
from pybench.worker import affinity

PACKAGES = ("numpy", "torch", "onnx", "onnxruntime", "onnxruntime-gpu", "tokenizers", "pybench-tokenizer", "tensorrt")
IMAGE_DIGEST = "PYBENCH_IMAGE_DIGEST"  # set by whoever starts a container


def collect(device: str | None, measuring: Mapping[str, Any]) -> dict[str, Any]:
    """The content of environment.json. `device`: what the case ran on; `measuring`: what measured it, and found."""
    from pybench import measure

    return {
        "schema_version": rundir.SCHEMA_VERSION,
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
        "packages": {name: version for name in PACKAGES if (version := _loaded_version(name)) is not None},
        "device": device,
        "measuring": dict(measuring),
        "image_digest": os.environ.get(IMAGE_DIGEST),
    }


def cpu_model() -> str | None:
    """The processor's name as the kernel gives it."""
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None


def _loaded_version(package: str) -> str | None:
    """The version of a package that this process has imported; None for others, which did not take part."""
    if package.replace("-gpu", "").replace("-", "_") not in sys.modules:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
