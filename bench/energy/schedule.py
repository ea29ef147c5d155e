# SPDX-License-Identifier: Apache-2.0
"""Which windows a campaign of live recordings has, in which order, and how long it takes. Pure: no clock, no device.

Every kernel has as many windows of each length as every other. They are dealt evenly to the parts (one recording
each), and within a kernel and length evenly to the peers, so that no method sees easier windows than another. Every
part has reference windows of its own, because parts may be recorded on boards that differ. The order inside a part is
random, with random idle between windows. So neither heat nor the phase of the sensor's own clocks goes with a kernel, a
length or a peer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

# The first set is what the integrator was developed on; nothing was ever tuned on the second.
KERNEL_SETS = {
    "first": ("memory", "matrix_cap", "resnet50_fp16_b32", "tiny_launches", "bursts", "bursts_50"),
    "second": ("attention", "fft", "gather", "decode"),
}
PEERS = ("", "zeus", "codecarbon")  # who else measures a window; one at most, since each adds idle at the edges

# Windows of each length (s) for each kernel, over the whole campaign.
WINDOWS_PER_KERNEL = {0.2: 36, 0.5: 36, 1.0: 11, 5.0: 5}
REFERENCE_S = 10.0  # no peer measures these
REFERENCES = 5  # of each kernel in each part: one alone has the clocks and the temperature of that once
IDLE_S = (0.8, 1.7)  # longer than the 1 s average of the slowest channel takes to forget most of a window
EDGE_S = 0.05  # what starting a window, reading peers and converting its events takes
LEAD_S = 2.0  # idle before the first window and after the last


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """One window to record, after `idle_s` without work."""

    kernel: str
    nominal_s: float
    idle_s: float
    peer: str

    @property
    def duration_s(self) -> float:
        """With the idle before it."""
        return self.idle_s + self.nominal_s + EDGE_S


def plan_part(part: int, parts: int, seconds: float, seed: int, kernels: Sequence[str]) -> list[PlannedWindow]:
    """The windows of one part in the order in which they run; together they take at most `seconds`.

    The reference windows are always among them. Where the others do not all fit, those that the random order puts last
    are left out: fewer windows, no bias.
    """
    if not 0 <= part < parts:
        raise ValueError(f"part {part} of {parts}: parts count from 0")
    order = random.Random(f"{seed}/{part}")  # a text seed: the same on every version and machine

    def plan(kernel: str, nominal_s: float, peer: str) -> PlannedWindow:
        return PlannedWindow(kernel, nominal_s, order.uniform(*IDLE_S), peer)

    others = [plan(*dealt) for dealt in deal(part, parts, kernels)]
    chosen = [plan(kernel, REFERENCE_S, "") for kernel in kernels for _ in range(REFERENCES)]
    order.shuffle(others)
    left_s = seconds - 2 * LEAD_S - sum(window.duration_s for window in chosen)
    for window in others:
        left_s -= window.duration_s
        if left_s < 0:
            break
        chosen.append(window)
    order.shuffle(chosen)
    return chosen


def deal(part: int, parts: int, kernels: Sequence[str]) -> list[tuple[str, float, str]]:
    """(kernel, length in s, peer) of this part's windows, references aside. All parts' together are the campaign's."""
    dealt = []
    for nominal_s, count in WINDOWS_PER_KERNEL.items():
        for k, kernel in enumerate(kernels):
            # Shifted by the kernel's number, so that remainders do not pile up on one part or one peer.
            mine = [i for i in range(count) if (i + k) % parts == part]
            dealt += [(kernel, nominal_s, PEERS[(n + k + part) % len(PEERS)]) for n in range(len(mine))]
    return dealt


def total_s(windows: list[PlannedWindow]) -> float:
    """How long a part takes, its idle ends included."""
    return 2 * LEAD_S + sum(window.duration_s for window in windows)


def describe(windows: list[PlannedWindow]) -> str:
    """A table of a part: windows of each kernel and length, peers' shares and the total time."""
    lengths = sorted({window.nominal_s for window in windows})
    rows = [f"{'kernel':<20}" + "".join(f"{length:>7g} s" for length in lengths)]
    for kernel in sorted({window.kernel for window in windows}):
        counts = [sum(w.kernel == kernel and w.nominal_s == length for w in windows) for length in lengths]
        rows.append(f"{kernel:<20}" + "".join(f"{count:>9}" for count in counts))
    for peer in PEERS:
        counts = [sum(w.peer == peer and w.nominal_s == length for w in windows) for length in lengths]
        rows.append(f"{'with ' + peer if peer else 'no peer':<20}" + "".join(f"{count:>9}" for count in counts))
    rows.append(f"{len(windows)} windows, {total_s(windows):.0f} s")
    return "\n".join(rows)
