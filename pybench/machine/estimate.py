# SPDX-License-Identifier: Apache-2.0
"""How long a campaign may take and how much it may write, before anything has run: for `--dry-run`.

Nominal: operations of the model over a nominal rate, plus start-up times; wrong by a factor of three either way. Once
a case has run in a campaign, its own mean time is used instead, and that is good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pybench.case import Case, runs_of
from pybench.factors import TOKEN_MODELS
from pybench.machine.facts import Facts

# Multiply-adds of one sample (one token for models of ids), from the models' shapes.
MULTIPLY_ADDS = {
    "resnet50": 4.1e9,
    "vgg16": 15.5e9,
    "vgg16-cifar10": 0.31e9,
    "mobilenet-v1": 0.57e9,
    "mobilenet-v2": 0.30e9,
    "digits-cnn": 0.6e6,
    "tinylm-small": 6e6,
    "tinylm-large": 40e6,
    "distilbert": 43e6,
    "unet3d": 244e9,
    "mlp": 85e3,
}
UNKNOWN_MULTIPLY_ADDS = 2e9
CPU_RATE = 25e9  # multiply-adds a second and core in FP32: one AVX2 core at 3 GHz at half its peak
GPU_RATE = 10e12
START_S = {"onnxruntime": 0.6, "torch": 3.5, "torch-graph": 5.0, None: 0.3}  # Python, imports, opening the model
ARTEFACT_S = 12.0
ITERATION_BYTES = 30  # a row of iterations.csv
RUN_BYTES = 12_000  # everything else of a run


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds and bytes of all runs together; `measured`: how many cases have a time of their own behind them."""

    seconds: float
    bytes: int
    measured: int


def estimate(
    cases: Sequence[Case], repetitions: int, artefacts: int, facts: Facts, known_s: Mapping[str, float]
) -> Estimate:
    """`known_s`: case id -> mean seconds of its runs so far; `artefacts`: how many are still to be made."""
    runs = [(case, runs_of(case, repetitions)) for case in cases]
    seconds = sum(known_s.get(case.id, nominal_s(case, facts)) * count for case, count in runs) + artefacts * ARTEFACT_S
    size = sum((RUN_BYTES + ITERATION_BYTES * case.iterations) * count for case, count in runs)
    return Estimate(seconds, size, sum(case.id in known_s for case in cases))


def nominal_s(case: Case, facts: Facts) -> float:
    """Nominal seconds of one run."""
    on_gpu = bool(facts.get("torch", {}).get("cuda_devices")) and case.device != "cpu"
    cores = case.threads or facts.get("machine", {}).get("cpu_count", 1)
    rate = GPU_RATE if on_gpu else CPU_RATE * cores
    per_sample = MULTIPLY_ADDS.get(case.model or "", UNKNOWN_MULTIPLY_ADDS if case.model else 0.0)
    if case.model in TOKEN_MODELS:
        per_sample *= case.seq_len
    passes = 3 if case.workload == "train" else 1  # forward, and backward at twice its cost
    work_s = (case.warmup_iterations + case.iterations) * case.batch * per_sample * passes / rate
    return START_S.get(case.runtime, 1.0) + work_s + case.energy_window_s
