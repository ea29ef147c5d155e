# SPDX-License-Identifier: Apache-2.0
"""`pybench sensor ...`: the power sensor of a GPU board, and the energy of recorded traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from pybench.errors import UsageError
from pybench.machine.sensor import integrate_trace

METHODS = (
    "fused",
    "samples-trapezoid",
    "instant-trapezoid",
    "average-trapezoid",
    "counter-difference",
    "counter-interpolated",
)


def register(app: typer.Typer) -> None:
    sensor = typer.Typer(no_args_is_help=True, help="The power sensor of a GPU board.", rich_markup_mode=None)
    sensor.command()(integrate)
    app.add_typer(sensor, name="sensor")


def integrate(
    trace: Annotated[Path, typer.Argument(help="A folder with samples.csv, counter.csv, polled.csv, clocks.csv.")],
    windows: Annotated[Path, typer.Option(help="A CSV file with start_us and end_us, on the trace's clock.")],
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = METHODS[0],
    profile: Annotated[
        Path | None, typer.Option(help="A sensor profile; without one, the sensor is judged from the trace itself.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Energy and uncertainty of every window of a recorded trace, without a GPU."""
    if method not in METHODS:
        raise UsageError(f"no method {method!r}", hint=f"choose one of {', '.join(METHODS)}")
    answer = integrate_trace(trace, windows, method, profile)
    if as_json:
        print(json.dumps(answer, indent=1))
        return
    print(f"{'':>6}  {'begin s':>12}  {'length s':>9}  {'energy J':>11}  {'± within':>9}  {'± absolute':>10}  doubts")
    for number, window in enumerate(answer["windows"], 1):
        print(_line(number, window))
    origin = answer["sensor"]["origin"]
    print(f"\n± is 95 %: twice the standard uncertainty. ! marks what must not be used. Sensor: {origin}. {method}.")


def _line(number: int, window: dict[str, Any]) -> str:
    begin_s, length_s = window["start_us"] * 1e-6, (window["end_us"] - window["start_us"]) * 1e-6
    codes = ", ".join(reason.partition(":")[0] for reason in window["reasons"])
    numbers = [window["energy_j"]]
    numbers += [None if window[name] is None else 2 * window[name] for name in ("u_within_j", "u_absolute_j")]
    energy, within, absolute = ("-" if value is None else f"{value:.5g}" for value in numbers)
    mark = " " if window["valid"] else "!"
    return f"{number:>6}{mark} {begin_s:>12.6f}  {length_s:>9.4f}  {energy:>11}  {within:>9}  {absolute:>10}  {codes}"
