# SPDX-License-Identifier: Apache-2.0
"""One precision name, one numeric contract, on a GPU: equal weights and inputs give equal outputs in every runtime.

The judge is eager torch in the same precision; what is not installed is skipped and says so. Tolerances are relative
errors of all outputs together (l2). FP32's is below half a unit of TF32's mantissa (5e-4), so that a runtime which
quietly used TF32 fails; the lower bound of the others fails one that quietly used FP32.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

torch = pytest.importorskip("torch")

from pybench.case import Case  # noqa: E402
from pybench.errors import UnsupportedError  # noqa: E402
from pybench.workloads.inputs import random_arrays  # noqa: E402
from pybench.workloads.opening import open_model  # noqa: E402
from tests.making import request_of, run  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.slow, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

RESNET = Case(workload="infer", model="resnet50", runtime="torch", device="cuda", batch=4, iterations=50)
RUNTIMES = ("torch-graph", "torch-compile", "tensorrt", "torch-tensorrt", "onnxruntime")
TOLERANCE = {"fp32": 2e-4, "tf32": 5e-3, "fp16": 1e-2, "bf16": 5e-2}
LEAST = {"tf32": 5e-5, "fp16": 1e-4, "bf16": 1e-3}  # by which a precision has to differ from FP32

Outputs = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    with patch.dict(os.environ):
        yield


@cache
def outputs_of(case: Case) -> Outputs:
    model = open_model(request_of(case), deterministic=True)
    inputs = random_arrays(model.session.inputs, "resnet50", case.batch, 0, seed=1)
    return model.session.run(inputs)[0]


def relative_error(outputs: Outputs, expected: Outputs) -> float:
    return float(np.linalg.norm(outputs - expected) / np.linalg.norm(expected))


def supported(case: Case) -> Outputs:
    try:
        return outputs_of(case)
    except UnsupportedError as error:
        pytest.skip(f"{case.runtime}: {error.message}")
    except ImportError as error:
        pytest.skip(f"{case.runtime}: {error}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("precision", TOLERANCE)
def test_equal_inputs_give_equal_outputs(runtime: str, precision: str) -> None:
    case = RESNET.with_factors(precision=precision)
    if runtime == "onnxruntime":
        case = case.with_factors(provider="cuda")
    found = supported(case.with_factors(runtime=runtime))
    assert np.isfinite(found).all()
    assert relative_error(found, outputs_of(RESNET.with_factors(precision=precision))) < TOLERANCE[precision]
    from_fp32 = relative_error(found, outputs_of(RESNET))
    assert LEAST.get(precision, 0) <= from_fp32 < TOLERANCE[precision]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
def test_each_mode_compiles_before_it_is_timed(mode: str) -> None:
    """Nothing is compiled or recorded any more in the timed iterations, in modes with CUDA graphs too."""
    case = RESNET.with_factors(runtime="torch-compile", precision="fp16", compile_mode=mode, batch=1)
    supported(case)
    result = run(case.with_factors(idle_window_s=0.0))
    assert result.labels["compile_cache_hits"] == 0
    compile_ms = 1e3 * result.metrics["compile_s"].value
    assert result.metrics["latency_p99_ms"].value < compile_ms / 50
