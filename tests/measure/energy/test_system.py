# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from math import hypot

import pytest

from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.measure.energy.system import system_energies
from pybench.measure.quantity import Quantity

GPU = Quantity(value=300.0, window="energy", u_standard=3.0, u_absolute=9.0, method="fused", valid=True)
CPU = Quantity(value=100.0, window="energy", u_standard=1.0, method="rapl-perf", valid=True)


def test_both_measured_in_one_window_give_a_total_and_a_share() -> None:
    found = system_energies(GPU, CPU)
    total, share = found["system_energy_j"], found["cpu_energy_share_ratio"]
    assert (total.value, total.window, total.method) == (400.0, "energy", "fused + rapl-perf")
    assert (total.u_standard, total.u_absolute) == (pytest.approx(hypot(3, 1)), pytest.approx(hypot(9, 1)))
    assert share.value == 0.25
    # By hand: d(c/(g+c)) = (g dc - c dg) / (g+c)^2.
    assert share.u_standard == pytest.approx(hypot(300 * 1, 100 * 3) / 400**2)
    assert share.u_absolute == pytest.approx(hypot(300 * 1, 100 * 9) / 400**2)
    assert share.valid is True


NO_RAPL = Quantity(window="energy", reasons=(Reason(ReasonCode.POWERCAP_ABSENT, "no zone"),))
DISAGREEING = Quantity(
    value=300.0, window="energy", valid=False, reasons=(Reason(ReasonCode.CHANNELS_DISAGREE, "by much"),)
)


@pytest.mark.parametrize(
    ("gpu", "cpu", "why"),
    [
        (GPU, NO_RAPL, ["powercap_absent"]),
        (DISAGREEING, CPU, ["channels_disagree"]),
        (DISAGREEING, NO_RAPL, ["channels_disagree", "powercap_absent"]),
    ],
)
def test_where_one_is_missing_or_invalid_there_is_neither_and_its_reasons_say_why(
    gpu: Quantity, cpu: Quantity, why: list[str]
) -> None:
    for quantity in system_energies(gpu, cpu).values():
        assert (quantity.value, quantity.valid) == (None, None)
        assert [reason.code.value for reason in quantity.reasons] == why
