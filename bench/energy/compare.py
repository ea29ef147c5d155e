# SPDX-License-Identifier: Apache-2.0
"""How far each way of measuring a window's energy is from what the work costs, on recorded windows. Prints Markdown.

    python3 -P bench/energy/compare.py FOLDER... [--half reported|tuning|all] [--profile FILE] [--csv FILE]

FOLDER: a part as record.py writes it, or a recording with the same samples.csv, counter.csv, polled.csv, windows.csv.
Folders of one board (meta.json) share a reference and a sensor profile. The profile is characterised on the tuning half
of the first of them, or is FILE as `pybench sensor` stores it. A figure is the median over windows of |error|, the
error being joules an iteration over the reference's, less one. References (reference.py) come from the energy counter
alone: `first`, the kernel's own figure for its first seconds after rest, and `long`, over windows of 10 s.

Methods:

- pybench's fused, with the counter read back to back (`fused`) and as seldom as a session reads it (`fused, session`)
- NVML's average and instant power polled at 10 Hz, by trapezoid
- the counter's readings just outside the window subtracted
- Zeus and CodeCarbon themselves, on the third of the windows that each measured
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.stats
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[2]))  # last, so that pybench is the one that is installed

from bench.energy.recording import HALVES, REPORTED, TUNING, Recording, read_recording
from bench.energy.reference import Reference, find_reference
from pybench.errors import PybenchError
from pybench.measure.energy.integration import integrate
from pybench.measure.energy.profile import SensorProfile, profile_from_json
from pybench.measure.energy.trace import Numbers, Trace
from pybench.measure.sensor.characterise import RecordedBoard, characterise

LENGTHS_S = (0.2, 0.5, 1.0, 5.0)
BOUNDS = {0.2: 0.02, 0.5: 0.01, 1.0: 0.01, 5.0: 0.005}  # median |error| that fused must keep to
LEAST_COVERAGE = 0.9
WIDEST = {0.5: 0.03}  # median half width
SIGMAS = float(scipy.stats.norm.ppf(0.975))
FUSED, FUSED_SESSION = "fused", "fused, session"
METHODS = (FUSED, FUSED_SESSION, "average 10 Hz", "instant 10 Hz", "counter difference", "Zeus", "CodeCarbon")
REFERENCES = ("first", "long")
ALL_KERNELS = "all"


@dataclass(frozen=True, slots=True)
class Judged:
    """Windows of all boards, one array entry each.

    There are relative errors by reference and method (NaN: not measured), and the relative standard uncertainty that
    each fused method claims for its own value. There is the kernel's own variation by reference, too."""

    kernel: NDArray[np.str_]
    nominal_s: Numbers
    error: dict[tuple[str, str], Numbers]
    u: dict[str, Numbers]
    variation: dict[str, Numbers]


def main() -> None:
    arguments = parse_arguments()
    try:
        recordings = [read_recording(folder) for folder in arguments.folders]
        profile = read_profile(arguments.profile) if arguments.profile else None
        judged = judge_all(recordings, arguments.half, profile)
    except PybenchError as error:
        raise SystemExit(str(error)) from error
    print("\n".join(report(judged, arguments.half)))
    if arguments.csv:
        write_csv(arguments.csv, judged)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="judge ways of measuring energy by recorded windows")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--half", choices=(*HALVES, "all"), default=REPORTED, help="which windows are judged")
    parser.add_argument("--profile", type=Path, help="a stored sensor profile, in place of one from the tuning half")
    parser.add_argument("--csv", type=Path, help="the figures of every kernel, length, method and reference")
    return parser.parse_args()


def read_profile(path: Path) -> SensorProfile:
    return profile_from_json(json.loads(path.read_text()), str(path))


def judge_all(recordings: list[Recording], half: str, profile: SensorProfile | None) -> Judged:
    """Every recording against the reference of its board."""
    parts = []
    for board in dict.fromkeys(recording.board for recording in recordings):
        mine = [recording for recording in recordings if recording.board == board]
        of_board = profile or characterise(
            mine[0].trace, mine[0].edges_ns(mine[0].windows.of_half(TUNING)), RecordedBoard()
        )
        reference = find_reference(mine, of_board, list(LENGTHS_S))
        parts += [judge(recording, half, of_board, reference) for recording in mine]
    return join(parts)


