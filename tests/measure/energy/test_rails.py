# SPDX-License-Identifier: Apache-2.0
"""Power rails of edge modules on trees that were written from the kernel's documentation: no module was at hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pybench.catalogue.devices import EDGE_DEVICES, EdgeDevice
from pybench.errors import UnsupportedError
from pybench.measure import MeasuringSession, module_energy_source, monotonic_ns, sleep_until_ns
from pybench.measure.energy.gpu_sampler import Columns
from pybench.measure.energy.rails import PowerRails, find_device, find_rails
from pybench.measure.quantity import Quantity
from pybench.measure.timing.windows import Window
from tests.measure.fake_hwmon import ORIN_NX, Module

INTERVAL_S = 0.02  # of the tests: a window of half a second is long enough, and a thread may wake 0.1 s late


@pytest.fixture
def module(tmp_path: Path) -> Module:
    return Module(tmp_path)


def sleep_s(seconds: float) -> None:
    sleep_until_ns(monotonic_ns() + round(seconds * 1e9))


def wiggle(chip: Path, seconds: float) -> None:
    """A load that moves: the last digit of each current is another in each reading, and their mean stays."""
    files = {file: int(file.read_text()) for file in chip.glob("curr*_input")}
    end_ns, turn = monotonic_ns() + round(seconds * 1e9), 1
    while monotonic_ns() < end_ns:
        for file, value in files.items():
            file.with_suffix(".new").write_text(f"{value + turn}\n")
            file.with_suffix(".new").replace(file)
        turn = -turn
        sleep_s(INTERVAL_S / 2)


def measured(module: Module, work: Callable[[], None]) -> tuple[PowerRails, Quantity, Window]:
    rails = PowerRails(module.root, INTERVAL_S)
    rails.start()
    sleep_s(4 * INTERVAL_S)
    begin_ns = monotonic_ns()
    work()
    window = Window("energy", begin_ns, monotonic_ns(), 1)
    sleep_s(4 * INTERVAL_S)
    rails.stop()
    quantity = rails.energy(window)
    assert quantity is not None
    return rails, quantity, window


def test_the_rails_of_the_row_are_added_and_those_inside_them_are_not(module: Module) -> None:
    first, _ = module.agx_orin()
    _, quantity, window = measured(module, lambda: wiggle(first, 0.5))
    assert quantity.value == pytest.approx(22.0 * window.duration_s, rel=0.005)
    assert quantity.scope == "VDD_GPU_SOC + VDD_CPU_CV + VIN_SYS_5V0"
    assert (quantity.method, quantity.valid, quantity.reasons) == ("hwmon-rails", True, ())
    assert quantity.u_absolute is None


def test_the_input_rail_contains_the_others(module: Module) -> None:
    chip = module.orin_nx()
    _, quantity, window = measured(module, lambda: wiggle(chip, 0.5))
    assert quantity.value == pytest.approx(10.0 * window.duration_s, rel=0.005)
    assert quantity.scope == "VDD_IN"


def test_a_step_of_power_inside_the_window_is_integrated(module: Module) -> None:
    chip = module.orin_nx()
    stepped_ns = []

    def step() -> None:
        wiggle(chip, 0.3)
        for file in chip.glob("curr*_input"):
            file.write_text(f"{2 * int(file.read_text())}\n")
        stepped_ns.append(monotonic_ns())
        wiggle(chip, 0.3)

    _, quantity, window = measured(module, step)
    before_s, after_s = (stepped_ns[0] - window.begin_ns) * 1e-9, (window.end_ns - stepped_ns[0]) * 1e-9
    expected_j = 10.0 * before_s + 20.0 * after_s
    assert quantity.value is not None
    assert quantity.u_standard is not None
    assert abs(quantity.value - expected_j) < 4 * quantity.u_standard + 0.02 * expected_j  # a thread may wake late


def test_a_driver_that_tells_a_power_is_taken_at_its_word(module: Module) -> None:
    module.name(ORIN_NX)  # no known module has such a driver: the row makes its rails be read
    chip = module.add_chip(0, "ina238")
    (chip / "in1_label").write_text("VIN\n")
    (chip / "in1_input").write_text("5000\n")
    (chip / "curr1_input").write_text("1000\n")
    (chip / "power1_input").write_text("7250000\n")  # uW
    rails = PowerRails(module.root, INTERVAL_S)
    rails.start()
    rails.stop()
    assert rails.channel(0)["VIN_w"] == pytest.approx(7.25)


def test_shunt_voltages_and_rails_that_are_off_are_no_rails(module: Module) -> None:
    chip = module.orin_nx()
    (chip / "in3_enable").write_text("0\n")
    assert [rail.label for rail in find_rails(module.root)] == ["VDD_IN", "VDD_CPU_GPU_CV"]


def test_a_rail_that_hwmon_does_not_show_is_null_with_its_name(module: Module) -> None:
    chip, _ = module.agx_orin()
    (chip / "in2_label").unlink()
    _, quantity, _ = measured(module, lambda: sleep_s(0.05))
    assert (quantity.value, quantity.valid) == (None, None)
    assert [str(reason) for reason in quantity.reasons] == ["rail_absent: hwmon has no rail VDD_CPU_CV"]


def test_a_rail_that_cannot_be_read_is_null_and_never_zero(module: Module) -> None:
    chip = module.orin_nx()
    (chip / "curr1_input").unlink()
    (chip / "curr1_input").mkdir()  # reading it fails for everyone, root included
    rails, quantity, _ = measured(module, lambda: sleep_s(0.1))
    assert quantity.value is None
    assert quantity.reasons[0].code == "rail_unreadable"
    assert rails.facts()["failed_reads"] > 0


def test_a_torn_number_is_missing_and_not_a_tenth(module: Module) -> None:
    chip = module.orin_nx()

    def tear() -> None:
        wiggle(chip, 0.25)
        (chip / "in1_input").write_text("500")  # of "5000\n"
        sleep_s(3 * INTERVAL_S)
        (chip / "in1_input").write_text("")
        sleep_s(INTERVAL_S)
        (chip / "in1_input").write_text("5000\n")
        wiggle(chip, 0.25)

    rails, quantity, window = measured(module, tear)
    assert rails.facts()["torn_reads"] > 0
    assert quantity.value == pytest.approx(10.0 * window.duration_s, rel=0.01)


def test_a_long_gap_is_invalid_and_says_how_long(module: Module) -> None:
    chip = module.orin_nx()

    def vanish() -> None:
        wiggle(chip, 0.2)
        (chip / "in1_input").rename(chip / "away")
        sleep_s(20 * INTERVAL_S)
        (chip / "away").rename(chip / "in1_input")
        wiggle(chip, 0.2)

    _, quantity, _ = measured(module, vanish)
    assert quantity.value is not None
    assert quantity.valid is False
    assert str(quantity.reasons[0]).startswith("gap: VDD_IN has no good reading for 0.")


def test_a_frozen_chip_is_invalid(module: Module) -> None:
    module.orin_nx()
    _, quantity, window = measured(module, lambda: sleep_s(0.5))
    assert quantity.value == pytest.approx(10.0 * window.duration_s)
    assert quantity.valid is False
    assert quantity.reasons[0].code == "rail_frozen"
    assert "of hwmon3 are the same" in quantity.reasons[0].detail


def test_a_window_of_a_few_updates_is_too_short(module: Module) -> None:
    chip = module.orin_nx()
    _, quantity, _ = measured(module, lambda: wiggle(chip, 0.2))  # 20 readings take 0.4 s
    assert quantity.valid is False
    assert [reason.code.value for reason in quantity.reasons] == ["window_too_short"]


def test_the_uncertainty_is_that_of_two_edges_at_constant_power(module: Module) -> None:
    chip = module.orin_nx()
    (chip / "update_interval").write_text("20\n")
    _, quantity, _ = measured(module, lambda: wiggle(chip, 0.5))
    assert quantity.u_standard == pytest.approx(10.0 * 0.020 / 6**0.5, rel=0.01)


def test_uncertainties_of_rails_add_up(module: Module) -> None:
    """A load that steps is in all rails, so three rails know no more than one of their sum."""
    first, second = module.agx_orin()
    for chip in (first, second):
        (chip / "update_interval").write_text("20\n")
    _, quantity, _ = measured(module, lambda: wiggle(first, 0.5))
    assert quantity.u_standard == pytest.approx(22.0 * 0.020 / 6**0.5, rel=0.02)


def test_a_session_on_a_module_stores_its_energy_and_its_rails(module: Module) -> None:
    chip = module.orin_nx()
    with MeasuringSession(root=module.root) as session:
        sleep_s(0.1)
        with session.window("energy"):
            wiggle(chip, 1.1)  # at the session's own 20 readings a second
    energy, window = session.energy("energy")["module_energy_j"], session.windows[0]
    assert energy.value == pytest.approx(10.0 * window.duration_s, rel=0.005)
    stored: dict[str, Columns] = {}
    session.write_channels(stored.__setitem__)
    assert list(stored["power_rails"])[:4] == ["gap_ns", "call_ns", "VDD_IN_v", "VDD_IN_a"]
    assert stored["power_rails"]["VDD_IN_v"] == pytest.approx(5.0)
    assert session.facts()["power_rails"]["device"] == "Jetson Orin NX or Orin Nano"


def test_another_machine_has_no_module_energy_and_no_rails(module: Module) -> None:
    with MeasuringSession(root=module.root) as session, session.window("energy"):
        pass
    assert "module_energy_j" not in session.energy("energy")
    assert session.facts()["power_rails"] is None
    session.write_channels(lambda name, _: pytest.fail(name))


def test_rails_of_an_unknown_machine_are_not_read(module: Module) -> None:
    module.add_rail(module.add_chip(0), 1, "VDD_BOARD", 12_000, 1_000)
    rails = PowerRails(module.root, INTERVAL_S)
    rails.start()
    sleep_s(4 * INTERVAL_S)
    rails.stop()
    assert rails.facts()["rails"] == ["VDD_BOARD"]
    assert len(rails.readings().begin_ns) == 0


def test_the_source_names_the_sum_or_why_there_is_none(module: Module) -> None:
    with pytest.raises(UnsupportedError, match="hwmon shows no power rail") as caught:
        module_energy_source(module.root)
    assert "Jetson AGX Orin" in str(caught.value.hint)
    chip, _ = module.agx_orin()
    module.add_rail(module.add_chip(2), 1, "FAN", 12_000, 100)
    source = module_energy_source(module.root)
    assert source["total"] == ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"]
    assert source["inside"] == ["VDDQ_VDD2_1V8AO"]
    assert source["other"] == ["FAN"]
    (chip / "in1_label").write_text("GPU\n")
    with pytest.raises(UnsupportedError, match="Jetson AGX Orin: hwmon has no rail VDD_GPU_SOC") as caught:
        module_energy_source(module.root)
    assert "ina3221" in str(caught.value.hint)


def test_rails_of_an_unknown_machine_are_named_and_not_added(module: Module) -> None:
    module.add_rail(module.add_chip(0), 1, "VDD_BOARD", 12_000, 1_000)
    with pytest.raises(UnsupportedError, match="hwmon shows the rails VDD_BOARD, and which of them") as caught:
        module_energy_source(module.root)
    assert "devices.py" in str(caught.value.hint)


@pytest.mark.parametrize("row", EDGE_DEVICES.values(), ids=EDGE_DEVICES)
def test_each_module_is_found_by_its_device_tree(row: EdgeDevice, tmp_path: Path) -> None:
    Module(tmp_path).name(f"acme,carrier\0{row.compatible}-0000\0nvidia,tegra\0")
    assert find_device(tmp_path) == row
    assert not set(row.total) & set(row.inside)
