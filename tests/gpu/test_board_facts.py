# SPDX-License-Identifier: Apache-2.0
"""What pynvml tells of a real board, beside CUDA, beside the sampler's own NVML, and by the laws of the driver.

Nothing is set.
"""

from __future__ import annotations

import pytest

from pybench import _native, measure
from pybench.measure import board_facts
from pybench.measure.board.nvml import MEMORY_CLOCK, SM_CLOCK, open_nvml
from pybench.measure.board.ranges import read_ranges

NVML = open_nvml()

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not NVML.boards, reason=f"no board: {NVML.reason}")]


def test_python_and_cpp_tell_the_same_boards_and_cuda_shows_some_of_them() -> None:
    theirs = _native.open_nvml()
    assert NVML.driver == theirs.driver_version
    assert [(board.uuid, board.name) for board in NVML.boards] == [(each.uuid, each.name) for each in theirs.devices()]
    assert measure.visible_gpus()
    assert all(NVML.board(uuid) is not None for uuid in measure.visible_gpus())


def test_limits_and_clocks_of_a_board_are_within_what_it_takes() -> None:
    for board in NVML.boards:
        lowest_mw, highest_mw = board.power_range_mw()
        assert 10_000 < lowest_mw <= board.limit_in_force_mw() <= board.power_limit_mw() <= highest_mw
        memory_mhz = board.memory_clocks_mhz()
        sm_mhz = board.sm_clocks_mhz(memory_mhz[-1])
        assert 0 < board.clock_mhz(SM_CLOCK) <= sm_mhz[-1]
        assert 0 < board.clock_mhz(MEMORY_CLOCK) <= memory_mhz[-1]
        assert board.throttle_reasons() >= 0


def test_the_facts_of_the_probe_are_those_of_the_board() -> None:
    facts = board_facts()
    assert set(facts) == {board.uuid for board in NVML.boards}
    for board in NVML.boards:
        ranges = read_ranges(board)
        assert facts[board.uuid] == {"ranges": ranges.as_json(), "changed": []}
        assert ranges.allows("power_limit_w", board.power_limit_mw() / 1000)
