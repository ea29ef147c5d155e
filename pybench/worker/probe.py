# SPDX-License-Identifier: Apache-2.0
"""What this machine can do, asked in a process of its own: a framework that crashes at import takes nothing with it.

Answers facts, not judgements: `pybench.machine` judges.
"""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from pybench.case import affinity
from pybench.catalogue.causes import Cause
from pybench.catalogue.packages import MODULE, PACKAGES, Package
from pybench.catalogue.plugins import FACT, sha256_of_package
from pybench.catalogue.zoo import LIBRARIES
from pybench.errors import PybenchError, UnsupportedError, in_short
from pybench.runtimes.host_memory import numa_nodes
from pybench.worker import environment


def probe(names: Sequence[str]) -> dict[str, Any]:
    """Facts by name: those of `_PROBES`, of packages that add rows (`Plugin.fact`), and of modules that these need.

    Each is a dictionary with `available` and, where it is not, `why` and, where an error has one, `hint`.
    """
    return {name: _asked(_question(name)) for name in names}


def _question(name: str) -> Callable[[], dict[str, Any]]:
    if name.startswith(FACT):
        return partial(_plugin, name)
    return partial(_module, name.removeprefix(MODULE)) if name.startswith(MODULE) else _PROBES[name]


def _asked(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"available": True, **ask()}
    except PybenchError as error:
        return {"available": False, "why": error.message, **({} if error.hint is None else {"hint": error.hint})}
    except metadata.PackageNotFoundError:
        return {"available": False, "why": "it is not installed"}
    except Exception as error:  # a broken installation can raise anything at import: that is the answer
        return {"available": False, "why": f"{type(error).__name__}: {in_short(error, 300)}"}


def _machine() -> dict[str, Any]:
    from pybench import measure

    return {
        "native_build_id": measure.NATIVE_BUILD_ID,
        "cpu": environment.cpu_model(),
        "cpus": affinity.render(os.sched_getaffinity(0)),
        "cpu_count": len(os.sched_getaffinity(0)),
        "numa_nodes": sorted(numa_nodes()),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def _cuda() -> dict[str, Any]:
    """GPUs as the CUDA driver shows them to this process, in its order."""
    from pybench.runtimes import cuda

    return {"devices": cuda.devices()}


def _visible_gpus() -> dict[str, Any]:
    """UUIDs of what CUDA shows to this process; unlike `cuda` it needs no package. None without a driver, too."""
    from pybench import measure

    return {"uuids": list(measure.visible_gpus())}


def _tensorrt() -> dict[str, Any]:
    from pybench.runtimes.tensorrt import library

    return library.installed()


def _modelopt() -> dict[str, Any]:
    """It is never in this environment, as its pins clash: uv makes one for it when a plan first asks."""
    from pybench.precision.modelopt import COMPLETE, folder_of_environment

    folder = folder_of_environment()
    if (folder / COMPLETE).exists():
        return {"how": f"its environment is in {folder}"}
    uv = shutil.which("uv")
    if uv is None:
        raise UnsupportedError(
            "modelopt needs an environment of its own, and there is no uv to make it", code=Cause.NO_UV
        )
    return {"how": f"{uv} makes its environment at first use"}


def _torch() -> dict[str, Any]:
    import torch

    devices = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        properties = torch.cuda.get_device_properties(index)
        devices.append(
            {
                "name": properties.name,
                "uuid": f"GPU-{properties.uuid}",
                "capability": f"{properties.major}.{properties.minor}",
                "memory_bytes": properties.total_memory,
            }
        )
    return {"version": torch.__version__, "cuda_build": torch.version.cuda, "cuda_devices": devices}


def _onnxruntime() -> dict[str, Any]:
    import onnxruntime

    return {"version": onnxruntime.__version__, "providers": onnxruntime.get_available_providers()}


def _openvino() -> dict[str, Any]:
    from pybench.runtimes import openvino

    return openvino.installed()


def _onnxruntime_library() -> dict[str, Any]:
    from pybench.runtimes.native import find_library

    return {"path": str(find_library())}


def _package(row: Package) -> dict[str, Any]:
    version = metadata.version(row.distributions[0])  # first, because its error says plainly what is missing
    importlib.import_module(row.module or row.name)
    return {"version": version}


def _module(name: str) -> dict[str, Any]:
    """A module that only a plug-in needs. It need not come from a distribution."""
    module = importlib.import_module(name)
    distributions = metadata.packages_distributions().get(name.partition(".")[0], ())
    version = metadata.version(distributions[0]) if distributions else getattr(module, "__version__", None)
    return {"version": None if version is None else str(version)}


def _plugin(fact: str) -> dict[str, Any]:
    """A package that adds rows. It is not imported: which of its modules a case needs, its rows say."""
    distribution, _, package = fact.removeprefix(FACT).partition(":")
    return {"version": metadata.version(distribution), "sha256": sha256_of_package(package)}


def _distribution(name: str) -> dict[str, Any]:
    """A library of models: only the making of artefacts imports it."""
    return {"version": metadata.version(name)}


def _compiler() -> dict[str, Any]:
    """What torch.compile builds with: a C++ compiler (Triton takes the C one beside it) and Python's headers."""
    name = os.environ.get("CXX", "g++")
    compiler, headers = shutil.which(name), Path(sysconfig.get_paths()["include"]) / "Python.h"
    if compiler is None:
        raise FileNotFoundError(f"no compiler {name} on PATH")
    if not headers.is_file():
        raise FileNotFoundError(f"{headers} does not exist")
    return {"path": compiler}


def _go_rust() -> dict[str, Any]:
    from pybench.preprocess.program import find_orchestrator

    return {"binary": str(find_orchestrator())}


def _gpu() -> dict[str, Any]:
    from pybench import measure

    devices, boards = measure.gpus(), measure.board_facts()
    return {
        "driver": devices.driver,
        "reason": devices.reason,
        "may_set": measure.may_set(),
        "devices": [{"uuid": gpu.uuid, "name": gpu.name, **boards[gpu.uuid]} for gpu in devices.gpus],
    }


def _cpu_energy() -> dict[str, Any]:
    from pybench import measure

    return measure.cpu_energy_source()


def _power_rails() -> dict[str, Any]:
    from pybench import measure

    return measure.module_energy_source()


def _node_energy() -> dict[str, Any]:
    from pybench import measure

    return measure.node_energy_source()


_PROBES: dict[str, Callable[[], dict[str, Any]]] = {
    "machine": _machine,
    "cuda": _cuda,
    "torch": _torch,
    "compiler": _compiler,
    "tensorrt": _tensorrt,
    "onnxruntime": _onnxruntime,
    "onnxruntime_library": _onnxruntime_library,
    "openvino": _openvino,
    "modelopt": _modelopt,
    "digits": lambda: {"version": metadata.version("scikit-learn")},
    **{row.name: partial(_package, row) for row in PACKAGES.values() if row.module is not None},
    **{row.package: partial(_distribution, row.package) for row in LIBRARIES.values()},
    "go_rust": _go_rust,
    "gpu": _gpu,
    "visible_gpus": _visible_gpus,
    "cpu_energy": _cpu_energy,
    "power_rails": _power_rails,
    "node_energy": _node_energy,
}
