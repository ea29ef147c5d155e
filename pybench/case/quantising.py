# SPDX-License-Identifier: Apache-2.0
"""What puts int8, int4 or fp8 into the graph of a case."""

from __future__ import annotations

from typing import cast

from pybench.case.case import Case
from pybench.catalogue.precisions import floating_type, quantised_type
from pybench.catalogue.quantisers import QUANTISERS, USUAL, Quantiser, Scheme
from pybench.catalogue.runtimes import Runtime


def quantiser_of(case: Case) -> Quantiser:
    """What puts int8, int4 or fp8 into the case's graph."""
    return QUANTISERS[case.quantiser or default_quantiser(case.runtime_row, case.provider)]


def stores_weights(case: Case) -> bool:
    """Whether the case's weights are all that is quantised."""
    return quantised_type(case.precision) is not None and quantiser_of(case).weights_alone


def opened_in(case: Case) -> str:
    """The precision that a runtime is asked for: where weights alone are quantised, that of everything else."""
    return floating_type(case.precision) if stores_weights(case) else case.precision


def scheme_of(case: Case) -> Scheme:
    """The ranges that the case's quantiser makes: as asked for, else those of the runtime's kernels, where it makes
    such."""
    if case.scheme is not None:
        return cast(Scheme, case.scheme)
    row = case.runtime_row
    return row.ranges if row is not None and row.ranges in quantiser_of(case).schemes else "symmetric"


def default_quantiser(row: Runtime | None, provider: str | None) -> str:
    """A runtime's own quantiser is for its own kernels. The usual one is for the others, and for a backend that takes
    symmetric ranges only where the own one makes others."""
    if row is None:
        return USUAL.name
    backend = row.backend(provider, has_gpu=False)
    symmetric = backend is not None and backend.symmetric_ranges and row.ranges != "symmetric"
    return USUAL.name if symmetric else row.quantiser
