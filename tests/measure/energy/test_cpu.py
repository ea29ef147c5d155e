# SPDX-License-Identifier: Apache-2.0
"""RAPL on fake sysfs trees, each named after the defect of another tool that it keeps out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pybench.errors import UnsupportedError
from pybench.measure import Window, cpu_energy_source
from pybench.measure.energy.cpu import CpuEnergy, CpuReading, detect_container, detect_virtual_machine
from pybench.measure.energy.cpu_estimate import BusyTime, estimate_interval, read_busy_time
from pybench.measure.energy.rapl import Accumulator, PowercapFile
from tests.measure.fake_rapl import RANGE_UJ, Machine

SECOND = 1_000_000_000
WINDOW = Window("energy", 0, 10 * SECOND, 100)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def measured(machine: Machine, between: Callable[[], None]) -> tuple[CpuEnergy, CpuReading, CpuReading]:
    energy = machine.energy()
    before = energy.read()
    between()
    return energy, before, energy.read()


def test_a_package_alone_is_its_difference(machine: Machine) -> None:
    machine.add_zone("intel-rapl:0", "package-0")
    quantity = CpuEnergy.difference(*_with_window(measured(machine, lambda: machine.rise(500))))
    assert quantity.value == pytest.approx(500)
    assert (quantity.method, quantity.scope, quantity.valid) == ("rapl-powercap", "package", True)
    # 50 W for one update of 1 ms, rectangular at both edges
    assert quantity.u_standard == pytest.approx(50 * 1e-3 / 6**0.5)
    assert quantity.u_absolute is None


def test_package_dram_psys_core_and_uncore_are_never_counted_twice(machine: Machine) -> None:
    for zone, name in (
        ("intel-rapl:0", "package-0"),
        ("intel-rapl:0:0", "core"),
        ("intel-rapl:0:1", "uncore"),
        ("intel-rapl:0:2", "dram"),
        ("intel-rapl:1", "package-1"),
        ("intel-rapl:1:0", "dram"),
        ("intel-rapl:2", "psys"),
    ):
        machine.add_zone(zone, name)
    quantity = CpuEnergy.difference(*_with_window(measured(machine, lambda: machine.rise(100))))
    assert quantity.value == pytest.approx(400)  # two packages and the memory of each
    assert quantity.scope == "package+dram"


def test_the_mmio_twin_of_a_package_is_dropped(machine: Machine) -> None:
    machine.add_zone("intel-rapl:0", "package-0")
    machine.add_zone("intel-rapl-mmio:0", "package-0")
    energy, before, after = measured(machine, lambda: machine.rise(7, "intel-rapl:0"))
    assert [domain.name for domain in energy.domains] == ["package-0"]
    assert energy.difference(WINDOW, before, after).value == pytest.approx(7)


def test_codecarbons_failed_read_is_missing_and_not_a_wrap(machine: Machine) -> None:
    machine.add_zone("intel-rapl:0", "package-0")
    energy = machine.energy()
    before = energy.read()
    file = machine.zones["intel-rapl:0"]
    good = file.read_text()
    file.write_text("")  # what a read that fails half way gives
    failed = energy.read()
    file.write_text(good)
    machine.rise(10)
    after = energy.read()
    assert energy.difference(WINDOW, before, failed).value is None
    assert energy.difference(WINDOW, before, failed).reasons[0].code == "read_failed"
    assert energy.difference(WINDOW, before, after).value == pytest.approx(10)  # CodeCarbon: 1,020 J, after 261,133 J


def test_a_wrap_inside_the_window_is_neither_negative_nor_zero(machine: Machine) -> None:
    # Zeus: low by the whole range; EnergiBridge: a panic or -250,769 J; carbontracker: 0 W.
    machine.add_zone("intel-rapl:0", "package-0", energy_uj=RANGE_UJ - 3_000_000)
    quantity = CpuEnergy.difference(*_with_window(measured(machine, lambda: machine.rise(500))))
    assert quantity.value == pytest.approx(500)
    assert quantity.valid is True


def test_a_gap_that_could_hide_a_whole_wrap_is_invalid(machine: Machine) -> None:
    machine.add_zone("intel-rapl:0", "package-0")
    accumulator = Accumulator(PowercapFile(machine.zones["intel-rapl:0"]), RANGE_UJ * 1e-6)
    accumulator.update(0)
    accumulator.update(200 * SECOND)
    assert accumulator.trouble is None
    accumulator.update(500 * SECOND)  # 262 kJ at 1 kW last 262 s
    assert accumulator.trouble is not None
    assert accumulator.trouble.code == "counter_gap"


def test_more_energy_than_a_package_can_draw_is_not_counted(machine: Machine) -> None:
    machine.add_zone("intel-rapl:0", "package-0")
    energy, before, after = measured(machine, lambda: machine.rise(5_000))
    quantity = energy.difference(WINDOW, before, after)
    assert quantity.valid is False
    assert str(quantity.reasons[0]).startswith("implausible")


def test_two_threads_that_read_at_once_take_turns(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.add_zone("intel-rapl:0", "package-0")
    energy = machine.energy()
    before = energy.read().totals_j
    read_file = PowercapFile.read
    poller = threading.Thread(target=energy.read)

    def read(file: PowercapFile) -> float:
        value_j = read_file(file)
        if threading.current_thread() is not poller:
            machine.rise(10)
            poller.start()
            poller.join(0.2)  # it would store a later value first
        return value_j

    monkeypatch.setattr(PowercapFile, "read", read)
    energy.read()
    poller.join()
    accumulator = energy.domains[0].accumulator
    assert accumulator.trouble is None
    assert accumulator.total_j - before["package-0"] == pytest.approx(10)


def test_no_counter_is_null_with_reasons_and_never_zero(machine: Machine) -> None:
    # CodeCarbon #1316 counts 0 kWh in silence; pyJoules #54 succeeds with no domain at all.
    energy, before, after = measured(machine, lambda: None)
    quantity = energy.difference(WINDOW, before, after)
    assert (quantity.value, quantity.valid, quantity.method) == (None, None, "unavailable")
    assert [reason.code for reason in quantity.reasons] == ["perf_absent", "powercap_absent"]


def test_a_file_that_exists_and_never_moves_is_no_counter(machine: Machine) -> None:
    machine.add_zone("intel-rapl:0", "package-0", energy_uj=0)
    energy = CpuEnergy(machine.root, load=lambda: None)  # KVM answers 0 whatever runs
    assert energy.domains == []
    assert any(str(reason).startswith("counter_dead") for reason in energy.reasons)


def test_powercap_masked_by_a_containers_runtime_says_how_to_give_it_back(machine: Machine) -> None:
    # Docker, Podman and Kubernetes cover /sys/devices/virtual/powercap: the class's links stay and lead nowhere.
    folder = machine.root / "sys/class/powercap"
    folder.mkdir(parents=True)
    (folder / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl/intel-rapl:0")
    energy = machine.energy()
    assert energy.domains == []
    masked = next(reason for reason in energy.reasons if str(reason).startswith("powercap_masked: intel-rapl:0"))
    assert "/sys/devices/virtual/powercap" in str(masked)


def test_a_counter_that_root_alone_may_read_is_unavailable(machine: Machine) -> None:
    machine.add_zone("intel-rapl:0", "package-0")
    machine.zones["intel-rapl:0"].unlink()
    machine.zones["intel-rapl:0"].mkdir()  # reading it fails for everyone, root included
    machine.zones.clear()
    energy = machine.energy()
    assert energy.domains == []
    assert any(str(reason).startswith("powercap_unreadable: intel-rapl:0") for reason in energy.reasons)


def test_memory_without_its_package_is_not_called_the_cpus_energy(machine: Machine) -> None:
    machine.add_zone("intel-rapl:0", "package-0")
    machine.add_zone("intel-rapl:0:0", "dram")
    energy = CpuEnergy(machine.root, load=lambda: machine.rise(1.0, "intel-rapl:0:0"))
    assert energy.domains == []


def test_half_of_two_packages_is_not_the_cpus_energy(machine: Machine) -> None:
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1")):
        machine.add_zone(zone, name)
    still = CpuEnergy(machine.root, load=lambda: machine.rise(1.0, "intel-rapl:0"))
    assert still.domains == []
    assert any(str(reason) == "counter_dead: powercap package-1 does not move under load" for reason in still.reasons)
    machine.zones.pop("intel-rapl:1").unlink()
    hidden = machine.energy()
    assert hidden.domains == []
    assert any(str(reason).startswith("powercap_masked: intel-rapl:1") for reason in hidden.reasons)


def test_memory_of_one_package_of_two_does_not_count(machine: Machine) -> None:
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1"), ("intel-rapl:1:0", "dram")):
        machine.add_zone(zone, name)
    machine.add_zone("intel-rapl:0:0", "dram")
    machine.zones.pop("intel-rapl:0:0").unlink()
    quantity = CpuEnergy.difference(*_with_window(measured(machine, lambda: machine.rise(100))))
    assert (quantity.value, quantity.scope) == (pytest.approx(200), "package")


@dataclass
class FakeEvent:
    """A perf event of 2^-32 J a count that rises by a joule with every read."""

    count: int = 0

    def read(self) -> int:
        self.count += 1 << 32
        return self.count


def add_perf(root: Path, *events: str, cpus: str = "0") -> None:
    device = root / "sys/bus/event_source/devices/power"
    (device / "events").mkdir(parents=True)
    (device / "type").write_text("9\n")
    (device / "cpumask").write_text(f"{cpus}\n")
    for number, event in enumerate(events, start=1):
        (device / "events" / event).write_text(f"event=0x{number:02x}\n")
        (device / "events" / f"{event}.scale").write_text("2.3283064365386962890625e-10\n")


def test_perf_is_preferred_and_opened_once_a_package(machine: Machine) -> None:
    add_perf(machine.root, "energy-pkg", "energy-psys", "energy-ram", cpus="0,24")
    machine.add_zone("intel-rapl:0", "package-0")
    opened: list[tuple[int, int, int]] = []

    def open_event(type_number: int, config: int, cpu: int) -> FakeEvent:
        opened.append((type_number, config, cpu))
        return FakeEvent()

    energy = CpuEnergy(machine.root, open_event=open_event, load=lambda: None)
    assert opened == [(9, 1, 0), (9, 1, 24), (9, 3, 0), (9, 3, 24)]  # psys, event 2, is left alone
    before, after = energy.read(), energy.read()
    quantity = energy.difference(WINDOW, before, after)
    assert quantity.value == pytest.approx(4.0)  # one joule in each of two packages and their memories
    assert (quantity.method, quantity.scope) == ("rapl-perf", "package+dram")


def test_perf_without_permission_falls_back_to_powercap_and_says_so(machine: Machine) -> None:
    add_perf(machine.root, "energy-pkg")
    machine.add_zone("intel-rapl:0", "package-0")

    def refuse(type_number: int, config: int, cpu: int) -> FakeEvent:
        raise PermissionError(13, "Permission denied")

    energy = CpuEnergy(machine.root, open_event=refuse, load=lambda: machine.rise(1.0))
    assert [domain.source for domain in energy.domains] == ["powercap"]
    assert str(energy.reasons[0]).startswith("perf_unreadable: energy-pkg: [Errno 13] Permission denied")


def test_perf_of_one_package_of_two_falls_back_to_powercap(machine: Machine) -> None:
    add_perf(machine.root, "energy-pkg", cpus="0,24")
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1")):
        machine.add_zone(zone, name)

    def open_event(type_number: int, config: int, cpu: int) -> FakeEvent:
        if cpu == 24:
            raise OSError(19, "No such device")
        return FakeEvent()

    energy = CpuEnergy(machine.root, open_event=open_event, load=lambda: machine.rise(1.0))
    assert [domain.name for domain in energy.domains] == ["package-0", "package-1"]


def test_a_real_perf_event_that_does_not_exist_is_an_oserror(machine: Machine) -> None:
    add_perf(machine.root, "energy-pkg")
    (machine.root / "sys/bus/event_source/devices/power/type").write_text("4000000000\n")
    energy = CpuEnergy(machine.root)
    assert energy.domains == []
    assert str(energy.reasons[0]).startswith("perf_unreadable: energy-pkg: [Errno")


def test_a_guests_rapl_is_kept_labelled_and_invalid(machine: Machine) -> None:
    (machine.root / "proc").mkdir()
    (machine.root / "proc/cpuinfo").write_text("flags\t\t: fpu vme hypervisor lahf_lm\n")
    (machine.root / "sys/class/dmi/id").mkdir(parents=True)
    (machine.root / "sys/class/dmi/id/sys_vendor").write_text("QEMU\n")
    machine.add_zone("intel-rapl:0", "package-0")
    quantity = CpuEnergy.difference(*_with_window(measured(machine, lambda: machine.rise(50))))
    assert quantity.value == pytest.approx(50)
    assert quantity.valid is False
    assert str(quantity.reasons[0]).startswith("virtualised: QEMU")
    assert detect_virtual_machine(machine.root) == "QEMU"


def test_bare_metal_by_a_maker_of_hypervisors_is_no_virtual_machine(machine: Machine) -> None:
    (machine.root / "sys/class/dmi/id").mkdir(parents=True)
    (machine.root / "sys/class/dmi/id/sys_vendor").write_text("Microsoft Corporation\n")  # a Surface
    assert detect_virtual_machine(machine.root) is None


def test_a_container_is_detected_by_its_runtimes_mark(machine: Machine) -> None:
    assert detect_container(machine.root) is None
    (machine.root / "run").mkdir()
    (machine.root / "run/.containerenv").touch()
    assert detect_container(machine.root) == "podman"


def test_the_source_is_named_or_its_absence_explained(machine: Machine) -> None:
    with pytest.raises(UnsupportedError, match=r"^the kernel has no perf device .*; no RAPL zone in "):
        cpu_energy_source(machine.root)


def test_the_estimate_is_an_interval_of_busy_time_and_has_no_value() -> None:
    quantity = estimate_interval(WINDOW, BusyTime(100.0, 0.04), BusyTime(110.0, 0.04))
    assert quantity.value is None
    assert quantity.interval == (pytest.approx(0.996), pytest.approx(301.2))
    assert (quantity.method, quantity.valid) == ("estimated-busy-time", None)
    per_sample = quantity.scaled(1 / 100)
    assert per_sample.interval == (pytest.approx(0.00996), pytest.approx(3.012))


def test_idle_time_is_not_busy_time(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    # user nice system idle iowait irq softirq steal guest guest_nice, in ticks of 10 ms
    (tmp_path / "proc/stat").write_text("cpu  100 10 30 9000 500 2 3 77 40 0\ncpu0 1\ncpu1 1\nintr 5\n")
    busy = read_busy_time(tmp_path)
    assert busy == BusyTime(pytest.approx(1.45), pytest.approx(0.02))


def test_an_unreadable_proc_gives_no_estimate(tmp_path: Path) -> None:
    quantity = estimate_interval(WINDOW, read_busy_time(tmp_path), read_busy_time(tmp_path))
    assert (quantity.value, quantity.interval) == (None, None)
    assert str(quantity.reasons[0]).startswith("busy_time_unreadable")


def _with_window(
    readings: tuple[CpuEnergy, CpuReading, CpuReading],
) -> tuple[CpuEnergy, Window, CpuReading, CpuReading]:
    energy, before, after = readings
    return energy, WINDOW, before, after
