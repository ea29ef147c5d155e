# SPDX-License-Identifier: Apache-2.0
"""A solver in a network's place: what it gives, what it refuses, and which factors mean nothing for it."""

from __future__ import annotations

import numpy as np
import pytest

from pybench.campaign.recipe import recipes_of
from pybench.case import Case
from pybench.case.contrasts import parse
from pybench.case.factors import fixed_value, idle_factors
from pybench.case.pairing import pairs
from pybench.errors import InputError, UnsupportedError
from pybench.hydro.recovery import SOLVERS
from pybench.hydro.states import draw_states
from pybench.runtimes.session import TensorSpec
from pybench.runtimes.solver import Solvers, SolverSession, open_case
from tests.support.making import run

SOLVED = Case(
    workload="infer", model="c2p-small", runtime="solver", device="cpu", batch=64, iterations=3, warmup_iterations=1,
    idle_window_s=0.0,
)  # fmt: skip


def opened(case: Case) -> SolverSession:
    spec = TensorSpec("conserved", np.dtype(np.float64), (None, 3))
    return open_case(Solvers(SOLVERS, 1, 40), spec, case, 1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_session_gives_the_pressures(solver: str) -> None:
    states = draw_states(64, 3)
    session = opened(SOLVED.with_factors(solver=solver))
    (found,) = session.run({"conserved": states.conserved})
    np.testing.assert_allclose(found, states.pressure, rtol=1e-11)
    session.bind({"conserved": states.conserved}, transfers=False)()
    assert session.labels["solver"] == solver


def test_an_iteration_that_leaves_states_unsolved_is_an_error() -> None:
    iterate = opened(SOLVED).bind({"conserved": -np.ones((2, 3))}, transfers=False)
    with pytest.raises(InputError, match="2 of 2 samples have no solution"):
        iterate()


def test_it_runs_on_the_cpu_alone() -> None:
    with pytest.raises(UnsupportedError, match="device cuda is asked for"):
        opened(SOLVED.with_factors(device="cuda"))
    with pytest.raises(UnsupportedError, match="transfers"):
        opened(SOLVED).bind({"conserved": np.ones((1, 3))}, transfers=True)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_says_what_it_computed_in(solver: str) -> None:
    result = run(SOLVED.with_factors(solver=solver, iterations=20))
    assert result.metrics["latency_mean_ms"].value > 0
    assert result.labels["precision_realised"] == "float64"
    assert result.valid["precision"].value is True
    assert result.metrics["model_bytes"].value == 40


@pytest.mark.parametrize("solver", SOLVERS)
def test_its_accuracy_is_that_of_float64(solver: str) -> None:
    result = run(SOLVED.with_factors(workload="accuracy", solver=solver, image_limit=500))
    assert result.metrics["linf_error"].value < 1e-12
    assert result.metrics["l1_error"].samples == 500


def test_precision_means_nothing_for_it_and_float64_stands_in_its_place() -> None:
    assert {"precision", "checkpoint", "calibration_images", "keep_fp32"} <= idle_factors(SOLVED)
    assert fixed_value("precision", SOLVED) == "float64"
    assert fixed_value("precision", SOLVED.with_factors(runtime="onnxruntime")) is None


def test_nothing_is_trained_for_it() -> None:
    judged = SOLVED.with_factors(workload="accuracy")
    assert recipes_of(judged) == {}
    assert recipes_of(judged.with_factors(runtime="torch")) != {}


def test_a_network_in_any_precision_is_compared_with_it() -> None:
    networks = [
        SOLVED.with_factors(runtime="onnxruntime", precision=precision, **settings)
        for precision, settings in (("fp32", {}), ("int8", {"calibration_images": 500, "calibration": "entropy"}))
    ]
    (contrast,) = parse([{"baseline": {"runtime": "solver", "solver": "cpp"}}])
    numpy_one = SOLVED.with_factors(solver="numpy")
    found = pairs([SOLVED, numpy_one, *networks], contrast)
    assert [pair.case for pair in found] == [numpy_one, *networks]
    assert {pair.baseline for pair in found} == {SOLVED}
