# SPDX-License-Identifier: Apache-2.0
"""What `metrics_of` promises of a case is what its runs store: nothing less, and nothing more than sensors explain."""

from __future__ import annotations

import time

import pytest

from pybench.case import Case
from pybench.case.yields import metrics_of
from pybench.catalogue.metrics import GPU, METRICS
from pybench.measurement.recorder import Amounts, record
from pybench.measurement.result import Result
from tests.measure.replay import UUID
from tests.support.making import run

SMALL = {"batch": 1, "threads": 1, "iterations": 3, "warmup_iterations": 1, "idle_window_s": 0.01}
MLP = Case(workload="infer", model="mlp", runtime="torch", **SMALL)
TINYLM = MLP.with_factors(model="tinylm-small", seq_len=8)
TOKENS = Case(workload="tokenize", path="python", seq_len=8, **SMALL)
CASES = {
    "infer": MLP,
    "infer without rest": MLP.with_factors(idle_window_s=0.0),
    "infer that opens a file": MLP.with_factors(runtime="onnxruntime"),
    "infer of a language model": TINYLM,
    "infer that is fed": TINYLM.with_factors(fed=True),
    "train": TINYLM.with_factors(workload="train"),
    "generate": TINYLM.with_factors(workload="generate", new_tokens=3),
    "generate that draws": TINYLM.with_factors(workload="generate", new_tokens=3, temperature=1.0),
    "tokenize": TOKENS,
    "tokenize that feeds a model": TOKENS.with_factors(model="tinylm-small", runtime="torch"),
    "accuracy": MLP.with_factors(workload="accuracy", model="digits-cnn", image_limit=4),
    "fit": MLP.with_factors(
        workload="fit", model="digits-cnn", images="digits", batch=64, target_top1_percent=20.0, epochs_max=1
    ),
    "noop": Case(workload="noop", **SMALL),
}


def stored_of(result: Result, case: Case) -> set[str]:
    """What a run stored, and what it did not only because this machine has a sensor too few or one too many."""
    names = set(result.metrics)
    if "gpu_energy_j" not in names:
        needs_gpu = {"peak_device_bytes", "gpu_utilisation_ratio"} | {
            name for name, row in METRICS.items() if row.group in (GPU, "energy of both")
        }
        names |= needs_gpu & metrics_of(case)
    for total, group in (("module_energy_j", "energy of the module"), ("node_energy_j", "energy of the node")):
        if total not in names:
            names |= {name for name in metrics_of(case) if METRICS[name].group == group}
    if "cpu_energy_estimate_j" not in names:  # it stands in for a counter that is not there
        names |= {name for name in metrics_of(case) if name.endswith("_estimate_j")}
    return names


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_case_yields_what_its_run_stores(case: Case) -> None:
    result = run(case)
    assert stored_of(result, case) == metrics_of(case)


@pytest.mark.usefixtures("replayed")
@pytest.mark.parametrize("idle_window_s", [0.0, 0.2])
def test_a_sampled_board_yields_its_energies_and_what_it_takes_at_rest(idle_window_s: float) -> None:
    copies = Case(workload="h2d", iterations=3, energy_window_s=0.3, idle_window_s=idle_window_s)
    result = record(copies, lambda: time.sleep(0.01), Amounts(copied_bytes=1000), UUID)
    assert stored_of(result, copies) == metrics_of(copies)
