# SPDX-License-Identifier: Apache-2.0
"""What `pybench doctor` says: what can be measured here, and for the rest why not and what to install."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pybench.catalogue.catalogue import kind_of
from pybench.catalogue.metrics import Metric
from pybench.catalogue.packages import PACKAGES, Package
from pybench.catalogue.plugins import Plugin
from pybench.catalogue.reasons import reason_from_text
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import InputError
from pybench.machine import profiles
from pybench.machine.facts import Facts

if TYPE_CHECKING:
    from pybench.catalogue.installed import Installed

Status = Literal["yes", "no"]
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Finding:
    """One capability.

    what: its name, for people
    status: whether it is there
    detail: what was found, or why it is missing
    hint: what to do; None: nothing
    """

    what: str
    status: Status
    detail: str
    hint: str | None = None


def diagnose(facts: Facts) -> list[Finding]:
    """One finding a capability, in the order of a campaign: machine, models, engines, text, energy."""
    machine = facts["machine"]
    about = (
        f"{machine['cpu']}, CPUs {machine['cpus']}, {machine['memory_bytes'] / GIB:.0f} GiB, Python {machine['python']}"
    )
    return [
        Finding("this machine", "yes", about),
        *(_finding(facts[package.name], package) for package in PACKAGES.values()),
        _gpu_torch(facts),
        _gpu_tensorrt(facts),
        _gpu_energy(facts),
        *_boards(facts),
        _cpu_energy(facts),
        _module_energy(facts),
        _node_energy(facts),
    ]


def diagnose_packages(installed: Installed, facts: Facts) -> list[Finding]:
    """One finding for each installed package that adds rows: its rows, or why they cannot be used.

    Plans are read here, and cases run where `facts` are of, which may be an image.
    """
    usable = dict.fromkeys(row.plugin for row in installed.catalogue.added() if row.plugin is not None)
    findings = [_of_package(plugin, installed, facts[plugin.fact]) for plugin in usable]
    for error in installed.refused:
        version = "" if error.version is None else f"{error.version} "
        findings.append(Finding(f"package {error.distribution}", "no", f"{version}{error.what}", error.hint))
    return findings


def _of_package(plugin: Plugin, installed: Installed, fact: Mapping[str, Any]) -> Finding:
    what, called = f"package {plugin.distribution}", f"{plugin.distribution} {plugin.version}"
    if not fact["available"]:
        why = f"{plugin.version} is installed here, and not where cases run: {fact['why']}"
        return Finding(what, "no", why, f"build an image that contains {called}")
    if fact["sha256"] != plugin.sha256:
        why = f"{plugin.version} is installed here, and other code where cases run: {fact['version']}"
        return Finding(what, "no", why, f"build an image that contains the same {called}")
    rows = [row for row in installed.catalogue.added() if row.plugin == plugin]
    options = {option.name for row in rows if not isinstance(row, Metric) for option in row.options}
    named = [*(f"{kind_of(row)} {row.name}" for row in rows), *(f"option {name}" for name in sorted(options))]
    return Finding(what, "yes", f"{plugin.version} adds {', '.join(named)}")


_NVML = "needs an NVIDIA driver; PYBENCH_NVML_LIBRARY can name its libnvidia-ml.so.1"
_DRIVER = "on a machine with an NVIDIA GPU, install its driver (580 or later for CUDA 13)"


def _finding(fact: Mapping[str, Any], package: Package) -> Finding:
    if not fact["available"]:
        return Finding(package.gives, "no", fact["why"], package.install)
    backends = _backends(fact, package)
    found = package.found.format_map(fact) + (f", providers {', '.join(backends)}" if backends else "")
    return Finding(package.gives, "yes", found)


def _backends(fact: Mapping[str, Any], package: Package) -> list[str]:
    """Which values of the factor `provider` the installed build of a runtime has."""
    built_in = fact.get("providers", [])
    runtimes = (row for row in RUNTIMES.values() if package.name in row.needs[:1])
    names = (backend.name for row in runtimes for backend in row.backends if backend.called in built_in)
    return list(dict.fromkeys(names))


def _gpu_torch(facts: Facts) -> Finding:
    devices = facts["torch"].get("cuda_devices", [])
    if devices:
        return Finding("models on a GPU", "yes", "; ".join(f"{gpu['name']} {gpu['uuid']}" for gpu in devices))
    return Finding(
        "models on a GPU",
        "no",
        "torch sees no CUDA device: h2d, tf32 and fp16 cells will be `unsupported`",
        _DRIVER,
    )


def _gpu_tensorrt(facts: Facts) -> Finding:
    """GPUs as the CUDA driver shows them: TensorRT aborts a process that has none, so it is never asked."""
    fact = facts["cuda"]
    if fact.get("devices"):
        shown = (f"{gpu['name']} {gpu['uuid']}, compute capability {gpu['capability']}" for gpu in fact["devices"])
        return Finding("engines on a GPU", "yes", "; ".join(shown))
    why = fact.get("why", "the CUDA driver finds no GPU")
    hint = _DRIVER if facts["cuda_python"]["available"] else PACKAGES["cuda_python"].install
    return Finding("engines on a GPU", "no", f"{why}; cells of tensorrt will be `unsupported`", hint)


def _gpu_energy(facts: Facts) -> Finding:
    fact = facts["gpu"]
    if fact["available"] and fact["devices"]:
        return _measured_boards([device["uuid"] for device in fact["devices"]], fact["driver"])
    return Finding(
        "GPU energy",
        "no",
        why_no_gpu(fact),
        _NVML,
    )


def why_no_gpu(fact: Mapping[str, Any]) -> str:
    """Why NVML shows no GPU, in words. `fact`: what a worker found of GPUs."""
    if fact.get("reason"):
        return reason_from_text(fact["reason"]).words
    return str(fact.get("why", "NVML finds no GPU"))


def _boards(facts: Facts) -> list[Finding]:
    """What each board can be set to; first, what a run that was killed has left changed on it."""
    fact = facts["gpu"]
    findings = []
    for board in fact.get("devices", []):
        if board["changed"]:
            what = f"{board['name']} {board['uuid']} has settings of a run that goes on, or was killed"
            findings.append(
                Finding("GPU as it was", "no", what, f"if none goes on, as root: {'; '.join(board['changed'])}")
            )
        takes = ", ".join(f"{name} {each['takes']}" for name, each in board["ranges"].items())
        if not takes:
            what = f"{board['name']} {board['uuid']} takes none"
            findings.append(
                Finding(
                    "GPU settings",
                    "no",
                    what,
                    "leave `power_limit_w`, `sm_clock_mhz` and `memory_clock_mhz` out of plans",
                )
            )
        else:
            hint = (
                None
                if fact["may_set"]
                else "setting them needs root (CAP_SYS_ADMIN): those cells will be `unsupported`"
            )
            findings.append(
                Finding(
                    "GPU settings",
                    "yes" if fact["may_set"] else "no",
                    f"{board['name']} {board['uuid']}: {takes}",
                    hint,
                )
            )
    return findings


def _measured_boards(uuids: list[str], driver: str) -> Finding:
    without = []
    for uuid in uuids:
        try:
            known = profiles.find(uuid, driver) is not None
        except InputError:
            known = False
        without += [] if known else [uuid]
    detail = f"NVML, driver {driver}: power samples and energy counter together"
    if not without:
        return Finding("GPU energy", "yes", f"{detail}; power sensors measured")
    return Finding(
        "GPU energy",
        "yes",
        f"{detail}; the power sensor of {', '.join(without)} is not measured yet",
        "`pybench sensor` measures it in about a minute; `pybench run` does so by itself",
    )


def _cpu_energy(facts: Facts) -> Finding:
    fact = facts["cpu_energy"]
    if fact["available"]:
        return Finding("CPU energy", "yes", str(fact["source"]))
    return Finding(
        "CPU energy",
        "no",
        f"{fact['why']}; runs carry an interval estimate under its own name instead",
        "on bare metal: sysctl kernel.perf_event_paranoid=0, or read access to /sys/class/powercap",
    )


def _module_energy(facts: Facts) -> Finding:
    fact = facts["power_rails"]
    if not fact["available"]:
        return Finding("module energy", "no", str(fact["why"]), fact.get("hint"))
    further = {"inside them, never added": fact["inside"], "not of the module, not added": fact["other"]}
    notes = "".join(f"; {what}: {', '.join(labels)}" for what, labels in further.items() if labels)
    return Finding("module energy", "yes", f"{fact['device']}: rails {' + '.join(fact['total'])}{notes}")


def _node_energy(facts: Facts) -> Finding:
    fact = facts["node_energy"]
    if not fact["available"]:
        return Finding("node energy", "no", str(fact["why"]), fact.get("hint"))
    inside = f"; inside it, never added: {', '.join(fact['parts'])}" if fact["parts"] else ""
    return Finding("node energy", "yes", f"{fact['source']}{inside}")
