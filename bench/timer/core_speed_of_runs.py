# SPDX-License-Identifier: Apache-2.0
"""How much of the spread of repeated runs does the probe of the core explain?

usage: python bench/timer/core_speed_of_runs.py CAMPAIGN

Takes the runs that have probes. The logarithms of their mean latency and of their mean probe are each centred within a
case, and a line through zero is fitted to the runs of a model. Spread is the standard deviation of repeated runs, left
is what remains of it beside the line.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
from numpy.typing import NDArray

import pybench

LATENCY, PROBE = "latency_mean_ms", "core_probe_mean_ms"


def centred_runs(folder: str) -> pl.DataFrame:
    """One row a run: `model`, `case_id`, and both logarithms, centred within the case."""
    runs = pybench.load(folder).filter(pl.col("metric").is_in([LATENCY, PROBE]))
    wide = runs.pivot("metric", index=["model", "case_id", "block"], values="value").drop_nulls()
    logs = [pl.col(name).log() - pl.col(name).log().mean().over("case_id") for name in (LATENCY, PROBE)]
    return wide.select("model", "case_id", *logs).sort("model")


def row(latency: NDArray[np.float64], probe: NDArray[np.float64], cases: int) -> str:
    slope = latency @ probe / (probe @ probe)
    left = latency - slope * probe
    free = len(latency) - cases
    spread, rest = np.sqrt(latency @ latency / free), np.sqrt(left @ left / (free - 1))
    explained = 1 - left @ left / (latency @ latency)
    slope_text = f"{slope:.2f} ± {rest / np.sqrt(probe @ probe):.2f}"
    return f"{cases} | {len(latency)} | {slope_text} | {explained:.0%} | {spread:.1%} | {rest:.1%} |"


def main() -> None:
    print("| model | cases | runs | slope | explained | spread | left |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (model,), runs in centred_runs(sys.argv[1]).group_by("model", maintain_order=True):
        cases = runs["case_id"].n_unique()
        if len(runs) > cases + 1:
            print(f"| {model} | {row(runs[LATENCY].to_numpy(), runs[PROBE].to_numpy(), cases)}")


if __name__ == "__main__":
    main()
