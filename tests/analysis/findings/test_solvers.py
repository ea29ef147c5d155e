# SPDX-License-Identifier: Apache-2.0
"""Speed-ups of networks over solvers, on campaigns whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.analysis.findings.solvers import SolverSpeedup
from pybench.analysis.statistics.estimate import SINGLE, SKEW_T, Estimate
from pybench.case import Case
from pybench.dataset import load
from tests.support.campaigns import CampaignBuilder, build_typical
from tests.support.solvers import L1, LINF, NETWORK, build_solvers


def found_in(builder: CampaignBuilder) -> tuple[SolverSpeedup, ...]:
    return analyse(load(builder.path)).solver_speedups


@pytest.mark.parametrize(
    ("cpp_ms", "numpy_ms", "verdict", "beaten"),
    [
        (2.0, 3.0, "faster", ("cpp", "numpy")),
        (0.1, 25.0, "slow_baseline", ("numpy",)),
        (2.0, 0.5, "slow_baseline", ("cpp",)),  # the slow one is not always numpy
        (0.1, 0.5, "slower", ()),
    ],
)
def test_a_speedup_that_comes_from_a_slow_baseline_is_called_so(
    tmp_path: Path, cpp_ms: float, numpy_ms: float, verdict: str, beaten: tuple[str, ...]
) -> None:
    (found,) = found_in(build_solvers(tmp_path / "c", 1.0, {"cpp": cpp_ms, "numpy": numpy_ms}))
    assert (found.verdict, found.beaten) == (verdict, beaten)
    assert found.speedups["cpp"].value == pytest.approx(cpp_ms, rel=0.02)
    assert found.speedups["numpy"].value == pytest.approx(numpy_ms, rel=0.02)


def test_an_interval_around_1_leaves_it_open() -> None:
    around = {"cpp": Estimate(1.05, 0.9, 1.2, 8, SKEW_T), "numpy": Estimate(0.98, 0.8, 1.1, 8, SKEW_T)}
    found = SolverSpeedup(NETWORK, around, None, None)
    assert (found.verdict, found.beaten) == ("open", ())
    unknown = SolverSpeedup(NETWORK, {"cpp": Estimate(2.0, None, None, 1, SINGLE)}, None, None)
    assert unknown.verdict == "open"


def test_without_the_first_solver_nothing_is_called_faster(tmp_path: Path) -> None:
    """Its time may be too short for the clock: then the network is far slower, and beats numpy all the same."""
    (found,) = found_in(build_solvers(tmp_path / "c", 1.0, {"numpy": 25.0}))
    assert (found.verdict, found.beaten, found.unbeaten) == ("slow_baseline", ("numpy",), ("cpp",))


def test_errors_are_of_the_same_outputs(tmp_path: Path) -> None:
    (found,) = found_in(build_solvers(tmp_path / "c", 1.0, {"cpp": 2.0}))
    assert (found.l1, found.linf) == (L1, LINF)
    assert json.loads(json.dumps(found.as_json()))["verdict"] == "faster"


def test_a_network_on_a_gpu_is_compared_with_the_solver_on_the_cpu(tmp_path: Path) -> None:
    on_gpu = NETWORK.with_factors(device="cuda", transfers=True, precision="fp16")
    (found,) = found_in(build_solvers(tmp_path / "c", 1.0, {"cpp": 2.0}, network=on_gpu))
    assert found.speedups["cpp"].value == pytest.approx(2.0, rel=0.02)


def test_each_training_has_its_own_errors_and_the_same_solver(tmp_path: Path) -> None:
    solver = Case(workload="infer", model="c2p", runtime="solver", device="cpu")
    networks = [NETWORK.with_factors(checkpoint="fluid-states", training_seed=seed) for seed in (0, 1)]
    judged = [network.with_factors(workload="accuracy", batch=64) for network in networks]
    builder = CampaignBuilder(tmp_path / "c", [solver, *networks, *judged], repetitions=2)
    for block in (1, 2):
        for case, time_ms in ((solver, 2.0), (networks[0], 1.0), (networks[1], 1.0)):
            builder.run(case, block, {"latency_mean_ms": time_ms + 0.01 * block})
        for case, error in zip(judged, (1e-4, 2e-4), strict=True):
            builder.run(case, block, {"l1_error": error, "linf_error": 10 * error})
    assert [(one.case.training_seed, one.l1) for one in found_in(builder)] == [(0, 1e-4), (1, 2e-4)]


def test_another_batch_is_no_baseline(tmp_path: Path) -> None:
    assert found_in(build_solvers(tmp_path / "c", 1.0, {"cpp": 2.0}, network=NETWORK.with_factors(batch=64))) == ()


def test_a_campaign_without_solvers_says_nothing_of_them(tmp_path: Path) -> None:
    assert found_in(build_typical(tmp_path / "c", repetitions=1)) == ()
