# SPDX-License-Identifier: Apache-2.0
"""What is missing comes with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pybench.errors import UnsupportedError
from pybench.machine import EVERYTHING, ask, diagnose
from pybench.machine.diagnosis import Finding
from pybench.measure import module_energy_source, node_energy_source
from tests.measure.fake_hwmon import Module
from tests.measure.fake_node import CrayNode

_ABOUT = {"cpu": "a CPU", "cpus": "0-7", "memory_bytes": 2**34, "python": "3.11.2"}


def findings_of(**facts: Any) -> dict[str, Finding]:
    """Of a machine that has nothing but `facts`."""
    nothing = {name: {"available": False, "why": "absent"} for name in EVERYTHING}
    return {finding.what: finding for finding in diagnose({**nothing, "machine": _ABOUT, **facts})}


def test_each_capability_that_is_missing_has_a_hint() -> None:
    nowhere = {
        "power_rails": _refused(module_energy_source, Path("/nowhere")),
        "node_energy": _refused(node_energy_source, Path("/nowhere")),
    }
    missing = [one for one in findings_of(**nowhere).values() if one.status == "no"]
    assert len(missing) > 10
    assert [one.what for one in missing if not one.hint] == []


@pytest.mark.usefixtures("ready_workers")
def test_what_is_missing_is_said_in_words_and_not_in_codes() -> None:
    gpu = {
        "available": True,
        "driver": None,
        "devices": [],
        "reason": "nvml_unavailable: libnvidia-ml.so.1: no such file",
    }
    assert findings_of(gpu=gpu)["GPU energy"].detail == "libnvidia-ml.so.1: no such file"
    for finding in diagnose(ask(EVERYTHING)):
        assert not re.match(r"[a-z]+(_[a-z]+)+: ", finding.detail), finding
        assert not re.search(r"\.; |\. [A-Z]", finding.detail), finding


def test_rails_of_no_module_are_told_apart_from_those_inside_the_sum(tmp_path: Path) -> None:
    module = Module(tmp_path)
    module.orin_nx()
    module.add_rail(module.add_chip(9), 1, "FAN", 12_000, 100)
    fact = {"available": True, **module_energy_source(tmp_path)}
    finding = findings_of(power_rails=fact)["module energy"]
    assert finding.status == "yes"
    assert finding.detail.endswith(
        "rails VDD_IN; inside them, never added: VDD_CPU_GPU_CV, VDD_SOC; not of the module, not added: FAN"
    )


def test_a_machine_without_rails_is_told_where_there_are_some(tmp_path: Path) -> None:
    finding = findings_of(power_rails=_refused(module_energy_source, tmp_path))["module energy"]
    assert (finding.status, finding.detail) == ("no", "hwmon shows no power rail here")
    assert "Jetson" in str(finding.hint)


def test_the_counters_of_a_node_are_said_with_those_inside(tmp_path: Path) -> None:
    node = CrayNode(tmp_path)
    finding = findings_of(node_energy={"available": True, **node_energy_source(node.root)})["node energy"]
    assert (finding.status, finding.detail) == (
        "yes",
        "Cray pm_counters, every 0.1 s; inside it, never added: accel0_energy, cpu_energy",
    )


def test_a_board_that_takes_no_setting_has_a_hint() -> None:
    board = {"uuid": "GPU-1", "name": "a GPU", "changed": [], "ranges": {}}
    gpu = {"available": True, "driver": "580", "may_set": True, "devices": [board]}
    finding = findings_of(gpu=gpu)["GPU settings"]
    assert finding.status == "no"
    assert "`power_limit_w`" in str(finding.hint)


def _refused(source: Callable[[Path], Any], root: Path) -> dict[str, Any]:
    with pytest.raises(UnsupportedError) as caught:
        source(root)
    return {"available": False, "why": caught.value.message, "hint": caught.value.hint}
