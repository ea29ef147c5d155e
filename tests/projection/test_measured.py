# SPDX-License-Identifier: Apache-2.0
"""Energies of tokens that a campaign has measured, as inputs of a scenario."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybench.case import Case
from pybench.dataset import Dataset, load
from pybench.errors import UsageError
from pybench.measure.quantity import Quantity
from pybench.projection import read_scenario, resolve
from pybench.projection.distributions import Distribution
from tests.projection.test_scenario import SCENARIO, written
from tests.support.campaigns import CampaignBuilder

ENERGIES_J = (1.9, 2.0, 2.1, 2.05, 1.95)
METRIC = "gpu_energy_per_token_j"


def decoder() -> Case:
    return Case(workload="infer", model="tinylm-small", runtime="torch", batch=4)


def campaign(folder: Path, u_absolute: float | None = None, blocks: int = len(ENERGIES_J)) -> Dataset:
    builder = CampaignBuilder(folder / "campaign", [decoder()], repetitions=blocks)
    for block, energy_j in enumerate(ENERGIES_J[:blocks], start=1):
        builder.run(decoder(), block, {METRIC: Quantity(value=energy_j, u_absolute=u_absolute)})
    return load(builder.path)


def resolved(folder: Path, dataset: Dataset | None, case: str, metric: str = METRIC) -> Distribution:
    measured = f"{{measured: {{case: {case}, metric: {metric}}}"
    scenario = read_scenario(
        written(folder, SCENARIO.replace('{uniform: [1, 3], source: "a paper, table 2"', measured))
    )
    return resolve(scenario, dataset)["energy.output_token_j"]


def test_repetitions_and_the_boards_gain_make_the_spread(tmp_path: Path) -> None:
    alone = resolved(tmp_path, campaign(tmp_path / "a"), decoder().id)
    with_gain = resolved(tmp_path, campaign(tmp_path / "b", u_absolute=0.2), decoder().id)
    middle, end = np.array([0.5]), np.array([0.975])
    assert alone.ppf(middle) == pytest.approx(2.0, rel=0.01)
    assert 2.05 < float(alone.ppf(end)[0]) < 2.2
    assert float(with_gain.ppf(end)[0]) > 2.35


def test_one_run_is_a_number(tmp_path: Path) -> None:
    assert resolved(tmp_path, campaign(tmp_path, blocks=1), decoder().id) == Distribution("value", (1.9,))


@pytest.mark.parametrize(
    ("case", "metric", "said"),
    [
        ("ffffffff", METRIC, "ffffffff fits no case of the plan"),
        (decoder().id, "latency_mean_ms", "energy.output_token_j: latency_mean_ms is no GPU energy of a token"),
        (decoder().id, "system_energy_per_token_j", "system_energy_per_token_j is no GPU energy of a token"),
        (decoder().id, "gpu_net_energy_per_token_j", "gpu_net_energy_per_token_j is no GPU energy of a token"),
        (decoder().id, "gpu_energy_per_output_token_j", "has no gpu_energy_per_output_token_j: not measured"),
    ],
)
def test_what_a_campaign_does_not_tell_is_one_error(tmp_path: Path, case: str, metric: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        resolved(tmp_path, campaign(tmp_path), case, metric)


def test_a_measured_input_needs_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"energy\.output_token_j is measured, and no campaign is given"):
        resolved(tmp_path, None, decoder().id)
