# SPDX-License-Identifier: Apache-2.0
"""Which quantisers leave nodes in FP32: those that a plan names, and those that a search finds."""

from __future__ import annotations

from collections.abc import Iterator

from pybench.catalogue.quantisers import Quantiser, quantisers_to, searching


def keep_problems(quantiser: Quantiser, kind: str) -> Iterator[tuple[str, str, str]]:
    """Of each factor that the quantiser does not take: its name, what is wrong, and a hint. `kind`: int8, int4, fp8."""
    if not quantiser.keeps_nodes:
        what = f"the quantiser {quantiser.name} rounds every convolution and linear layer, and takes no `keep_fp32`"
        yield "keep_fp32", what, f"use quantiser {' or '.join(quantisers_to(kind))}"
    if not quantiser.searches_kept:
        what = f"no search of nodes to keep in FP32 is made with the quantiser {quantiser.name}"
        able = " or ".join(searching(kind))
        yield "keep_error_max", what, f"use quantiser {able}" if able else "leave `keep_error_max` out"
