# SPDX-License-Identifier: Apache-2.0
"""The power sensor of a real board, measured with pybench's own load."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pybench.measure.sensor import procedure as sensor_procedure  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
]


def test_a_real_board_is_characterised_twice_alike() -> None:
    from pybench.measure.sensor.load import GpuLoad

    uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"  # of the boards that this process may use
    first, second = (
        sensor_procedure.measure_sensor(uuid, GpuLoad, seed=seed, loads=loads) for seed, loads in ((1, 30), (2, 12))
    )
    for profile in (first, second):
        assert profile.missing == ()
        assert profile.steps is not None
        assert profile.steps >= 12
        assert 0 < profile.response_s < 0.5
    for name in ("sample_delay_s", "response_s", "counter_delay_s"):
        apart = abs(getattr(first, name) - getattr(second, name))
        allowed = 4 * (getattr(first, f"u_{name}") + getattr(second, f"u_{name}"))
        assert apart < allowed + 0.0005, name
    assert first.counter_tick_s == pytest.approx(second.counter_tick_s, rel=1e-4)
