# SPDX-License-Identifier: Apache-2.0
"""`pybench sensor ...`: the power sensor of a GPU board, and the energy of recorded traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from pybench.catalogue.reasons import reason_from_text
from pybench.catalogue.sensors import ENERGY_METHODS, FEWEST_LOADS, FUSED, SHORT_LOADS
from pybench.cli.groups import WholeSummaries
from pybench.cli.options import JsonOption
from pybench.cli.sensor_table import describe_profile
from pybench.cli.show import print_json, say
from pybench.errors import InputError, PybenchError, UnsupportedError, UsageError
from pybench.machine import profiles
from pybench.machine.sensor import Board, chosen_boards, integrate_trace, measure_profile

Device = Annotated[
    Optional[str],
    typer.Option(metavar="UUID|INDEX", help="GPU, by UUID or NVML index [default: all that CUDA shows]."),
]


def register(app: typer.Typer) -> None:
    sensor = typer.Typer(
        cls=WholeSummaries,
        invoke_without_command=True,
        help=(
            "Measure the power sensor of this machine's GPUs.\n\n"
            "Without a command, every GPU that CUDA shows is measured."
        ),
        rich_markup_mode=None,
    )
    sensor.callback()(_bare)
    for command in (measure, show, integrate):
        sensor.command()(command)
    sensor.command("list")(list_profiles)
    app.add_typer(sensor, name="sensor")


def _bare(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        measure()


def measure(
    device: Device = None,
    loads: Annotated[
        int,
        typer.Option(
            min=FEWEST_LOADS,
            metavar="N",
            help="Number of times the load is switched on; fewer is faster and less precise.",
        ),
    ] = SHORT_LOADS,
    force: Annotated[bool, typer.Option("--force", help="Measure although other processes use the GPU.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show what would be measured; start nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure how a GPU's power readings lag behind its power.

    It takes about a minute for each GPU, and every campaign on it uses the stored result. The GPU should be idle:
    pybench switches a load of its own on and off. Nothing on it is set.
    """
    measured: list[profiles.Profile] = []
    refused: list[PybenchError] = []  # the others are measured all the same
    for board in chosen_boards(device):
        if dry_run:
            where = profiles.file_of(board.uuid, board.driver)
            print(f"{board.index}  {board.uuid}  {board.name}, driver {board.driver}: about a minute, into {where}")
            continue
        try:
            profile = measure_profile(board, loads=loads, force=force)
        except UnsupportedError as error:
            refused.append(PybenchError(f"{board.uuid}: {error.message}", hint=error.hint))
            continue
        path = profiles.store(profile)
        measured.append(profile)
        if not as_json:
            print("\n".join(describe_profile(profile)))
            print(f"stored in {path}\n")
    if as_json:
        print_json({"profiles": measured})
    for other in refused[:-1]:
        say(f"error: {other}")
    if refused:
        raise refused[-1]


def show(device: Device = None, as_json: JsonOption = False) -> None:
    """Print the stored profile of this machine's GPUs under their driver."""
    found = _stored_of(device)
    if as_json:
        print_json({"profiles": found})
        return
    for profile in found:
        print("\n".join(describe_profile(profile)))


def _stored_of(device: str | None) -> list[profiles.Profile]:
    """The profiles of this machine's boards; where there is none, of a UUID that is asked for."""
    try:
        there = chosen_boards(device)
    except UnsupportedError:
        known = [profile for profile in profiles.stored().values() if not isinstance(profile, InputError)]
        found = [profile for profile in known if device and str(profile["uuid"]).startswith(device)]
        if not found:
            raise
        return found
    found = []
    for board in there:
        profile = profiles.find(board.uuid, board.driver)
        if profile is None:
            raise _unmeasured(board)
        found.append(profile)
    return found


def _unmeasured(board: Board) -> PybenchError:
    others = profiles.of_other_drivers(board.uuid, board.driver)
    but = f"; profiles of other drivers ({', '.join(others)}) do not count" if others else ""
    return PybenchError(
        f"the sensor of {board.uuid} was not measured under driver {board.driver}{but}", hint="run `pybench sensor`"
    )


def list_profiles(as_json: JsonOption = False) -> None:
    """List every stored profile, of this machine's GPUs or of others."""
    stored = profiles.stored()
    if as_json:
        good = [profile for profile in stored.values() if not isinstance(profile, InputError)]
        print_json({"folder": str(profiles.folder()), "profiles": good})
        return
    if not stored:
        say(f"no profile in {profiles.folder()}: run `pybench sensor` on a machine with a GPU")
    for profile in stored.values():
        if isinstance(profile, InputError):
            print(f"unreadable  {profile.message}")
        else:
            doubts = f", {len(profile['reasons'])} warnings" if profile.get("reasons") else ""
            print(f"{profile['uuid']}  {profile['name']}, driver {profile['driver']}, {profile['measured_at']}{doubts}")


def integrate(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="A folder with samples.csv, counter.csv, polled.csv, clocks.csv.")
    ],
    windows: Annotated[
        Path, typer.Option(metavar="FILE", help="A CSV file with start_us and end_us, on the trace's clock.")
    ],
    method: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(ENERGY_METHODS)}.")] = FUSED,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A sensor profile [default: estimate the sensor from the trace]."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute energy and uncertainty of every window of a recorded trace, without a GPU."""
    if method not in ENERGY_METHODS:
        raise UsageError(f"no method {method!r}", hint=f"choose one of {', '.join(ENERGY_METHODS)}")
    answer = integrate_trace(trace, windows, method, profile)
    if as_json:
        print_json(answer)
        return
    print(f"{'':>6}  {'begin s':>12}  {'length s':>9}  {'energy J':>11}  {'± within':>9}  {'± absolute':>10}  doubts")
    for number, window in enumerate(answer["windows"], 1):
        print(_line(number, window))
    origin = answer["sensor"]["origin"]
    print(f"\n±: 95 % interval, twice the standard uncertainty. !: not valid. Sensor: {origin}. {method}.")


def _line(number: int, window: dict[str, Any]) -> str:
    begin_s, length_s = window["start_us"] * 1e-6, (window["end_us"] - window["start_us"]) * 1e-6
    codes = ", ".join(reason_from_text(reason).stored_code for reason in window["reasons"])
    numbers = [window["energy_j"]]
    numbers += [None if window[name] is None else 2 * window[name] for name in ("u_within_j", "u_absolute_j")]
    energy, within, absolute = ("-" if value is None else f"{value:.5g}" for value in numbers)
    mark = " " if window["valid"] else "!"
    line = f"{number:>6}{mark} {begin_s:>12.6f}  {length_s:>9.4f}  {energy:>11}  {within:>9}  {absolute:>10}  {codes}"
    return line.rstrip()
