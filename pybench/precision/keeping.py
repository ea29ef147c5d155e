# SPDX-License-Identifier: Apache-2.0
"""Which nodes have to stay in FP32 so that a quantised graph is near its origin: a search under a bound of the error.

1. Rank: the error with one unit alone quantised, for each unit.
2. Bisect: the fewest units from the top of the ranking that meet the bound when they are kept.
3. Prune: each kept unit is quantised again if the bound still holds, the one with the least error first, until none is.

With n units, of which the ranking keeps k, at most 1 + n + log2(n) + k graphs are tried. Each pass of pruning that
leaves a unit out adds as many as are still kept. No single unit of the result can be left out; another set may still be
smaller. Layers that stay in floating point by such a ranking: Wu et al. 2020, section 6.1 (arXiv:2004.09602). Knows no
files: the caller runs the graphs. At least one unit stays quantised, for with none of them nothing is left to measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pybench.errors import InputError
from pybench.onnx_file.graph import OnnxGraph
from pybench.onnx_file.products import DEQUANTISE, QUANTISE
from pybench.precision.audit import quantised_nodes
from pybench.precision.execution import Agreement
from pybench.precision.network import Network

Step = Literal["nothing kept", "one quantised", "bisection", "one less"]


@dataclass(frozen=True, slots=True)
class KeepableUnit:
    """What is kept as a whole.

    name: of the convolution or product, or of another node that none of them is in front of
    nodes: its own name, and those of others that the quantiser rounds with it
    """

    name: str
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Trial:
    """One graph that was run.

    step: what it was tried for
    kept: names of the units in FP32, in running order
    agreement: of its outputs with those in FP32
    """

    step: Step
    kept: tuple[str, ...]
    agreement: Agreement

    @property
    def signal_error(self) -> float:
        """Norm of the difference over what the inputs change, 1; infinite where it is no number."""
        error = self.agreement.signal_error
        return math.inf if error is None else error


@dataclass(frozen=True, slots=True)
class KeepSearch:
    """What a search found.

    kept: the units that stay in FP32
    trials: every graph that was run, in order; the first keeps nothing
    """

    kept: tuple[KeepableUnit, ...]
    trials: tuple[Trial, ...]

    @property
    def found(self) -> Trial:
        """The trial that keeps these units."""
        names = tuple(unit.name for unit in self.kept)
        return next(trial for trial in self.trials if trial.kept == names)

    @property
    def errors_alone(self) -> dict[str, float | None]:
        """Unit -> the signal error with it alone quantised; empty where nothing had to be kept."""
        names = {name for trial in self.trials for name in trial.kept}
        ranked = [trial for trial in self.trials if trial.step == "one quantised"]
        return {(names - set(trial.kept)).pop(): trial.agreement.signal_error for trial in ranked}


def search(units: Sequence[KeepableUnit], run: Callable[[frozenset[str]], Agreement], error_max: float) -> KeepSearch:
    """Few units to keep so that the signal error is at most `error_max`.

    units: in running order; run: runs the graph in which these nodes are kept

    Raises InputError where the bound is not met with all units but one kept.
    """
    trials = _Trials(units, run, error_max)
    if trials.meets((), "nothing kept"):
        return trials.result(())
    alone = {unit: trials.of([other for other in units if other != unit], "one quantised") for unit in units}
    ranking = sorted(units, key=lambda unit: -alone[unit].signal_error)
    least = alone[ranking[-1]].signal_error if ranking else trials.of((), "nothing kept").signal_error
    if least > error_max:
        reached = f"{least:.3g}" if least < math.inf else "no number"
        raise InputError(
            f"the signal error is {reached} with at most one of {len(units)} nodes quantised; "
            f"keep_error_max is {error_max:g}",
            hint="raise keep_error_max, or use precision: fp32",
        )
    failing, meeting = 0, len(ranking) - 1
    while meeting - failing > 1:
        middle = (failing + meeting) // 2
        if trials.meets(ranking[:middle], "bisection"):
            meeting = middle
        else:
            failing = middle
    kept, before = ranking[:meeting], 0
    while len(kept) != before:
        before = len(kept)
        for unit in reversed(kept):
            rest = [other for other in kept if other != unit]
            if trials.meets(rest, "one less"):
                kept = rest
    return trials.result(kept)


class _Trials:
    """Runs each set of units once."""

    def __init__(
        self, units: Sequence[KeepableUnit], run: Callable[[frozenset[str]], Agreement], error_max: float
    ) -> None:
        self._units, self._run, self._error_max = units, run, error_max
        self._done: dict[tuple[str, ...], Trial] = {}

    def of(self, kept: Collection[KeepableUnit], step: Step) -> Trial:
        ordered = self._ordered(kept)
        names = tuple(unit.name for unit in ordered)
        if names not in self._done:
            nodes = frozenset[str]().union(*(unit.nodes for unit in ordered))
            self._done[names] = Trial(step, names, self._run(nodes))
        return self._done[names]

    def meets(self, kept: Collection[KeepableUnit], step: Step) -> bool:
        return self.of(kept, step).signal_error <= self._error_max

    def result(self, kept: Collection[KeepableUnit]) -> KeepSearch:
        return KeepSearch(tuple(self._ordered(kept)), tuple(self._done.values()))

    def _ordered(self, kept: Collection[KeepableUnit]) -> list[KeepableUnit]:
        return [unit for unit in self._units if unit in kept]


def keepable_units(
    network: Network, quantised: OnnxGraph, named: Collection[str], *, rounds_others: bool
) -> list[KeepableUnit]:
    """The units of a quantised file, by the names that `network`, its origin, has for nodes; in running order.

    named: nodes that are kept anyhow
    rounds_others: whether the quantiser rounds a tensor for all of its readers. Operators that do not multiply then
        belong to the last unit in front of them, or else are units by themselves. Nodes that share a weight are one
        unit, for the quantiser does not leave a single one of them alone.
    """
    own = _own_names(network, quantised)
    multiplying = {own[name] for name in quantised_nodes(quantised) if name in own} - set(named)
    others = _reading_pairs(quantised, own) - multiplying - set(named) if rounds_others else set()
    place = {node.name: number for number, node in enumerate(network.nodes)}
    heads: dict[str, str] = {}  # tensor -> the last unit in front of it
    firsts: dict[str, str] = {}  # constant -> the unit that reads it first
    members: dict[str, set[str]] = {}
    for node in network.nodes:
        before = [heads[name] for name in node.input if name in heads]
        head = max(before, key=lambda name: place[name], default=None)
        if node.name in multiplying or (node.name in others and head is None):
            constants = [name for name in node.input[:2] if rounds_others and network.is_constant(name)]
            head = next((firsts[name] for name in constants if name in firsts), node.name)
            firsts |= dict.fromkeys(constants, head)
        if head is not None:
            heads |= dict.fromkeys(node.output, head)
            if node.name in multiplying | others:
                members.setdefault(head, set()).add(node.name)
    return [KeepableUnit(name, frozenset(nodes)) for name, nodes in members.items()]


def _own_names(network: Network, quantised: OnnxGraph) -> dict[str, str]:
    """Node of the quantised file -> the node of its origin: of the same name, or the one whose name a fused node's
    begins with (`product/MatMulAddFusion`)."""
    names = {node.name for node in network.nodes}
    found = {}
    for node in quantised.nodes:
        parts = node.name.split("/")
        starts = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
        origin = next((start for start in starts if start in names), None)
        if origin is not None:
            found[node.name] = origin
    return found


def _reading_pairs(quantised: OnnxGraph, own: Mapping[str, str]) -> set[str]:
    written = {name for node in quantised.nodes if node.op == DEQUANTISE for name in node.outputs}
    return {
        own[node.name]
        for node in quantised.nodes
        if node.op not in (QUANTISE, DEQUANTISE) and node.name in own and written & set(node.inputs)
    }
