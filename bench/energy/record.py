# SPDX-License-Identifier: Apache-2.0
"""Records one part of a campaign: windows of several kernels on a live GPU, while every channel of its power is read.

    python3 -P -m bench.energy.record FOLDER --part 0 [--parts 3] [--seconds 420] [--seed 1] [--kernels first]
    python3 -P -m bench.energy.record --part 0 --dry-run           the schedule and how long it takes; needs no GPU

Needs torch and torchvision besides pybench; Zeus and CodeCarbon measure a third of the windows each where they are
installed. on_gpu.sh prepares a machine for it. Energies are not computed here: compare.py does that, elsewhere.

FOLDER gets, with times in microseconds of the host's raw clock after a common origin:

    samples.csv   t_us, power_w                                  the driver's own buffer
    polled.csv    t_us, power_average_w, power_instant_w         every 10 ms
    counter.csv   t_call_us, t_return_us, energy_j               every 7 ms: far more often than pybench itself reads it
    counter_session.csv   the same columns                       as pybench's own sampler reads it during a run
    clocks.csv    t_us, sm_mhz, temperature_c, event_reasons
    windows.csv   kernel, nominal_s, start_us, end_us, iterations, device_s, zeus_j, codecarbon_j, peer_begin_s,
                  peer_end_s
    progress.csv  window, iterations, time_us                    how much of a window's work was done by when
    meta.json     machine, versions, kernels, plan

A value that was not read is nan. `device_s` is the window's length by the device's clock, `peer_begin_s` and
`peer_end_s` how long another tool's two calls took just outside the window.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench.energy import schedule
from bench.energy.schedule import PlannedWindow
from pybench import _native
from pybench.catalogue.causes import Cause
from pybench.errors import PybenchError, UnsupportedError
from pybench.measure import NATIVE_BUILD_ID, anchor_clock, monotonic_ns, sleep_until_ns

if TYPE_CHECKING:
    from bench.energy.kernels import Load, Mark, WindowRun
    from bench.energy.peers import Peer, TimedPeer

POLL_NS = 10_000_000
COUNTER_PAUSE_NS = 4_000_000  # between two calls, which take 3 ms at least and 16 ms at worst
SESSION_COUNTER_NS = 2_000_000_000  # what pybench.measure asks of the sampler
STATE_NS = 50_000_000
WINDOW_COLUMNS = [
    "kernel", "nominal_s", "start_us", "end_us", "iterations", "device_s",
    "zeus_j", "codecarbon_j", "peer_begin_s", "peer_end_s",
]  # fmt: skip
LATE_S = 20.0  # how far behind the plan a part may fall before the rest of it is left out


@dataclass(frozen=True, slots=True)
class Recorded:
    """One window as it ran. `peer`: what another tool measured, None where none did."""

    plan: PlannedWindow
    run: WindowRun
    marks: list[Mark]
    peer: TimedPeer | None


def main() -> None:
    arguments = parse_arguments()
    plan = schedule.plan_part(
        arguments.part, arguments.parts, arguments.seconds, arguments.seed, schedule.KERNEL_SETS[arguments.kernels]
    )
    say(schedule.describe(plan))
    if arguments.dry_run:
        return
    if arguments.folder is None:
        raise SystemExit("a folder to write to is needed")
    try:
        record(arguments, plan)
    except PybenchError as error:
        raise SystemExit(str(error)) from error


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="record one part of a live energy campaign")
    parser.add_argument("folder", type=Path, nargs="?", help="gets the recording; must not exist")
    parser.add_argument("--part", type=int, required=True, help="which part, from 0")
    parser.add_argument("--parts", type=int, default=3, help="into how many parts the campaign is cut")
    parser.add_argument("--seconds", type=float, default=420.0, help="of recording, preparing the kernels aside")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", choices=schedule.KERNEL_SETS, default="first", help="which set of them")
    parser.add_argument("--dry-run", action="store_true", help="print the schedule and stop")
    return parser.parse_args()


def record(arguments: argparse.Namespace, plan: list[PlannedWindow]) -> None:
    """Prepares, records and writes."""
    from bench.energy import kernels, peers

    nvml, device = find_device()
    arguments.folder.mkdir(parents=True)
    loads = kernels.prepare(arguments.kernels)
    for load in loads.values():
        say(f"{load.name:<20} {load.iteration_s * 1e3:9.4f} ms an iteration: {load.what}")
    others = peers.open_peers(device.index, say)
    origin_ns = monotonic_ns()
    with sampling(device, arguments.seconds) as (sampler, counter):
        recorded = list(run_windows(plan, loads, others, origin_ns))
    rows = write_channels(arguments.folder, sampler, counter, origin_ns)
    write_windows(arguments.folder, recorded, origin_ns)
    anchor = anchor_clock()
    meta = {
        "gpu": device.name, "uuid": device.uuid, "driver": nvml.driver_version, "native_build_id": NATIVE_BUILD_ID,
        "seed": arguments.seed, "part": arguments.part, "parts": arguments.parts,
        "planned": len(plan), "recorded": len(recorded), "origin_raw_ns": origin_ns,
        "anchor_raw_ns": anchor.monotonic_ns, "anchor_realtime_ns": anchor.realtime_ns,
        "intervals_ns": {"polled": POLL_NS, "counter_pause": COUNTER_PAUSE_NS, "clocks": STATE_NS},
        "samples_code": sampler.samples_code, "sampler_failure": sampler.failure or None, "rows": rows,
        "peers": {name: peer.version for name, peer in others.items()}, "versions": versions(),
        "kernels": {load.name: {"what": load.what, "iteration_s": load.iteration_s} for load in loads.values()},
    }  # fmt: skip
    (arguments.folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")
    say(json.dumps(meta))


def find_device() -> tuple[_native.NvmlLibrary, _native.NvmlDevice]:
    """The first GPU that torch sees, as NVML knows it."""
    import torch

    nvml = _native.open_nvml()
    if not nvml.available or not torch.cuda.is_available():
        raise UnsupportedError(
            f"no GPU to record ({nvml.reason or 'torch sees none'})", hint="--dry-run needs none", code=Cause.NO_GPU
        )
    uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    return nvml, next(device for device in nvml.devices() if device.uuid == uuid)


class DenseCounter:
    """Reads the energy counter on a thread of its own, call after call, as no measurement would: the call burns a core.

    The calls release the GIL, and so do torch's replays, so this thread and the one that runs the kernels meet seldom.
    """

    def __init__(self, device: _native.NvmlDevice) -> None:
        self._device = device
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="dense counter")
        self._rows: list[tuple[int, int, float]] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def counter(self) -> dict[str, NDArray[Any]]:
        """The readings, in the columns of the sampler's own."""
        begins, ends, energies = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        return {
            "begin_ns": np.array(begins, dtype=np.int64),
            "end_ns": np.array(ends, dtype=np.int64),
            "energy_mj": np.array(energies, dtype=np.float64),
        }

    def _read(self) -> None:
        while not self._stop.wait(COUNTER_PAUSE_NS / 1e9):
            reading = self._device.energy_counter()
            value = reading.energy_mj.value
            self._rows.append((reading.begin_ns, reading.end_ns, np.nan if value is None else value))


