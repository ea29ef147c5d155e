# SPDX-License-Identifier: Apache-2.0
"""Does the probe of the core tell why eager iterations take longer for a while?

usage: python bench/timer/core_speed.py [SECONDS=60]

Times a chain of small layers in eager torch on one thread. Means of iterations and of probes over pieces of the time
are put side by side. Each is divided by its 10th percentile; what took over three times as long is left out of both.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from numpy.typing import NDArray

from pybench.measure import CallReplayer, Times
from pybench.measure.timing.core_speed import INTERRUPTED_RATIO, SLOW_RATIO

LAYERS = 60
WIDTHS_S = (0.1, 0.5, 1.0, 2.0)
FEWEST = 5  # probes and iterations of a piece


def measure(seconds: float) -> Times:
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(LAYERS))).eval()
    sample = torch.zeros(1, 32)
    with torch.inference_mode():
        work = CallReplayer(lambda: model(sample))
        work.replay(500)
        return work.replay(1, seconds)


def slowdowns(begin_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Begin and relative duration of what was not interrupted."""
    ratios = (end_ns - begin_ns) / np.percentile(end_ns - begin_ns, 10)
    whole = ratios <= INTERRUPTED_RATIO
    return begin_ns[whole], ratios[whole]


def main() -> None:
    times = measure(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
    assert times.probes_ns is not None
    series = (slowdowns(times.begin_ns, times.end_ns), slowdowns(*times.probes_ns.T))
    for name, (_, ratios) in zip(("iterations", "probes"), series, strict=True):
        print(f"{name:10} n {len(ratios)}, mean {ratios.mean():.3f}, slow {100 * np.mean(ratios > SLOW_RATIO):.1f} %")
    for width_s in WIDTHS_S:
        means = []
        for begin_ns, ratios in series:
            piece = ((begin_ns - times.begin_ns[0]) / (width_s * 1e9)).astype(int)
            means.append({k: ratios[piece == k].mean() for k in np.unique(piece) if np.sum(piece == k) >= FEWEST})
        both = sorted(set(means[0]) & set(means[1]))
        logs = np.log([[mean[k] for k in both] for mean in means])
        print(
            f"pieces of {width_s:g} s: n {len(both)}, correlation {np.corrcoef(logs)[0, 1]:.2f}, spread of iterations "
            f"{logs[0].std():.4f}, divided by probes {(logs[0] - logs[1]).std():.4f}"
        )


if __name__ == "__main__":
    main()
