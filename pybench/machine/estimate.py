# SPDX-License-Identifier: Apache-2.0
"""How long a campaign may take and how much it may write, before anything has run: for `--dry-run`.

Nominal: operations of the model over a nominal rate, plus start-up times; wrong by a factor of three either way. Once
a case has run in a campaign, its own mean time is used instead, and that is good. Where nobody has counted the
operations of a model, nothing is assumed: the time of its runs is unknown, and counted as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pybench.campaign.recipe import Recipe
from pybench.case import Case
from pybench.case.factors.running import COLD
from pybench.case.yields import is_profiled
from pybench.catalogue.runtimes import RUNTIMES
from pybench.machine.facts import Facts

CPU_RATE = 25e9  # multiply-adds a second and core in FP32: one AVX2 core at 3 GHz at half its peak
GPU_RATE = 10e12
EPOCH_IMAGES = 10_000  # of a training to an accuracy, where nothing has run yet
START_S = 0.3  # Python and imports of a run that opens no model
ARTEFACT_S = 12.0  # an export, a conversion, a calibration; what a runtime builds itself its row says
# What a runtime builds of a model beforehand, by kind of artefact: its row says how long that takes.
BUILDING_S: dict[str, float] = {row.opens: row.making_s for row in RUNTIMES.values() if row.making_s is not None}
PROFILED_PASSES = 11  # of a run that ends with a profile: onnxruntime's, and TensorRT has at most 20
PROFILED_AT_MOST_S = 2.0  # after which onnxruntime begins no further pass
ITERATION_BYTES = 34  # a row of iterations.csv of a replayed graph; 12 where only the host times
RUN_BYTES = 12_000  # everything else of a run


@dataclass(frozen=True, slots=True)
class CampaignEstimate:
    """Seconds and bytes of all runs together.

    seconds: without the runs of `unknown` cases
    measured: how many cases have a time of their own behind them
    unknown: how many cases have no time, because the operations of their model are not known
    """

    seconds: float
    bytes: int
    measured: int
    unknown: int


def estimate(
    runs: Mapping[Case, int],
    artefacts: Sequence[Recipe],
    facts_in: Callable[[str | None], Facts],
    known_s: Mapping[str, float],
    counted: Mapping[str, float],
) -> CampaignEstimate:
    """How long these runs take, and how much they write.

    runs: of each case
    artefacts: those that are still to be made
    facts_in: what was told in an environment
    known_s: case id -> mean seconds of its runs so far
    counted: case id -> multiply-adds of a sample of its file, where they are counted
    """
    run_s = {
        case: known_s.get(case.id) or nominal_s(case, facts_in(case.environment), counted.get(case.id)) for case in runs
    }
    seconds = sum((run_s[case] or 0.0) * count for case, count in runs.items())
    seconds += sum(BUILDING_S.get(recipe.kind, ARTEFACT_S) for recipe in artefacts)
    size = sum((RUN_BYTES + ITERATION_BYTES * case.iterations) * count for case, count in runs.items())
    return CampaignEstimate(seconds, size, sum(case.id in known_s for case in runs), list(run_s.values()).count(None))


def nominal_s(case: Case, facts: Facts, counted: float | None = None) -> float | None:
    """Nominal seconds of one run; None: the operations of its model are not known. `counted`: as in `estimate`, of
    this case."""
    multiply_adds = _multiply_adds(case, counted)
    if multiply_adds is None:
        return None
    on_gpu = bool(facts.get("torch", {}).get("cuda_devices")) and case.device != "cpu"
    cores = case.threads or facts.get("machine", {}).get("cpu_count", 1)
    rate = GPU_RATE if on_gpu else CPU_RATE * cores
    passes = 3 if case.workload_row.trains else 1  # forward, and backward at twice its cost
    iterations, energy_s = case.warmup_iterations + case.iterations, case.energy_window_s
    if case.workload_row.fits:  # at most; a part of the cost is judging after each epoch
        iterations = case.epochs_max * -(-EPOCH_IMAGES // case.batch)
    if case.workload_row.generates:  # prefill and decode have windows of their own
        iterations, energy_s = iterations + (0 if energy_s > 0 else case.iterations), 3 * energy_s
    if case.cache == COLD:  # what empties the cache has a window of its own
        energy_s *= 2
    pass_s = case.batch * multiply_adds * passes / rate
    return start_s(case, on_gpu) + iterations * pass_s + energy_s + _profile_s(case, pass_s)


def _profile_s(case: Case, pass_s: float) -> float:
    """Nominal seconds of the profile at the end of a run: two passes at least, however long they take."""
    if not is_profiled(case):
        return 0.0
    return max(2 * pass_s, min(PROFILED_PASSES * pass_s, PROFILED_AT_MOST_S))


def start_s(case: Case, on_gpu: bool) -> float:
    """Nominal seconds until a first iteration may be timed: Python, imports, opening and compiling."""
    row = case.runtime_row
    if row is None:
        return START_S
    backend = row.backend(case.provider, on_gpu)
    return row.start_s if backend is None or backend.start_s is None else backend.start_s


def _multiply_adds(case: Case, counted: float | None) -> float | None:
    """Of one sample of the case; None: not known."""
    row = case.model_row
    if row is None:
        return counted if case.model else 0.0
    added = case.new_tokens if case.workload_row.generates else 0
    return row.multiply_adds * (case.seq_len + added if row.takes_ids else 1)