def judge(recording: Recording, half: str, profile: SensorProfile, reference: Reference) -> Judged:
    """The windows of one recording that belong to `half` and have a length of LENGTHS_S and a reference."""
    windows = recording.windows
    kinds = list(zip(windows.kernel.tolist(), windows.nominal_s.tolist(), strict=True))
    chosen = windows.of_half(half) & np.array([kind in reference.first_j for kind in kinds])
    kinds = [kind for kind, is_chosen in zip(kinds, chosen, strict=True) if is_chosen]
    energies_j, u = measure(recording, profile)
    expected = {
        "first": np.array([reference.first_j[kind] for kind in kinds]),
        "long": np.array([reference.long_j.get(kernel, np.nan) for kernel, _ in kinds]),
    }
    return Judged(
        windows.kernel[chosen],
        windows.nominal_s[chosen],
        {
            (name, method): energy_j[chosen] / windows.iterations[chosen] / each_j - 1
            for name, each_j in expected.items()
            for method, energy_j in energies_j.items()
        },
        {method: each[chosen] for method, each in u.items()},
        {
            "first": np.array([reference.first_variation[kind] for kind in kinds]),
            "long": np.array([reference.long_variation[kind] for kind in kinds]),
        },
    )


def measure(recording: Recording, profile: SensorProfile) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """Joules of every window by each of METHODS, and the relative standard uncertainties of the fused ones."""
    windows, counter = recording.windows, recording.trace.counter
    edges = (windows.begin_ns, windows.end_ns)
    energies_j: dict[str, Numbers] = {}
    u: dict[str, Numbers] = {}
    traces: dict[str, Trace] = {FUSED: recording.trace, FUSED_SESSION: recording.with_session_counter()}
    for method, trace in traces.items():
        fused = integrate(trace, *edges, profile)
        energies_j[method], u[method] = fused.energy_j, fused.u_within_j / fused.energy_j
    polled = recording.polled_at_10_hz()
    for name in ("average", "instant"):
        energies_j[f"{name} 10 Hz"] = integrate(polled, *edges, profile, f"{name}-trapezoid").energy_j
    before, after = recording.edge_readings()
    energies_j["counter difference"] = counter.energy_j[after] - counter.energy_j[before]
    return {**energies_j, **windows.peers_j}, u


def join(parts: list[Judged]) -> Judged:
    return Judged(
        np.concatenate([part.kernel for part in parts]),
        np.concatenate([part.nominal_s for part in parts]),
        {key: np.concatenate([part.error[key] for part in parts]) for key in parts[0].error},
        {key: np.concatenate([part.u[key] for part in parts]) for key in parts[0].u},
        {key: np.concatenate([part.variation[key] for part in parts]) for key in REFERENCES},
    )


def groups(judged: Judged) -> Iterator[tuple[str, float, NDArray[np.bool_]]]:
    """Kernel (or ALL_KERNELS), length and which windows those are; only where there are any."""
    for kernel in (*np.unique(judged.kernel).tolist(), ALL_KERNELS):
        for length_s in LENGTHS_S:
            chosen = (judged.nominal_s == length_s) & ((judged.kernel == kernel) | (kernel == ALL_KERNELS))
            if chosen.any():
                yield kernel, length_s, chosen


def median_error(error: Numbers) -> tuple[float, int]:
    """Of the windows that were measured."""
    known = error[np.isfinite(error)]
    return (float(np.median(np.abs(known))), len(known)) if len(known) else (float("nan"), 0)


def coverage(error: Numbers, u: Numbers) -> tuple[float, float, float]:
    """Share of windows whose 95 % interval holds the reference, and its own 95 % interval (Clopper and Pearson).

    An error is relative to the reference, `u` to the measured value.
    """
    known = np.isfinite(error)
    hits = int(np.sum(np.abs(error[known]) <= SIGMAS * u[known] * (1 + error[known])))
    bounds = scipy.stats.binomtest(hits, int(known.sum())).proportion_ci(0.95, method="exact")
    return hits / int(known.sum()), float(bounds.low), float(bounds.high)


