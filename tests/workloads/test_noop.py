# SPDX-License-Identifier: Apache-2.0
"""The workload that does nothing: on the CPU unless its case names a GPU, whose board it then watches at rest."""

from __future__ import annotations

import pytest

from pybench.case import Case
from pybench.errors import UnsupportedError
from tests.measure.replay import UUID
from tests.support.making import run

NOOP = Case(workload="noop", iterations=10)


def test_a_noop_times_nothing() -> None:
    result = run(NOOP)
    assert result.valid["timing"].value is None
    assert result.labels["device"] == "cpu"
    assert result.energy_budget is None


@pytest.mark.usefixtures("replayed")
@pytest.mark.parametrize("device", [UUID, "cuda"])
def test_a_gpu_that_the_case_names_is_watched_at_rest(device: str) -> None:
    result = run(NOOP.with_factors(device=device, energy_window_s=0.3, idle_window_s=0.2))
    assert result.labels["device"] == UUID
    assert result.energy_budget is not None
    net, tail = (result.metrics[name] for name in ("gpu_net_energy_j", "gpu_tail_energy_j"))
    for measured in (net, tail, result.metrics["gpu_idle_power_before_w"]):
        assert measured.value is not None
        assert measured.u_standard is not None
        assert measured.u_absolute is not None
        # A gain of up to 5 %, rectangular, is all that the absolute uncertainty adds.
        gain = (measured.u_absolute**2 - measured.u_standard**2) ** 0.5
        assert gain == pytest.approx(0.05 / 3**0.5 * abs(measured.value), rel=1e-6)


@pytest.mark.usefixtures("replayed")
def test_auto_chooses_no_gpu_for_nothing() -> None:
    result = run(NOOP)
    assert result.labels["device"] == "cpu"
    assert "gpu_energy_j" not in result.metrics


@pytest.mark.usefixtures("replayed")
def test_a_gpu_that_is_not_there_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match=UUID) as caught:
        run(NOOP.with_factors(device="GPU-11111111-2222-3333-4444-555555555555"))
    assert caught.value.reason.stored_code == "no_such_gpu"


def test_a_gpu_on_a_machine_without_one_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_NVML_LIBRARY", "libabsent-nvml.so")
    with pytest.raises(UnsupportedError, match="libabsent-nvml") as caught:
        run(NOOP.with_factors(device="cuda"))
    assert caught.value.reason.stored_code == "no_gpu"
