# SPDX-License-Identifier: Apache-2.0
"""The first paper's campaign with made-up numbers whose verdicts are known: 4 precisions x 3 batches x 30 repetitions.

Samples are quantiles of a distribution in random order, not draws, so that which test they ask for does not hang on
luck. At batch 1 every latency is normal but their variances differ, and at batch 8 they are normal with one variance.
At batch 32 the latencies of int8+fp16 are skewed. The energy of int8+fp16 at batch 1 is invalid in every run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pybench.case import Case, Repetitions
from pybench.dataset import Dataset
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Validity
from tests.support.campaigns import CampaignBuilder
from tests.support.reasons import reasons_of

PRECISIONS = ("fp32", "fp16", "bf16", "int8+fp16")
BATCHES = (1, 8, 32)
REPETITIONS = 30
IMAGES = 500
TRUE_SPEEDUP = {"fp32": 1.0, "fp16": 4.3, "bf16": 3.0, "int8+fp16": 5.2}
BF16_AT_BATCH_1 = 1.1  # below the bound of 1.15: advantageous at two batches only
TRUE_ENERGY = {"fp32": 1.0, "fp16": 0.25, "bf16": 0.32, "int8+fp16": 0.2}  # of fp32's, per sample
WRONG = {"fp32": 100, "fp16": 99, "bf16": 103, "int8+fp16": 115}  # of IMAGES: int8 loses 3 percentage points
ENGINE_BYTES = {"fp32": 98.19e6, "fp16": 49.27e6, "bf16": 49.30e6, "int8+fp16": 25.65e6}
DECLARED = {"baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.15, "top1_delta_pp_min": -1.0}}

_QUANTILES = stats.norm.ppf((np.arange(REPETITIONS) + 0.5) / REPETITIONS)
INFER = Case(workload="infer", model="resnet50", runtime="tensorrt")


def precision_cases() -> tuple[Case, ...]:
    return (
        *(INFER.with_factors(precision=precision, batch=batch) for precision in PRECISIONS for batch in BATCHES),
        *(INFER.with_factors(workload="accuracy", precision=precision, batch=32) for precision in PRECISIONS),
    )


def build_precisions(folder: Path, *, protocols: Any = ("welch-mann-whitney",), declared: Any = DECLARED) -> Path:
    cases = precision_cases()
    builder = CampaignBuilder(folder, cases, repetitions=REPETITIONS, protocols=protocols, declared=declared)
    generator = np.random.default_rng(11)
    noise = {case: (generator.permutation(_QUANTILES), generator.permutation(_QUANTILES)) for case in cases}
    for block in range(1, REPETITIONS + 1):
        for case in cases:
            if case.workload == "accuracy" and block <= Repetitions(REPETITIONS).of(case):
                _judge_images(builder, case, block)
            elif case.workload == "infer":
                _time(builder, case, block, *(draws[block - 1] for draws in noise[case]))
    return builder.path


def latency_ms(case: Case, noise: NDArray[np.float64] | float) -> Any:
    """Mean latency: the true one plus noise of the batch's kind."""
    speedup = BF16_AT_BATCH_1 if (case.precision, case.batch) == ("bf16", 1) else TRUE_SPEEDUP[case.precision]
    true = (1.0 + 0.5 * case.batch) / speedup
    if case.batch == 8:
        return true + 0.005 * noise
    if (case.batch, case.precision) == (32, "int8+fp16"):
        return true * (1 + 0.002 * np.exp(1.5 * noise))
    return true * (1 + 0.01 * noise)


def _time(builder: CampaignBuilder, case: Case, block: int, noise: float, other: float) -> None:
    latency = float(latency_ms(case, noise))
    energy = 0.08 / case.batch**0.5 * TRUE_ENERGY[case.precision] * (1 + 0.02 * float(other))
    is_short = (case.precision, case.batch) == ("int8+fp16", 1)
    builder.run(
        case,
        block,
        {
            "latency_mean_ms": latency,
            "latency_p50_ms": latency * 0.99,
            "latency_p95_ms": latency * 1.05,
            "latency_p99_ms": latency * 1.1,
            "throughput_samples_per_s": case.batch * 1e3 / latency,
            "gpu_energy_per_sample_j": Quantity(value=energy, window="energy", method="fused"),
            "peak_device_bytes": 600e6 + 1e6 * case.batch,
            "model_bytes": ENGINE_BYTES[case.precision],
        },
        valid={
            "precision": Validity(True),
            "energy": Validity(not is_short, reasons_of("window_too_short") if is_short else ()),
        },
        labels={"device": "GPU-1"},
    )


def _judge_images(builder: CampaignBuilder, case: Case, block: int) -> None:
    wrong = WRONG[case.precision]
    lines = [
        f"image-{i:03d},{i % 100},{(i % 100 + (i < wrong)) % 100},{'false' if i < 20 else 'true'}"
        for i in range(IMAGES)
    ]
    builder.run(
        case,
        block,
        {"top1_percent": 100 * (IMAGES - wrong) / IMAGES, "top5_percent": 100 * (IMAGES - 20) / IMAGES},
        valid={"accuracy": Validity(True)},
        predictions="\n".join(["image_id,label,top1,top5_hit", *lines]) + "\n",
        labels={"device": "GPU-1"},
    )


def values_of(dataset: Dataset, case: Case, metric: str) -> NDArray[Any]:
    """A metric of a case, block by block."""
    frame = dataset.frame.filter((dataset.frame["case_id"] == case.id) & (dataset.frame["metric"] == metric))
    return frame.sort("block")["value"].to_numpy()
