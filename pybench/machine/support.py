# SPDX-License-Identifier: Apache-2.0
"""Whether a case can run on this machine, known before anything is started: if not, its cells are `unsupported`.

Rules state what the runtimes of this version of pybench do; facts say what is installed. Each rule raises
UnsupportedError where it is broken. Order: the most general obstacle first, so that the reason is the one to remove
first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pybench.campaign.recipe import packages_of
from pybench.case import Case, affinity
from pybench.case.data import trained_here
from pybench.case.executing import no_gpu, refuse_backend, refuse_copies, refuse_types, refuse_work
from pybench.case.factors import BOARD_SETTINGS
from pybench.case.quantising import quantiser_of
from pybench.catalogue.causes import Cause
from pybench.catalogue.packages import PACKAGES, fact_of
from pybench.catalogue.plugins import refuse_other
from pybench.catalogue.precisions import quantised_type
from pybench.catalogue.reasons import ReasonCode, reason_from_text
from pybench.catalogue.refusals import refuse_precision
from pybench.catalogue.runtimes import DEVICES, RUNTIMES
from pybench.errors import UnsupportedError
from pybench.machine.facts import Facts

SEARCHED_BY = "10"  # major version of TensorRT; modelopt 0.47.0 asks for `EXPLICIT_BATCH`, which 11 does not have


def unsupported(case: Case, facts: Facts) -> UnsupportedError | None:
    """None when the case can run here, else why not and what to do."""
    rules = (
        _plugins,
        _packages,
        _runtime,
        _training,
        _provider,
        _cpus,
        _device,
        _precision,
        _search,
        _transfer,
        _settings,
    )
    for rule in rules:
        try:
            rule(case, facts)
        except UnsupportedError as error:
            return error
    return None


def why_no_energy(facts: Facts, *, on_gpu: bool) -> str | None:
    """Why no sensor here measures the energy that a run is about: its GPU's, else the CPU's. That of a whole module or
    node counts as well, as in `measurement.doubts.judge_energy`. None: one does. `facts`: with those of `ENERGY`."""
    own, *whole = (facts[name] for name in ("gpu" if on_gpu else "cpu_energy", "power_rails", "node_energy"))
    if any(fact["available"] and fact.get("devices", True) for fact in (own, *whole)):
        return None
    return reason_from_text(own["reason"]).words if "reason" in own else str(own.get("why", "NVML finds no GPU"))


def gpus_of(case: Case, facts: Facts) -> list[str]:
    """UUIDs of the GPUs that a case will use: none, or the one it names, or the first that its runtime sees."""
    if case.device == "cpu" or not _uses_devices(case):
        return []
    uuids = [device["uuid"] for device in _gpus(case, facts)]
    return uuids[:1] if case.device in ("auto", "cuda") else [uuid for uuid in uuids if uuid == case.device]


def platform_of(case: Case, facts: Facts) -> str | None:
    """What an engine of this case is bound to: TensorRT's version and the kind of GPU.

    None: the case needs no engine, or this machine lacks TensorRT or a GPU."""
    gpus = [gpu for gpu in _gpus(case, facts) if gpu["uuid"] in gpus_of(case, facts)]
    row = case.runtime_row
    if row is None or row.opens != "engine" or not gpus:
        return None
    builder = facts[fact_of(row.needs[0])]
    return f"TensorRT {builder['version']} on {gpus[0]['name']}" if builder["available"] else None


def refuse_changed(cases: Iterable[Case], facts: Facts) -> None:
    """Raises UsageError where a package that adds rows is installed here, and is not the one that the plan was made
    with.

    Its runs would be other runs of the same cases."""
    for plugin in dict.fromkeys(plugin for case in cases for plugin in case.plugins()):
        fact = facts[plugin.fact]
        if fact["available"] and fact["sha256"] != plugin.sha256:
            refuse_other(plugin, fact["version"], fact["sha256"])


def _plugins(case: Case, facts: Facts) -> None:
    """Whether the packages are installed that add rows of the case."""
    for plugin in case.plugins():
        fact = facts[plugin.fact]
        if not fact["available"]:
            called = f"{plugin.distribution} {plugin.version}"
            raise UnsupportedError(
                f"{called}, which adds what the case names, cannot be used here ({fact['why']})",
                code=Cause.NO_PLUGIN,
                hint="install it",
            )


def _packages(case: Case, facts: Facts) -> None:
    """Whether everything is installed that runs the case and makes what it opens."""
    missing = next((name for name in packages_of(case) if not facts[fact_of(name)]["available"]), None)
    if missing is None:
        return
    what = f"{missing} cannot be used here ({facts[fact_of(missing)]['why']})"
    if missing not in PACKAGES:  # a plug-in's need, which has no code of pybench's
        raise UnsupportedError(what, code=ReasonCode.OTHER, names=(f"no_{missing}",), hint="install it")
    raise UnsupportedError(what, code=Cause.NO_PACKAGE, names=(missing,), hint=PACKAGES[missing].install)


def _runtime(case: Case, facts: Facts) -> None:
    refuse_work(case, has_gpu=bool(_gpus_allowed(case, facts)))


def _provider(case: Case, facts: Facts) -> None:
    """What the factors say of each other, and whether the installed onnxruntime has the provider."""
    row = case.runtime_row
    if row is not None:
        fact = facts[fact_of(row.needs[0])] if row.needs else {}
        refuse_backend(case, fact.get("providers", []), has_gpu=bool(_gpus_allowed(case, facts)))


def _training(case: Case, facts: Facts) -> None:
    """Whether the weights that the case asks for can be made here, with whatever GPU there is."""
    row, trained_on = case.model_row, trained_here(case)
    if row is None or trained_on is None:
        return
    gpus = facts["torch"].get("cuda_devices") or []
    if not row.trains_on_cpu and not gpus:
        raise UnsupportedError(
            f"training {case.model} on {trained_on} needs a GPU",
            code=Cause.NO_GPU,
            hint="give `checkpoint` a file of weights",
        )
    if case.trained_in is not None:
        trainer = next(each for each in RUNTIMES.values() if each.trains)
        capability = float(gpus[0]["capability"]) if gpus else None
        refuse_precision(trainer, None, case.trained_in, has_gpu=bool(gpus), capability=capability, training=True)


def _cpus(case: Case, facts: Facts) -> None:
    if case.affinity is not None:
        affinity.refuse_absent(case.affinity, affinity.parse(facts["machine"]["cpus"]))


def _device(case: Case, facts: Facts) -> None:
    if case.device in ("auto", "cpu") or not _uses_devices(case):
        return
    uuids = [device["uuid"] for device in _gpus(case, facts)]
    if not uuids:
        row = case.runtime_row
        raise no_gpu(case, on_no_machine=row is not None and row.gpu_fact is None)
    if case.device != "cuda" and case.device not in uuids:
        raise UnsupportedError(
            f"no GPU {case.device} here", code=Cause.NO_SUCH_GPU, hint=f"there are {', '.join(uuids)}"
        )


def _precision(case: Case, facts: Facts) -> None:
    row = case.runtime_row
    if row is None:
        return
    gpus, used = _gpus_allowed(case, facts), gpus_of(case, facts)
    refuse_types(
        case,
        has_gpu=bool(gpus),
        capability=next((float(gpu["capability"]) for gpu in gpus if gpu["uuid"] in used), None),
        on_cpu=next((facts[fact_of(name)].get("types") for name in row.needs), None),
    )


def _search(case: Case, facts: Facts) -> None:
    """Whether the quantiser of the case can measure engines with the TensorRT that is installed."""
    if quantised_type(case.precision) is None or quantiser_of(case).search is None:
        return
    version = facts["tensorrt"]["version"]
    if version.split(".")[0] != SEARCHED_BY:
        raise UnsupportedError(
            f"the quantiser {quantiser_of(case).name} measures with TensorRT {SEARCHED_BY}, and here is {version}",
            code=Cause.NO_SEARCH,
            hint="use quantiser: modelopt or pybench",
        )


def _transfer(case: Case, facts: Facts) -> None:
    row = case.workload_row
    if row.needs_gpu is not None and not _gpus(case, facts):
        raise UnsupportedError(f"{row.name} needs a GPU, and there is none: {row.needs_gpu}", code=Cause.NO_GPU)
    nodes = facts["machine"].get("numa_nodes", [])
    if case.numa_node is not None and case.numa_node not in nodes:
        there = ", ".join(map(str, nodes)) or "none that can be chosen"
        raise UnsupportedError(
            f"there is no NUMA node {case.numa_node} here (there are: {there})",
            code=Cause.NO_NUMA_NODE,
            hint="leave numa_node out",
        )
    refuse_copies(case, has_gpu=bool(_gpus_allowed(case, facts)))


def _settings(case: Case, facts: Facts) -> None:
    """Whether the board takes the power limit and clocks of the case, and takes them from this user."""
    wanted = {name: value for name in BOARD_SETTINGS if (value := getattr(case, name)) is not None}
    uuid = _board_uuid(case, facts)
    if uuid is None and wanted:
        raise UnsupportedError(
            f"{', '.join(wanted)} sets a GPU's board, and this runs on the CPU here", code=Cause.NO_GPU
        )
    if uuid is None or (not wanted and not case.workload_row.names_board):
        return
    fact = facts["gpu"]
    board: dict[str, Any] | None = next((each for each in fact.get("devices", []) if each["uuid"] == uuid), None)
    if board is None:
        known = ", ".join(each["uuid"] for each in fact.get("devices", [])) or fact.get("why") or "none"
        raise UnsupportedError(f"NVML finds no board {uuid} here (it finds: {known})", code=Cause.NO_SUCH_BOARD)
    if wanted and not fact["may_set"]:
        raise UnsupportedError(
            f"setting {', '.join(wanted)} needs root (CAP_SYS_ADMIN), which this process has not",
            code=Cause.NO_PERMISSION,
            hint="run pybench as root, in a container with --cap-add SYS_ADMIN, or leave the factor out",
        )
    for name, value in wanted.items():
        takes = board["ranges"].get(name)
        if takes is None and name == "power_limit_w":
            raise UnsupportedError(
                f"the power limit of {board['name']} {uuid} cannot be set: it has no range",
                code=Cause.SETTING_UNSUPPORTED,
            )
        if takes is None:
            continue  # a board may lock clocks without listing them: the run will tell
        limits, clocks = takes.get("range", (value, value)), takes.get("clocks", [value])
        if not limits[0] <= value <= limits[1] or value not in clocks:
            raise UnsupportedError(
                f"{name} {value}: {board['name']} {uuid} takes {takes['takes']}", code=Cause.SETTING_OUT_OF_RANGE
            )


def _board_uuid(case: Case, facts: Facts) -> str | None:
    """The board that the case would run on: the one named, or the first that its engine sees; None: it runs on none."""
    if case.workload_row.names_board:
        return None if case.device in DEVICES else case.device
    gpus = _gpus_allowed(case, facts)
    if not gpus or not _uses_devices(case):
        return None
    return case.device if case.device not in ("auto", "cuda") else gpus[0]["uuid"]


def _gpus_allowed(case: Case, facts: Facts) -> list[dict[str, str]]:
    """GPUs that the case's engine can use, and the case lets it."""
    return [] if case.device == "cpu" else _gpus(case, facts)


def _uses_devices(case: Case) -> bool:
    """Whether something in the case opens a device: its runtime, or the workload by itself."""
    return case.runtime is not None or case.workload_row.needs_gpu is not None


def _gpus(case: Case, facts: Facts) -> list[dict[str, str]]:
    """GPUs that the case's engine can use."""
    row = case.runtime_row
    backend = None if row is None else row.backend(case.provider, has_gpu=True)
    if row is not None and backend is not None:
        providers = facts[fact_of(row.needs[0])].get("providers", [])
        if not backend.needs_gpu or backend.called not in providers:
            return []
    told_by = "torch" if row is None else row.gpu_fact
    fact = {} if told_by is None else facts.get(told_by, {})
    devices: list[dict[str, str]] = fact.get("devices", fact.get("cuda_devices", []))
    return devices