@contextmanager
def sampling(device: _native.NvmlDevice, seconds: float) -> Iterator[tuple[_native.PowerSampler, DenseCounter]]:
    """Every channel, sampled from before the first window until after the last."""
    sampler = _native.PowerSampler(device, POLL_NS, SESSION_COUNTER_NS, STATE_NS, round((seconds + 60) * 1e9))
    counter = DenseCounter(device)
    sampler.start()
    counter.start()
    try:
        yield sampler, counter
    finally:
        counter.stop()
        sampler.stop()


def run_windows(
    plan: list[PlannedWindow], loads: dict[str, Load], others: dict[str, Peer], origin_ns: int
) -> Iterator[Recorded]:
    """The windows of the plan, each after its idle; the rest is left out when the plan falls too far behind."""
    from bench.energy.peers import TimedPeer

    sleep_until_ns(origin_ns + round(schedule.LEAD_S * 1e9))
    latest_ns = origin_ns + round((schedule.total_s(plan) + LATE_S) * 1e9)
    idle_since_ns = monotonic_ns()
    for number, planned in enumerate(plan):
        if monotonic_ns() + planned.duration_s * 1e9 > latest_ns:
            say(f"out of time after {number} of {len(plan)} windows")
            break
        peer = TimedPeer(others[planned.peer]) if planned.peer in others else None
        load = loads[planned.kernel]
        say(f"{number} {planned.kernel} {planned.nominal_s:g} s {planned.peer}")
        sleep_until_ns(idle_since_ns + round(planned.idle_s * 1e9))
        if peer is not None:
            peer.begin(f"window {number}")
        run = load.run(planned.nominal_s)
        if peer is not None:
            peer.end()
        idle_since_ns = run.end_ns
        yield Recorded(planned, run, load.marks(run), peer)
    sleep_until_ns(idle_since_ns + round(schedule.LEAD_S * 1e9))


