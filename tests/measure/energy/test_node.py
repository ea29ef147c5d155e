# SPDX-License-Identifier: Apache-2.0
"""Counters of nodes on trees that were written from the makers' documentation: no such node was at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.errors import UnsupportedError
from pybench.measure import MeasuringSession, Window, node_energy_source
from pybench.measure.energy.cpu_estimate import BusyTime
from pybench.measure.energy.difference import energies_less
from pybench.measure.energy.node import NodeEnergy, others_cpus
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import judge_energy
from tests.measure.fake_node import CrayNode
from tests.support.reasons import codes_of

SECOND = 1_000_000_000
WINDOW = Window("energy", 0, 10 * SECOND, 100)


@pytest.fixture
def node(tmp_path: Path) -> CrayNode:
    return CrayNode(tmp_path)


def measured(
    node: CrayNode, between: Callable[[], None], parts: Iterable[Quantity] = (), window: Window = WINDOW
) -> Quantity:
    energy = NodeEnergy(node.root)
    before = energy.read()
    between()
    found = energy.difference(window, before, energy.read(), parts)
    assert found is not None
    return found


def test_the_energy_is_the_difference_with_the_uncertainty_of_updates_and_whole_joules(node: CrayNode) -> None:
    found = measured(node, lambda: node.advance(10, 6000))
    assert (found.value, found.method, found.scope, found.valid) == (6000, "cray-pm-counters", "node", True)
    # 600 W for an update of 0.1 s, and 1 J, each rectangular at both edges
    assert found.u_standard == pytest.approx(((600 * 0.1) ** 2 / 6 + 1 / 6) ** 0.5)
    assert found.u_absolute is None


def test_a_controller_that_scans_more_slowly_makes_edges_less_certain(node: CrayNode) -> None:
    (node.folder / "raw_scan_hz").write_text("1 1700061210920464 us\n")
    found = measured(node, lambda: node.advance(10, 6000))
    assert found.u_standard == pytest.approx(600 / 6**0.5, rel=1e-3)


@pytest.mark.parametrize("text", ["81150367 J 1700061220920464 us\n", "81150367 J\n", "81150367\n"])
def test_older_versions_tell_no_time(node: CrayNode, text: str) -> None:
    assert measured(node, lambda: (node.folder / "energy").write_text(text) and None).value == 3000


@pytest.mark.parametrize("text", ["", "81150367 W 1700061220920464 us\n", "81150367 J 17000612"])
def test_a_text_that_is_no_energy_is_missing_and_never_zero(node: CrayNode, text: str) -> None:
    found = measured(node, lambda: (node.folder / "energy").write_text(text) and None)
    assert (found.value, found.valid) == (None, None)
    assert codes_of(found.reasons) == ("read_failed",)


def test_a_counter_that_went_back_is_null(node: CrayNode) -> None:
    found = measured(node, lambda: node.advance(10, -5000))
    assert (found.value, codes_of(found.reasons)) == (None, ("counter_reset",))


def test_a_controller_that_stopped_is_null(node: CrayNode) -> None:
    found = measured(node, lambda: None)
    assert (found.value, codes_of(found.reasons)) == (None, ("counter_stuck",))


def test_a_window_of_few_updates_is_too_short(node: CrayNode) -> None:
    short = Window("energy", 0, SECOND // 2, 10)
    found = measured(node, lambda: node.advance(0.5, 300), window=short)
    assert (found.value, codes_of(found.reasons)) == (None, ("window_too_short",))


def test_a_node_has_at_least_the_energy_of_its_parts(node: CrayNode) -> None:
    gpu = Quantity(value=5000.0, u_standard=10.0, u_absolute=150.0, scope="board", valid=True)
    cpu = Quantity(value=1300.0, u_standard=1.0, scope="package", valid=True)
    within = measured(node, lambda: node.advance(10, 6000), (gpu, cpu))
    assert within.value == 6000  # 300 J less, where the gain of the board alone makes 450 J possible
    below = measured(node, lambda: node.advance(10, 5600), (gpu, cpu))
    assert below.value is None
    assert [str(reason) for reason in below.reasons] == [
        "node_below_parts: the node's 5600 J are less than 6300 J of board and package"
    ]


def test_a_part_without_a_valid_value_says_nothing_of_the_node(node: CrayNode) -> None:
    wrong = Quantity(value=9000.0, valid=False, reasons=(Reason(ReasonCode.VIRTUALISED, "made up"),))
    missing = Quantity(reasons=(Reason(ReasonCode.PERF_ABSENT, "none"),))
    assert measured(node, lambda: node.advance(10, 6000), (wrong, missing)).value == 6000


def test_a_machine_without_counters_has_no_such_energy(tmp_path: Path) -> None:
    with MeasuringSession(root=tmp_path) as session, session.window("energy"):
        pass
    assert "node_energy_j" not in session.energy("energy")
    assert session.facts()["node_energy"] is None


def test_a_session_reads_the_node_at_the_edges_of_each_window(node: CrayNode) -> None:
    (node.folder / "raw_scan_hz").write_text("100000000\n")  # so that a window of microseconds has updates enough
    with MeasuringSession(root=node.root) as session:
        with session.window("timing"):
            node.advance(1, 400)
        node.advance(5, 2000)
        with session.window("energy"):
            node.advance(10, 6000)
    assert [session.energy(name)["node_energy_j"].value for name in ("timing", "energy")] == [400, 6000]
    assert session.facts()["node_energy"] == {
        "source": "cray-pm-counters",
        "update_s": 1e-8,
        "counters": ["energy", "accel0_energy", "cpu_energy"],
    }


def test_what_stood_before_each_iteration_is_taken_off_the_node_too() -> None:
    whole = {"node_energy_j": Quantity(value=600.0, u_standard=3.0, valid=True, window="energy")}
    part = {"node_energy_j": Quantity(value=50.0, u_standard=2.0, valid=True, window="before")}
    less = energies_less(whole, part, 2)["node_energy_j"]
    assert (less.value, less.u_standard) == (500.0, pytest.approx(5.0))


def test_the_node_stands_in_for_a_cpu_that_is_not_measured() -> None:
    missing = Quantity(reasons=(Reason(ReasonCode.PERF_ABSENT, "none"),))
    node = Quantity(value=6000.0, valid=True)
    assert judge_energy({"cpu_energy_j": missing, "node_energy_j": node}, on_gpu=False).value is True


def test_cpu_time_of_others_is_what_the_kernel_counted_beyond_ones_own() -> None:
    before, after = BusyTime(1000.0, 0.08), BusyTime(1030.08, 0.08)
    assert others_cpus(WINDOW, before, after, own_s=10.0) == pytest.approx(2.0)
    assert others_cpus(WINDOW, before, after, own_s=30.0) == pytest.approx(0.0)
    assert others_cpus(WINDOW, None, after, own_s=1.0) == 0.0


@pytest.mark.parametrize(("others_ticks", "codes"), [(1_000_000, [CautionCode.NODE_SHARED]), (0, [])])
def test_a_node_that_others_use_is_doubted(node: CrayNode, others_ticks: int, codes: list[CautionCode]) -> None:
    stat = node.root / "proc/stat"
    stat.parent.mkdir()
    stat.write_text("cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 1\n")
    with MeasuringSession(root=node.root) as session, session.window("energy"):
        stat.write_text(f"cpu  {100 + others_ticks} 0 0 100 0 0 0 0 0 0\ncpu0 1\n")
    cautions = session.cautions("energy")
    assert [caution.code for caution in cautions] == codes
    assert all(caution.metric == "node_energy_j" for caution in cautions)


def test_what_is_found_is_said_with_the_parts_inside(node: CrayNode, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert node_energy_source(node.root) == {
        "source": "Cray pm_counters, every 0.1 s",
        "parts": ["accel0_energy", "cpu_energy"],
    }
    with pytest.raises(UnsupportedError, match="no counter of the node") as caught:
        node_energy_source(tmp_path_factory.mktemp("bare"))
    assert "/sys/cray" in str(caught.value.hint)
    (node.folder / "energy").write_text("\n")
    with pytest.raises(UnsupportedError, match="gives no number"):
        node_energy_source(node.root)
