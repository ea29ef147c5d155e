# SPDX-License-Identifier: Apache-2.0
"""What a factor is, and how a class of `pybench.case.factors` declares one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pybench.case import idle
from pybench.case.idle import Idle, outside_its_models, outside_its_runtimes
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.workloads import FactorGroup

FactorKind = Literal["choice", "text", "file", "integer", "number", "boolean"]
RowKind = Literal["workloads", "runtimes", "models"]
TextForm = Literal["word", "name", "pattern", "cpus", "device", "sizes", "rates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One factor.

    name: as plans name it
    kind: which values it takes; a `file` is a built-in name from `choices`, or else a path
    default: its value where a plan says nothing
    meaning: what it sets, for plans' authors
    absent: what null stands for, where it is a value
    group: it means something for the workloads that take this group; elsewhere setting it is a plan error
    choices: the values of a `choice`, and the built-in names of a `file`
    rows: of which kind of rows its choices are the names; packages can then add values
    minimum, maximum: of a number
    step: what an integer is a multiple of
    form: of a `text`: any word, a name as a file has it, a regular expression, CPUs as taskset writes them, a device,
        or sizes of dimensions
    hint: what helps to choose a value, where the range alone does not
    protocol: it says how a case is measured rather than what; such factors belong into a plan's `defaults`, and tables
        show them only where they vary
    idle: when it changes nothing about a case because of another factor; a plan then resets it to its default
    usual: the field of the workload's row that is its default; null stands for that
    fixed_by: the field of the runtime's row that tables show in its place where it is idle; null: nothing stands there
    follows: where a contrast fixes one of these factors, two cases may differ in this one if it is idle in one of them
    answers: it changes what a model answers to the samples that judge it, and not only how fast; a speed is joined with
        the accuracies that agree in it (`pybench.case.pairing.join_key`)
    sets_work: it says what has to be done, or under which conditions, rather than how: of two cases that differ in it,
        neither is a better choice (`pybench.analysis.findings.planes`)
    sizes_iteration: it says how much of the work an iteration does, so that times of an iteration compete only where
        it is equal
    """

    name: str
    kind: FactorKind
    default: Any
    meaning: str
    group: FactorGroup = "run"
    choices: tuple[str, ...] = ()
    rows: RowKind | None = None
    minimum: float | None = None
    maximum: float | None = None
    step: int = 1
    form: TextForm = "word"
    hint: str | None = None
    protocol: bool = False
    absent: str = ""
    idle: Idle | None = None
    usual: str | None = None
    fixed_by: str | None = None
    follows: tuple[str, ...] = ()
    answers: bool = False
    sets_work: bool = False
    sizes_iteration: bool = False

    def workloads(self, catalogue: Catalogue = BUILT_IN) -> tuple[str, ...]:
        """Names of the workloads that it means something for."""
        return tuple(name for name, workload in catalogue.workloads.items() if workload.uses(self.group))


def factor(
    kind: FactorKind, default: Any, meaning: str, group: FactorGroup = "run", *, answers: bool, **facts: Any
) -> Any:
    """A field of `Factors`. Each says whether it changes answers. `facts`: further fields of its `Factor`."""
    return field(
        default=default, metadata={"kind": kind, "meaning": meaning, "group": group, "answers": answers, **facts}
    )


def runtime_factor(
    name: str,
    kind: FactorKind,
    default: Any,
    meaning: str,
    group: FactorGroup = "runtime",
    follows: tuple[str, ...] = ("runtime",),
    *,
    answers: bool,
    **facts: Any,
) -> Any:
    """A field of `Factors` that only some runtimes have."""
    return factor(
        kind, default, meaning, group, answers=answers, idle=outside_its_runtimes(name), follows=follows, **facts
    )


def quantising_factor(kind: FactorKind, default: Any, meaning: str, rule: Idle, **facts: Any) -> Any:
    """A field of `Factors` that follows the precision. `rule`: when it changes nothing."""
    follows = ("precision", "runtime")
    return factor(kind, default, meaning, "quantising", answers=True, idle=rule, follows=follows, **facts)


def shaping_factor(name: str, kind: FactorKind, default: Any, meaning: str, **facts: Any) -> Any:
    """A field of `Factors` that the layers of some models follow."""
    idle_outside = outside_its_models(name)
    fixed: dict[str, Any] = {"idle": idle_outside, "follows": ("model",), "sets_work": True}
    return factor(kind, default, meaning, "shaping", answers=True, **fixed, **facts)


def board_setting(meaning: str, unit: str) -> Any:
    """A field of `Factors` that sets the board of a GPU."""
    hint = f"in {unit}; `pybench doctor` lists what the board accepts; null keeps the current value"
    facts: dict[str, Any] = {"idle": idle.NO_BOARD, "follows": ("device",), "hint": hint}
    return factor("integer", None, meaning, "board", answers=False, minimum=1, absent="unchanged", **facts)