def report(judged: Judged, half: str) -> list[str]:
    lines = [f"{len(judged.kernel)} windows ({half}).", ""]
    for reference in REFERENCES:
        lines += [f"Median |error| in % against `{reference}`, by kernel and length:", ""]
        lines += [f"| kernel | s | n | own variation | {' | '.join(METHODS)} |", "| --- " * (4 + len(METHODS)) + "|"]
        for kernel, length_s, chosen in groups(judged):
            cells = [percent(median_error(judged.error[reference, method][chosen])[0]) for method in METHODS]
            own = percent(float(np.median(judged.variation[reference][chosen])))
            lines.append(f"| {kernel} | {length_s:g} | {chosen.sum()} | {own} | {' | '.join(cells)} |")
        lines.append("")
    for method in (FUSED, FUSED_SESSION):
        lines += [f"`{method}`, its 95 % interval of ratios on one board:", ""]
        lines += ["| kernel | s | n | half width % | covers `first` | covers `long` |", "| --- " * 6 + "|"]
        for kernel, length_s, chosen in groups(judged):
            cells = [share_text(coverage(judged.error[each, method][chosen], judged.u[method][chosen]))
                     for each in REFERENCES]  # fmt: skip
            width = percent(half_width(judged.u[method][chosen]))
            lines.append(f"| {kernel} | {length_s:g} | {chosen.sum()} | {width} | {' | '.join(cells)} |")
        lines += ["", f"`{method}` against the bounds, all kernels:", "", *verdicts(judged, method), ""]
    return lines


def verdicts(judged: Judged, method: str) -> Iterator[str]:
    """One line a length: each figure, its bound, and whether it is kept."""
    yield "| s | n | reference | median error | bound | own variation | coverage | half width | kept |"
    yield "| --- " * 9 + "|"
    for kernel, length_s, chosen in groups(judged):
        for reference in REFERENCES if kernel == ALL_KERNELS else ():
            error, u = judged.error[reference, method][chosen], judged.u[method][chosen]
            median, _ = median_error(error)
            own = float(np.median(judged.variation[reference][chosen]))
            covered = coverage(error, u)
            width = half_width(u)
            kept = median <= max(BOUNDS[length_s], own) and covered[0] >= LEAST_COVERAGE
            kept = kept and width <= WIDEST.get(length_s, np.inf)
            cells = (percent(median), percent(BOUNDS[length_s]), percent(own), share_text(covered), percent(width))
            yield f"| {length_s:g} | {chosen.sum()} | {reference} | {' | '.join(cells)} | {'yes' if kept else 'no'} |"


def half_width(u: Numbers) -> float:
    return SIGMAS * float(np.nanmedian(u))


def percent(value: float) -> str:
    return f"{100 * value:.2f}" if np.isfinite(value) else "-"


def share_text(share: tuple[float, float, float]) -> str:
    value, low, high = share
    return f"{100 * value:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def write_csv(path: Path, judged: Judged) -> None:
    """A row for each kernel, length, reference and method; `-` in no cell: what is unknown is empty."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["kernel", "nominal_s", "reference", "method", "windows", "median_abs_error", "own_variation",
             "coverage", "coverage_low", "coverage_high", "half_width"]
        )  # fmt: skip
        for kernel, length_s, chosen in groups(judged):
            for (reference, method), error in judged.error.items():
                median, count = median_error(error[chosen])
                row: list[object] = [kernel, length_s, reference, method, count, _cell(median)]
                row.append(_cell(float(np.median(judged.variation[reference][chosen]))))
                if method in judged.u:
                    u = judged.u[method][chosen]
                    row += [_cell(each) for each in (*coverage(error[chosen], u), half_width(u))]
                else:
                    row += [""] * 4
                writer.writerow(row)


def _cell(value: float) -> str:
    return f"{value:.6g}" if np.isfinite(value) else ""


if __name__ == "__main__":
    main()
