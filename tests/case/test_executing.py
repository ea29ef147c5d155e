# SPDX-License-Identifier: Apache-2.0
"""What no machine runs, by the rows alone; the judge is what made-up machines say of thousands of cases."""

from __future__ import annotations

from typing import Any

import pytest

from pybench.case import Case
from pybench.case.executing import runs_nowhere
from pybench.machine.support import unsupported
from tests.support.answers import MACHINES, case_of, read_stored


def test_what_no_machine_runs_runs_on_none_of_the_made_up_ones_and_most_of_the_rest_on_one() -> None:
    nowhere, elsewhere = 0, 0
    for entries in read_stored().values():
        for case in (case_of(entry["factors"]) for entry in entries):
            refused = [unsupported(case, facts) is not None for facts in MACHINES.values()]
            if runs_nowhere(case) is None:
                elsewhere += all(refused)
                continue
            assert all(refused), case.title()
            nowhere += 1
    assert nowhere > 1000
    assert elsewhere < nowhere / 5  # kernels of a CPU, boards and TensorRT's version are of machines


@pytest.mark.parametrize(
    ("factors", "code"),
    [
        ({"workload": "train", "runtime": "native"}, "no_training"),
        ({"runtime": "native", "path": "rust"}, "no_path_rust_in_native"),
        ({"workload": "generate", "runtime": "openvino"}, "no_generation_in_openvino"),
        ({"runtime": "torch", "precision": "int8"}, "no_int8_in_torch"),
        ({"runtime": "onnxruntime", "precision": "bf16", "device": "cpu"}, "no_bf16_on_cpu"),
        ({"runtime": "openvino", "device": "cuda"}, "no_gpu"),
        ({"runtime": "tensorrt", "device": "cpu"}, "no_gpu"),
        ({"runtime": "onnxruntime", "provider": "cpu", "device": "cuda"}, "provider_and_device"),
        ({"runtime": "torch-compile", "compile_mode": "max-autotune", "device": "cpu"}, "no_gpu"),
        ({"runtime": "torch-graph", "transfers": True}, "no_transfers_in_torch-graph"),
        ({"runtime": "onnxruntime", "precision": "int8"}, None),  # on a CPU
        ({"runtime": "onnxruntime", "precision": "fp16"}, None),  # on a GPU
        ({"runtime": "openvino", "precision": "bf16"}, None),  # on some CPUs
        ({"runtime": "torch", "device": "GPU-2"}, None),
        ({"workload": "noop", "runtime": None, "model": None}, None),
    ],
)
def test_the_rows_tell_it(factors: dict[str, Any], code: str | None) -> None:
    case = Case(workload="infer", model="tinylm-tiny").with_factors(**factors)
    refusal = runs_nowhere(case)
    assert (refusal and refusal.reason.stored_code) == code
