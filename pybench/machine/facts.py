# SPDX-License-Identifier: Apache-2.0
"""Facts about this machine, from one probing worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pybench import __version__
from pybench.campaign.recipe import packages_of
from pybench.case import Case
from pybench.case.factors import BOARD_SETTINGS
from pybench.catalogue.packages import MODULE, PACKAGES, fact_of
from pybench.catalogue.plugins import FACT
from pybench.catalogue.runtimes import DEVICES
from pybench.errors import PybenchError, UnknownNameError
from pybench.launcher import LOCAL, Launcher
from pybench.machine.asking import ask_worker

# What a worker can be asked for: what this machine has, and each package. `cuda` comes before frameworks, which may
# change what a later import finds.
ENERGY = ("gpu", "cpu_energy", "power_rails", "node_energy")
EVERYTHING = ("machine", "cuda", *PACKAGES, "visible_gpus", *ENERGY)
PROBE_TIMEOUT_S = 180.0  # a cold import of torch from a network file system takes minutes

Facts = Mapping[str, Mapping[str, Any]]


def ask(names: Sequence[str], launcher: Launcher = LOCAL) -> Facts:
    """Asks a worker for facts by name (see `pybench.worker.probe`). `PybenchError` when it cannot answer, or is of
    another pybench than this one, as one in an image may be. UnknownNameError for what is not in `EVERYTHING`."""
    if not names:
        return {}
    unknown = next((name for name in names if name not in EVERYTHING and not name.startswith((FACT, MODULE))), None)
    if unknown is not None:
        raise UnknownNameError("fact of a machine", unknown, EVERYTHING)
    report = ask_worker(launcher, ["--probe", ",".join(names)], ", ".join(names), timeout_s=PROBE_TIMEOUT_S)
    if (version := report.get("pybench")) != __version__:
        raise PybenchError(
            f"the worker is of pybench {version or 'without a version'}, this is {__version__}",
            hint="use the image of this version, or install the version that the image contains",
        )
    facts: Facts = report["facts"]
    if not facts.get("machine", {"available": True})["available"]:
        raise PybenchError(
            f"the installation of pybench on this machine is incomplete: {facts['machine']['why']}",
            hint="run `make`, or install pybench again",
        )
    return facts


def needed_facts(cases: Iterable[Case]) -> tuple[str, ...]:
    """The facts that `unsupported` asks for these cases, in the order of `EVERYTHING`, then those of plug-ins.

    No others are asked for, and nothing else is imported to find them.
    """
    names, plugins = {"machine"}, dict[str, None]()
    for case in cases:
        plugins.update(dict.fromkeys(plugin.fact for plugin in case.plugins()))
        names.update(map(fact_of, packages_of(case)))
        told_by = None if case.runtime_row is None else case.runtime_row.gpu_fact
        names |= set() if told_by is None else {told_by}
        is_set = any(getattr(case, name) is not None for name in BOARD_SETTINGS)
        is_idle_board = case.workload_row.names_board and case.device not in DEVICES
        names |= {"gpu"} if is_set or is_idle_board else set()
    return (*(name for name in EVERYTHING if name in names), *plugins, *sorted(names.difference(EVERYTHING)))
