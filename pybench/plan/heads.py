# SPDX-License-Identifier: Apache-2.0
"""Whether the heads of a network can run as a case says."""

from __future__ import annotations

import math

from pybench.case import Case
from pybench.catalogue.heads import rates_of
from pybench.catalogue.runtimes import RUNTIMES


def head_problem(case: Case) -> tuple[str, str, str] | None:
    """The factor that cannot be, what is wrong, and what to do; None: nothing is wrong."""
    runtime = case.runtime_row
    if "heads" not in case.shaping() or runtime is None:
        return None
    parts = case.parts
    is_timed = runtime.calls_module or parts is not None
    asked = next((name for name in ("dispatch", "head_rates_hz") if _is_dispatched(case, name)), None)
    if asked is not None and not is_timed:
        what = f"{case.runtime} runs all heads as one graph, so `{asked}: {getattr(case, asked)}` is not possible"
        return asked, what, f"use {' or '.join(_ways_out(case))}"
    if case.transfers and is_timed:
        what = f"{case.runtime} times each head on the device, without the copies to and from it"
        return "transfers", what, "set `transfers: false`"
    if parts is not None and case.checkpoint is not None and len(set(parts.branches)) < len(parts.branches):
        what = f"heads of one kind have one engine, and a checkpoint has weights for each of {case.heads} heads"
        return "checkpoint", what, f"leave it out, or use at most {len(set(parts.branches))} heads"
    return None if case.head_rates_hz is None else _rate_problem(case, rates_of(case.head_rates_hz))


def _ways_out(case: Case) -> list[str]:
    """What runs heads apart from each other instead, as plans say it."""
    own = ["`dispatch: streams`"] if case.with_factors(dispatch="streams").parts is not None else []
    others = [
        f"`runtime: {name}`"
        for name, row in RUNTIMES.items()
        if row.calls_module or case.with_factors(runtime=name).parts is not None
    ]
    return own + others


def _is_dispatched(case: Case, name: str) -> bool:
    """Whether a factor asks to run heads apart from each other."""
    return case.head_rates_hz is not None if name == "head_rates_hz" else case.dispatch == "streams"


def _rate_problem(case: Case, rates_hz: tuple[float, ...]) -> tuple[str, str, str] | None:
    if len(rates_hz) != case.heads:
        rates = "one rate" if len(rates_hz) == 1 else f"{len(rates_hz)} rates"
        what = f"`head_rates_hz` has {rates} for {case.heads} heads"
        rates_text = ",".join(f"{30 / (head + 1):g}" for head in range(min(case.heads, 4)))
        return "head_rates_hz", what, f'give one rate for each head in one text, as in `"{rates_text}"`'
    fastest_hz = max(rates_hz)
    if case.arrivals != "fixed" or case.arrival_rate_per_s != fastest_hz:
        what = f"frames have to arrive at the highest rate of a head, {fastest_hz:g} a second"
        return "head_rates_hz", what, f"set `arrivals: fixed` and `arrival_rate_per_s: {fastest_hz:g}`"
    if min(rates_hz) * case.iterations < fastest_hz:
        needed = math.ceil(fastest_hz / min(rates_hz))
        what = f"a head at {min(rates_hz):g} a second does not run once in {case.iterations} frames"
        return "head_rates_hz", what, f"set `iterations` to {needed} or more"
    return None
