# SPDX-License-Identifier: Apache-2.0
"""Which run stands for a case, what its budget adds up to, and the absolute interval of a mean."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.analysis.findings.joules import JouleFinding
from pybench.analysis.statistics.estimate import NORMAL_95
from pybench.case import Case
from pybench.dataset import load
from pybench.measure.quantity import Quantity
from tests.support.campaigns import CampaignBuilder
from tests.support.energies import ON_A_BOARD, energy_metrics, energy_window, store_energy

INFER = Case(workload="infer", model="digits-cnn", runtime="torch")


def found(folder: Path, energies: list[float | None], *, invalid: tuple[int, ...] = ()) -> JouleFinding:
    """The finding of a case whose blocks 1, 2, ... have these energies."""
    builder = CampaignBuilder(folder / "c", [INFER], repetitions=len(energies))
    for block, energy_j in enumerate(energies, start=1):
        metrics = {} if energy_j is None else energy_metrics(energy_j)
        directory = builder.run(INFER, block, metrics, environment=ON_A_BOARD)
        store_energy(directory, energy_window(energy_j, valid=block not in invalid))
    (finding,) = analyse(load(builder.path)).joules
    return finding


@pytest.mark.parametrize(
    ("energies", "invalid", "block"),
    [
        ([610.0, 590.0, 600.0], (), 3),
        ([610.0, 590.0, 600.0, 595.0], (), 4),  # the lower middle
        ([610.0, 590.0, 600.0], (3,), 2),  # an invalid run stands for nobody while there are valid ones
        ([610.0, None, 600.0], (1, 2, 3), 3),
        ([None, None], (1, 2), 1),
    ],
)
def test_the_run_with_the_median_energy_stands_for_its_case(
    tmp_path: Path, energies: list[float | None], invalid: tuple[int, ...], block: int
) -> None:
    finding = found(tmp_path, energies, invalid=invalid)
    assert (finding.block, finding.of_runs) == (block, len(energies))
    assert finding.board.directory.block == block


def test_the_parts_add_in_squares_to_the_absolute_uncertainty(tmp_path: Path) -> None:
    finding = found(tmp_path, [600.0])
    parts = {part.name: part.u_j for part in finding.parts}
    assert parts == {"sampling": 3.0, "board_state": 4.0, "board_gain": 12.0}
    assert math.hypot(*parts.values()) == pytest.approx(13.0)
    assert finding.share(parts["board_gain"]) == pytest.approx(0.02)


def test_a_plain_method_is_off_by_a_share_of_the_energy_with_its_sign(tmp_path: Path) -> None:
    finding = found(tmp_path, [600.0])
    assert finding.plain_error("counter-difference") == pytest.approx(-0.1)
    assert finding.plain_error("average-trapezoid") is None
    assert finding.plain_error("no-such-method") is None


def test_net_and_tail_carry_the_absolute_uncertainty_of_the_same_run(tmp_path: Path) -> None:
    finding = found(tmp_path, [600.0])
    assert (finding.u_net_absolute_j, finding.u_tail_absolute_j) == (12.0, 2.5)


def test_an_energy_that_could_not_be_told_has_no_shares(tmp_path: Path) -> None:
    finding = found(tmp_path, [None])
    assert finding.share(3.0) is None
    assert finding.plain_error("counter-difference") is None
    assert finding.as_json()["plain_errors_ratio"]["counter-difference"] is None


def test_runs_that_are_not_ok_stand_for_nobody(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    directory = builder.run(INFER, 1, outcome="crashed", environment=ON_A_BOARD)
    directory.file("environment.json").write_text('{"schema_version": 1, "measuring": {"begin_ns": 0}}')
    store_energy(directory, energy_window())
    assert analyse(load(builder.path)).joules == ()


def absolute_half(folder: Path, values: list[Quantity | float]) -> float | None:
    builder = CampaignBuilder(folder / "c", [INFER], repetitions=len(values))
    for block, value in enumerate(values, start=1):
        builder.run(INFER, block, {"gpu_energy_j": value})
    return analyse(load(builder.path)).cases[0].metrics["gpu_energy_j"].absolute_95


def test_the_absolute_interval_joins_the_spread_of_runs_with_what_they_have_in_common(tmp_path: Path) -> None:
    values = [Quantity(value=value, u_absolute=10.0) for value in (600.0, 606.0, 612.0)]
    half = absolute_half(tmp_path, [*values])
    # Student's t with two degrees of freedom: 4.3027 times 6 / sqrt(3), on nearly equal values the same in logarithms.
    spread = 4.3027 * 6 / math.sqrt(3)
    assert half == pytest.approx(math.hypot(spread, NORMAL_95 * 10.0), rel=0.01)


def test_one_run_has_an_absolute_interval_of_its_own(tmp_path: Path) -> None:
    assert absolute_half(tmp_path, [Quantity(value=600.0, u_absolute=10.0)]) == pytest.approx(NORMAL_95 * 10.0)


def test_a_mean_of_which_one_value_lacks_its_uncertainty_has_no_absolute_interval(tmp_path: Path) -> None:
    assert absolute_half(tmp_path, [Quantity(value=600.0, u_absolute=10.0), 601.0]) is None
