# SPDX-License-Identifier: Apache-2.0
"""Networks against the solvers that they replace: how much faster, how wrong, and against which baseline.

Speed-up: time of a solver over that of the network at the same batch, paired within blocks. The solver that the
catalogue lists first is the one that speed-ups are stated against; the others are there to show what a baseline does:

`faster`: the whole interval is above 1 against every solver, and the first is among them
`slow_baseline`: it is above 1 against some solver, and not against another one, or the first has no valid time
`slower`: it is above 1 against none, and below 1 against one at least
`open`: neither

Intervals have 95 % each; nothing corrects for their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pybench.analysis.comparability import SoftwareComparisons
from pybench.analysis.measurements import Measurements
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.statistics.paired import compare_paired
from pybench.case import Case
from pybench.case.factors import followers_of
from pybench.case.pairing import join_key
from pybench.catalogue.runtimes import SOLVERS

TIME, L1, LINF = "latency_mean_ms", "l1_error", "linf_error"
_OF_WEIGHTS = ("checkpoint", *followers_of("checkpoint"))

SpeedupVerdict = Literal["faster", "slow_baseline", "slower", "open"]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SolverSpeedup:
    """One network at one batch.

    speedups: solver -> its time over the network's; those that were measured, in the catalogue's order
    l1, linf: errors of the same answers by the plan's accuracy cases, the largest; None: it has none
    """

    case: Case
    speedups: Mapping[str, Estimate]
    l1: float | None
    linf: float | None

    @property
    def beaten(self) -> tuple[str, ...]:
        """Solvers that the network is shown to be faster than."""
        return tuple(name for name, one in self.speedups.items() if one.lower is not None and one.lower > 1)

    @property
    def unbeaten(self) -> tuple[str, ...]:
        """Solvers that it is not shown to be faster than: measured ones, and the first one in any case."""
        wanted = (name for name in SOLVERS if name in self.speedups or name == SOLVERS[0])
        return tuple(name for name in wanted if name not in self.beaten)

    @property
    def verdict(self) -> SpeedupVerdict:
        if self.beaten:
            return "slow_baseline" if self.unbeaten else "faster"
        below = [one for one in self.speedups.values() if one.upper is not None and one.upper < 1]
        return "slower" if below else "open"

    def as_json(self) -> dict[str, Any]:
        return {
            "case_id": self.case.id,
            "speedups": {name: one.as_json() for name, one in self.speedups.items()},
            "verdict": self.verdict,
            "l1_error": self.l1,
            "linf_error": self.linf,
        }


def find_solver_speedups(
    cases: Sequence[Case], measurements: Measurements, software: SoftwareComparisons
) -> tuple[SolverSpeedup, ...]:
    """One finding for each timed network that a timed solver equals elsewhere, in the plan's order."""
    timed = [case for case in cases if measurements.cell(case.id, TIME).values]
    solving: dict[Key, dict[str, Case]] = {}
    for case in timed:
        if _solves(case):
            solving.setdefault(_key(case), {})[case.solver] = case
    found = []
    for case in timed:
        solvers = {} if _solves(case) else solving.get(_key(case), {})
        ratios = {name: _speedup(solvers[name], case, measurements, software) for name in SOLVERS if name in solvers}
        speedups = {name: one for name, one in ratios.items() if one is not None}
        if speedups:
            errors = (_error(case, name, cases, measurements) for name in (L1, LINF))
            found.append(SolverSpeedup(case, speedups, *errors))
    return tuple(found)


def _solves(case: Case) -> bool:
    row = case.runtime_row
    return row is not None and row.opens == "equations"


def _speedup(solver: Case, network: Case, measurements: Measurements, software: SoftwareComparisons) -> Estimate | None:
    """Without blocks in which board or common packages differ."""
    times = measurements.cell(solver.id, TIME).values
    kept = software.between(solver, network).kept(times)
    effect = compare_paired(kept, measurements.cell(network.id, TIME).values, "ratio", tests=measurements.tests)
    return None if effect is None else effect.estimate


def _error(case: Case, metric: str, cases: Sequence[Case], measurements: Measurements) -> float | None:
    """The largest of the cases with the same answers; the runs of one are equal."""
    wanted = join_key(case)
    found = [measurements.cell(other.id, metric).values for other in cases]
    errors = [
        next(iter(values.values()))
        for other, values in zip(cases, found, strict=True)
        if values and join_key(other) == wanted
    ]
    return max(errors, default=None)


def _key(case: Case) -> Key:
    """What a solver and a network have in common. A network has weights, and may run on a GPU of the machine, with its
    copies or without."""
    free = {"runtime", "device", "transfers", *_OF_WEIGHTS, *followers_of("runtime"), *followers_of("device")}
    return tuple((name, value) for name, value in case.factors().items() if name not in free)
