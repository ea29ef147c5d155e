# SPDX-License-Identifier: Apache-2.0
"""One precision name, one numeric contract, on a GPU: equal weights and inputs give equal outputs in every runtime.

The judge is eager torch in the same precision; what is not installed is skipped and says so. Tolerances are relative
errors of all outputs together (l2). FP32's is below half a unit of TF32's mantissa (5e-4), so that a runtime which
quietly used TF32 fails. The lower bound of the others fails one that quietly used FP32. Where only weights and inputs
are rounded, outputs differ as much, so the audit has to find the precision, too. Every case has a process of its own,
as in a campaign: what is set of TF32 in the environment is read once by CUDA's libraries.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

torch = pytest.importorskip("torch")

from pybench.case import Case  # noqa: E402
from pybench.errors import UnsupportedError  # noqa: E402
from pybench.measurement.inputs import random_arrays  # noqa: E402
from pybench.measurement.model import open_model  # noqa: E402
from pybench.measurement.result import RunRequest  # noqa: E402
from pybench.precision.audit import Audit  # noqa: E402
from tests.support.making import request_of, run  # noqa: E402
from tests.support.reasons import codes_of  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.slow, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

RESNET = Case(workload="infer", model="resnet50", runtime="torch", device="cuda", batch=4, iterations=50)
RUNTIMES = {  # by a name for the test
    **{name: {"runtime": name} for name in ("torch-graph", "torch-compile", "tensorrt", "torch-tensorrt")},
    "onnxruntime-cuda": {"runtime": "onnxruntime", "provider": "cuda"},
    "onnxruntime-cuda-enqueued": {"runtime": "onnxruntime", "provider": "cuda", "launch": "enqueue"},
    "onnxruntime-tensorrt": {"runtime": "onnxruntime", "provider": "tensorrt"},
    "onnxruntime-cpu": {"runtime": "onnxruntime", "device": "cpu"},
}
TOLERANCE = {"fp32": 2e-4, "tf32": 5e-3, "fp16": 1e-2, "bf16": 5e-2}
# Its engines are weakly typed, and TensorRT takes FP32 where BF16 is allowed: the audit has to tell it.
CHOSEN_OTHERWISE = ("onnxruntime-tensorrt", "bf16")
LEAST = {"tf32": 5e-5, "fp16": 1e-4, "bf16": 1e-3}  # by which a precision has to differ from FP32

Outputs = npt.NDArray[Any]
Found = tuple[Outputs, Audit]


@cache
def found_of(case: Case) -> Found:
    """What is computed once its iterations are bound and have run, and what the audit says then, in a process that did
    nothing before."""
    try:
        request = request_of(case)
    except (UnsupportedError, ImportError) as error:
        pytest.skip(f"{case.title()}: {error}")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(found_of_request, request).result()
    if isinstance(found, str):
        pytest.skip(f"{case.title()}: {found}")
    return found


def found_of_request(request: RunRequest) -> Found | str:
    """Outputs and audit, or why there are none. Runs in the other process; pybench's errors do not travel."""
    try:
        model = open_model(request, deterministic=True)
    except (UnsupportedError, ImportError) as error:
        return str(error)
    inputs = random_arrays(model.session.inputs, "resnet50", request.case.batch, 0, seed=1)
    model.session.bind(inputs, transfers=False)()
    return model.session.run(inputs)[0], model.audit()


def relative_error(outputs: Outputs, expected: Outputs) -> float:
    return float(np.linalg.norm(outputs - expected) / np.linalg.norm(expected))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("precision", TOLERANCE)
def test_equal_inputs_give_equal_outputs(runtime: str, precision: str) -> None:
    outputs, audit = found_of(RESNET.with_factors(precision=precision, **RUNTIMES[runtime]))
    assert np.isfinite(outputs).all()
    assert relative_error(outputs, found_of(RESNET.with_factors(precision=precision))[0]) < TOLERANCE[precision]
    from_fp32 = relative_error(outputs, found_of(RESNET)[0])
    assert LEAST.get(precision, 0) <= from_fp32 < TOLERANCE[precision]
    told = (runtime, precision) == CHOSEN_OTHERWISE and codes_of(audit.reasons) == ("not_in_claimed_type",)
    assert audit.valid or told, audit


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
def test_each_mode_compiles_before_it_is_timed(mode: str) -> None:
    """Nothing is compiled or recorded any more in the timed iterations, in modes with CUDA graphs too."""
    case = RESNET.with_factors(runtime="torch-compile", precision="fp16", compile_mode=mode, batch=1)
    found_of(case)
    result = run(case.with_factors(idle_window_s=0.0))
    assert result.labels["compile_cache_hits"] == 0
    compile_ms = 1e3 * result.metrics["compile_s"].value
    assert result.metrics["latency_p99_ms"].value < compile_ms / 50