def write_channels(folder: Path, sampler: _native.PowerSampler, dense: DenseCounter, origin_ns: int) -> dict[str, int]:
    """samples.csv, polled.csv, clocks.csv and the counter's two files; returns how many rows each has."""
    samples, polled, states = sampler.driver_samples(), sampler.polled(), sampler.states()

    def us(times_ns: Any) -> Any:
        return np.rint((times_ns - origin_ns) / 1e3).astype(np.int64)

    def counter(rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {
            "t_call_us": us(rows["begin_ns"]),
            "t_return_us": us(rows["end_ns"]),
            "energy_j": rows["energy_mj"] / 1e3,
        }

    tables = {
        "samples": {"t_us": us(samples["time_ns"]), "power_w": samples["power_mw"] / 1e3},
        "polled": {
            "t_us": us((polled["begin_ns"] + polled["end_ns"]) // 2),
            "power_average_w": polled["average_mw"] / 1e3,
            "power_instant_w": polled["instant_mw"] / 1e3,
        },
        "counter": counter(dense.counter()),
        "counter_session": counter(sampler.counter()),
        "clocks": {
            "t_us": us(states["time_ns"]),
            "sm_mhz": states["sm_clock_mhz"],
            "temperature_c": states["temperature_c"],
            "event_reasons": states["throttle_reasons"],
        },
    }
    for name, columns in tables.items():
        write_table(folder / f"{name}.csv", list(columns), zip(*(c.tolist() for c in columns.values()), strict=True))
    return {name: len(next(iter(columns.values()))) for name, columns in tables.items()}


def write_windows(folder: Path, recorded: list[Recorded], origin_ns: int) -> None:
    """windows.csv and progress.csv."""
    windows, progress = [], []
    for number, window in enumerate(recorded):
        start_us, end_us = ((edge - origin_ns) / 1e3 for edge in (window.run.begin_ns, window.run.end_ns))
        energies, calls = {}, [np.nan, np.nan]
        if window.peer is not None:
            energies[window.plan.peer] = window.peer.energy_j
            calls = [window.peer.begin_s, window.peer.end_s]
        windows.append(
            [
                window.plan.kernel, window.plan.nominal_s, round(start_us), round(end_us), window.run.iterations,
                round(window.marks[-1].after_begin_s, 6),
                *(round(value, 6) for value in (energies.get("zeus", np.nan), energies.get("codecarbon", np.nan))),
                *(round(value, 6) for value in calls),
            ]
        )  # fmt: skip
        for mark in window.marks:
            progress.append([number, f"{mark.iterations:g}", round(start_us + mark.after_begin_s * 1e6)])
    write_table(folder / "windows.csv", WINDOW_COLUMNS, windows)
    write_table(folder / "progress.csv", ["window", "iterations", "time_us"], progress)


def write_table(path: Path, names: list[str], rows: Iterable[Iterable[object]]) -> None:
    """A CSV file; whole numbers of a float column are written without `.0`."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            writer.writerow(f"{cell:.10g}" if isinstance(cell, float) else cell for cell in row)


def versions() -> dict[str, str]:
    """Of what ran the kernels."""
    import torch
    import torchvision

    return {"torch": torch.__version__, "torchvision": torchvision.__version__, "cuda": str(torch.version.cuda)}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
