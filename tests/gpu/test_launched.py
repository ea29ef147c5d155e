# SPDX-License-Identifier: Apache-2.0
"""Kernels as CUPTI records them: of plain launches, and of a replayed graph."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pybench.kernels.engine_layers import kernel_types  # noqa: E402
from pybench.runtimes.launched import launched_by  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


@pytest.mark.parametrize("replayed", [False, True])
def test_a_products_kernel_is_recorded_with_its_time_and_copies_are_not(replayed: bool) -> None:
    factor = torch.ones(2048, 2048, device="cuda", dtype=torch.float16)
    host = torch.ones(4)
    (factor @ factor).sum()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        factor @ factor

    def call() -> None:
        if replayed:
            graph.replay()
        else:
            _ = factor @ factor
            host.cuda()
        torch.cuda.synchronize()

    launched = launched_by(call)
    kernels = launched.kernels
    name, time_ms = max(kernels, key=lambda kernel: kernel[1])
    assert kernel_types(name)[0] in ("fp16", None)
    assert 0.005 < time_ms < 5
    assert time_ms <= launched.busy_ms <= sum(each for _, each in kernels) + 1e-6
    assert not [name for name, _ in kernels if name.startswith("Mem")]
