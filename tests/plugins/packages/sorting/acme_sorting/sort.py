# SPDX-License-Identifier: Apache-2.0
import numpy as np

from pybench.measure.quantity import Quantity
from pybench.measurement.recorder import Amounts, record
from pybench.measurement.result import Result, RunRequest


def run(request: RunRequest) -> Result:
    case = request.case
    numbers = np.random.default_rng(request.seed).random(case.value("sorting.count"))
    result = record(case, lambda: np.sort(numbers), Amounts(), None)
    mean_s = (result.metrics["latency_mean_ms"].value or 0.0) * 1e-3
    result.metrics["sorted_numbers_per_s"] = Quantity(value=len(numbers) / mean_s, method="numbers over mean latency")
    result.labels["device"] = "cpu"
    return result
