# SPDX-License-Identifier: Apache-2.0
"""What is measured: one module a workload, each from a `RunRequest` to a `Result`. A worker does exactly one.

    result = workloads.run(request)

It imports only what the case needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybench.measurement.result import Result, RunRequest


def run(request: RunRequest) -> Result:
    """Measures one case. Raises UnsupportedError, InputError or DeviceMemoryError where those are the answer."""
    from pybench.runtimes.memory import memory_errors

    with memory_errors():
        result: Result = importlib.import_module(request.case.workload_row.module).run(request)
    return result
