# SPDX-License-Identifier: Apache-2.0
"""A solver in a network's place: the same inputs and outputs, found by iteration in float64 on the CPU.

It has no weights and no precision to choose. The solver in C++ computes on one thread; numpy does here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench import measure
from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.catalogue.refusals import refuse_transfers
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import InputError, UnsupportedError
from pybench.runtimes.session import Arrays, Iterate, Launch, TensorSpec, Wait, ended

NAME = "solver"

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Solvers:
    """What can be opened. by_name: from inputs into outputs, both with the batch first, to how many samples have no
    solution; outputs: numbers of a sample; constants_bytes: of what the equations are given."""

    by_name: Mapping[str, Callable[[Numbers, Numbers], int]]
    outputs: int
    constants_bytes: int


class SolverSession:
    """One solver, ready to run."""

    kind = "cpu"
    device = "cpu"
    device_uuid: str | None = None
    compile_s: float | None = None

    def __init__(self, given: Solvers, name: str, spec: TensorSpec) -> None:
        self.inputs: tuple[TensorSpec, ...] = (spec,)
        self.output_names: tuple[str, ...] = ()
        self.model_bytes = given.constants_bytes
        self.metadata: dict[str, str] = {}
        self.labels: dict[str, Any] = {
            "solver": name,
            "solver_threads": 1,
            "iteration": "one solution of the whole batch into new memory, and a look whether all were found",
        }
        self._solve = given.by_name[name]
        self._outputs = given.outputs

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        """A sample without a solution gives NaN."""
        states = self._states(inputs)
        found = np.empty((len(states), self._outputs))
        self._solve(states, found)
        return [found]

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        """Raises InputError in an iteration that leaves a sample unsolved: its time would be that of giving up."""
        if transfers:
            refuse_transfers(RUNTIMES[NAME], has_gpu=False)
        states, shape, solve = self._states(inputs), (len(inputs[self.inputs[0].name]), self._outputs), self._solve

        def iterate() -> None:
            without = solve(states, np.empty(shape))
            if without:
                raise InputError(
                    f"{without} of {len(states)} samples have no solution",
                    hint="feed states that a fluid can have: `inputs: normal` draws such states",
                )

        return iterate

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> measure.Replayer:
        return measure.CallReplayer(self.bind(inputs, transfers=transfers))

    def bind_feed(self) -> Launch:
        def launch(inputs: Arrays) -> Wait:
            self.run(inputs)
            return ended

        return launch

    def _states(self, inputs: Arrays) -> Numbers:
        """In C order, which the solvers take."""
        return np.ascontiguousarray(inputs[self.inputs[0].name], dtype=np.float64)


def open_case(
    given: Solvers, spec: TensorSpec, case: Case, threads: int, *, deterministic: bool = False
) -> SolverSession:
    """`given`: the solvers of the case's model. Raises UnsupportedError for a GPU."""
    if case.device not in ("auto", "cpu"):
        raise UnsupportedError(
            f"{NAME} runs on the CPU, and device {case.device} is asked for", code=Cause.NO_GPU, hint="set device: cpu"
        )
    return SolverSession(given, case.solver, spec)
