# SPDX-License-Identifier: Apache-2.0
"""How fast the core was that ran the iterations, by a fixed piece of integer work between them.

    speed = summarise_probes(times.probes_ns)        # None where nothing probed
    speed.mean_s, speed.slow_share, speed.cautions()

A runtime that launches small kernels one by one waits for one core. That core's speed changes with its clock, and with
what its sibling thread does, perhaps for another virtual machine. The probe (native/core_probe.hpp) tells both. It uses
no memory, so it does not tell of caches that others fill. One probe is a sample of 5 us: shares and means over a window
are what it tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.catalogue.cautions import Caution, CautionCode
from pybench.measure.timing.latency import durations_s

FEWEST_PROBES = 10  # below, one that was interrupted decides
SLOW_RATIO = 1.25  # times the 10th percentile: a core that is shared takes 1.3 to 2 times as long
SLOW_SHARE = 0.1  # of the probes: a switch to another program slows one now and then
INTERRUPTED_RATIO = (
    3.0  # times the 10th percentile: the core did something else meanwhile, which says nothing of its speed
)


@dataclass(frozen=True, slots=True)
class CoreSpeed:
    """Seconds of one probe: the mean and the 10th percentile; and the share that took 1.25 times as long as that.

    Probes that were interrupted are in neither mean nor share; `interrupted` counts them.
    """

    mean_s: float
    p10_s: float
    slow_share: float
    slow_s: float
    probes: int
    interrupted: int

    def cautions(self, metric: str = "latency_mean_ms") -> list[Caution]:
        """A caution about `metric` where a tenth of the probes or more were slow."""
        if self.probes < FEWEST_PROBES or self.slow_share < SLOW_SHARE:
            return []
        factor = self.slow_s / self.p10_s
        detail = f"{100 * self.slow_share:.0f} % of the probes took {factor:.2g} times as long as the fast ones"
        return [Caution(CautionCode.CORE_SPEED_VARIES, detail, metric)]


def summarise_probes(probes_ns: NDArray[np.int64]) -> CoreSpeed | None:
    """Of int64 [n, 2], begin and end of each probe in ns; None where there are none.

    `slow_s` is the mean of those that were slow, 0 where none was.
    """
    if len(probes_ns) == 0:
        return None
    durations = durations_s(probes_ns)
    p10_s = float(np.percentile(durations, 10, method="lower"))
    whole = durations[durations <= INTERRUPTED_RATIO * p10_s]
    slow = whole[whole > SLOW_RATIO * p10_s]
    return CoreSpeed(
        mean_s=float(whole.mean()),
        p10_s=p10_s,
        slow_share=len(slow) / len(whole),
        slow_s=float(slow.mean()) if len(slow) else 0.0,
        probes=len(whole),
        interrupted=len(durations) - len(whole),
    )
