# SPDX-License-Identifier: Apache-2.0
"""What puts int8 or fp8 into the graph of a case."""

from __future__ import annotations

from pybench.case.case import Case
from pybench.catalogue.runtimes import RUNTIMES

PYBENCH = "pybench"  # the quantiser that works for every runtime


def quantiser_of(case: Case) -> str:
    """What puts int8 or fp8 into the case's graph."""
    return case.quantiser or default_quantiser(case.runtime, case.provider)


def default_quantiser(runtime: str | None, provider: str | None) -> str:
    """A runtime's own quantiser is for its own kernels. pybench's is for the others, and for a backend that takes
    symmetric ranges only where the own one makes others."""
    if runtime is None:
        return PYBENCH
    row = RUNTIMES[runtime]
    backend = row.backend(provider, has_gpu=False)
    symmetric = backend is not None and backend.symmetric_ranges and row.ranges != "symmetric"
    return PYBENCH if symmetric else row.quantiser
