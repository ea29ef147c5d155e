# SPDX-License-Identifier: Apache-2.0
"""One run, or the making of one artefact: read the request, set the process up, do the work, store what was found."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.campaign import layout, storage
from pybench.campaign.directory import CampaignDirectory, read_json
from pybench.case import Case, affinity, case_from_json
from pybench.case.case import ROWS, catalogue_of_rows
from pybench.catalogue.catalogue import Catalogue
from pybench.catalogue.plugins import Plugin, refuse_other, sha256_of_package

if TYPE_CHECKING:
    from pybench.measure import SensorProfile
    from pybench.measurement.result import Result


def do(folder: Path, campaign: Path, *, spawned_ns: int, started_ns: int) -> dict[str, Any]:
    """Does what `folder` asks for. Returns the report: validity, cautions and where the time went, in seconds."""
    clock = _Parts(spawned_ns, started_ns)
    is_run = (folder / layout.CASE).exists()
    stored = read_json(folder / layout.CASE) if is_run else {}
    case = case_from_json(stored["case"]) if is_run else None
    order = {} if is_run else read_json(folder / layout.RECIPE)
    catalogue = catalogue_of_rows(order.get(ROWS, ())) if case is None else case.catalogue
    plugins = tuple(dict.fromkeys(row.plugin for row in catalogue.added() if row.plugin is not None))
    _check_unchanged(plugins)
    result = _make(order, catalogue, folder, campaign, clock) if case is None else _run(case, stored, campaign, clock)
    clock.mark("workload")
    from pybench.worker import environment, storing

    storing.store(result, folder, catalogue.metrics, case)
    storage.write_json(
        folder / layout.ENVIRONMENT, environment.collect(result.labels.get("device"), result.measuring, plugins)
    )
    clock.mark("writing")
    return {
        "outcome": "ok",
        "valid": {name: verdict.as_json() for name, verdict in result.valid.items()},
        "cautions": [caution.as_json() for caution in result.cautions],
        "parts_s": clock.parts_s(),
    }


def _run(case: Case, stored: Mapping[str, Any], campaign: Path, clock: _Parts) -> Result:
    _set_up(case)
    from pybench import workloads
    from pybench.measurement.result import RunRequest

    request = RunRequest(
        case=case,
        block=stored["block"],
        attempt=stored["attempt"],
        seed=stored["seed"],
        artefacts={role: campaign / path for role, path in stored["artefacts"].items()},
        files={factor: Path(path) for factor, path in stored["files"].items()},
        sensors=_sensors(campaign),
    )
    clock.mark("imports")
    return workloads.run(request)


def _sensors(campaign: Path) -> dict[str, SensorProfile]:
    """The campaign's sensor profiles by the GPU's UUID; of a board with several, that of the driver of now."""
    from pybench import measure

    stored = CampaignDirectory(campaign).read_sensors()
    profiles = [measure.profile_from_json(content, str(path)) for path, content in stored.items()]
    found = {profile.uuid: profile for profile in profiles if profile.uuid is not None}
    if len(found) < len(profiles):
        driver = measure.gpus().driver
        found |= {profile.uuid: profile for profile in profiles if profile.uuid in found and profile.driver == driver}
    return found


def _make(stored: Mapping[str, Any], catalogue: Catalogue, folder: Path, campaign: Path, clock: _Parts) -> Result:
    from pybench import artefacts

    clock.mark("imports")
    inputs = {role: campaign / path for role, path in stored["inputs"].items()}
    files = {factor: Path(path) for factor, path in stored["files"].items()}
    unfinished = campaign / stored["unfinished"] if "unfinished" in stored else None
    return artefacts.make(
        stored["recipe"], inputs, files, folder, catalogue.models, sensors=_sensors(campaign), unfinished=unfinished
    )


def _check_unchanged(plugins: Iterable[Plugin]) -> None:
    """Raises UsageError where a package that adds rows is no longer the one that the campaign began with."""
    for plugin in plugins:
        found = sha256_of_package(plugin.package)
        if found != plugin.sha256:
            refuse_other(plugin, "changed", found)


def _set_up(case: Case) -> None:
    """CPUs and threads, before any framework reads them at its import."""
    if case.affinity is not None:
        os.sched_setaffinity(0, affinity.refuse_absent(case.affinity, os.sched_getaffinity(0)))
    threads = case.threads or len(os.sched_getaffinity(0))
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    os.environ["RAYON_NUM_THREADS"] = str(threads)


class _Parts:
    """Wall time by part, from the moment the runner spawned this process."""

    def __init__(self, spawned_ns: int, started_ns: int) -> None:
        self._parts_ns = {"python_start": started_ns - spawned_ns}
        self._last_ns = started_ns

    def mark(self, part: str) -> None:
        """Everything since the last mark was `part`."""
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        self._parts_ns[part] = now_ns - self._last_ns
        self._last_ns = now_ns

    def parts_s(self) -> dict[str, float]:
        """Seconds. `measure` imports numpy, which has to find the number of threads set (`_set_up`)."""
        from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND

        return {part: ns / NANOSECONDS_PER_SECOND for part, ns in self._parts_ns.items()}
