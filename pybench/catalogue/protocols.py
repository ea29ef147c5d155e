# SPDX-License-Identifier: Apache-2.0
"""Named protocols of analysis that a plan can ask for: a closed list, each with its tests and what threatens them.

`paired-blocks` is the house's own and is always there. The others repeat what a paper did, beside it, so that its
figures can be compared with its own tables; they are named by what they test. What they compute is
`pybench.analysis.protocols.protocol`; docs/method/protocols.md judges them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pybench.errors import UsageError

PAIRED_BLOCKS = "paired-blocks"

_REPETITIONS = (
    "The repetition (a process) is taken as an independent draw. Repetitions of one campaign share a board, an engine "
    "and a day. Variation between boards, builds and days is in none of these p values."
)
_NOT_PAIRED = (
    "The samples are paired, because every block has one run of each case. The tests take them as independent. Drift "
    "common to a block counts as noise, so these tests find less than the paired ratios do."
)
_POOLED = "Blocks are pooled: a trend over the campaign widens the samples."
_TREND = "A trend over the campaign can make Shapiro-Wilk reject a sample that is normal around the trend."
_SHORT_INTERVALS = (
    "BCa intervals are too short with few repetitions. Nominal 95 % intervals of normal samples contain the true value "
    "in 83 % of cases at 5 repetitions, 90 % at 10, 93 % at 20. Below 5 repetitions there is no interval."
)
_TWO_STEPS = (
    "The test is chosen by a test on the same data, so the level of the two steps together is not the nominal level. "
    "Shapiro-Wilk has little power with few repetitions, and rejects small deviations with many."
)
_HYPOTHESES = (
    "Welch's test compares means. Mann-Whitney's test compares ranks: the chance that a run of one case exceeds a run "
    "of the other. Two pairs of one table can therefore answer two questions."
)
_POINT_RULE = (
    "`advantageous` is decided by point estimates, without their intervals. The verdicts of the paired ratios, in the "
    "column `By intervals`, use the intervals."
)
_RAW = "The papers read p values one by one; p (Holm) covers every pair that the protocol tests in this campaign."


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol.

    name: as plans name it
    meaning: what it does, for plans' authors
    metrics: what it tests, as far as cases yield it
    interval: of a mean over repetitions
    checks_normality: whether it chooses between Welch and Mann-Whitney and tests the assumptions of ANOVA; else it uses
        Mann-Whitney throughout
    baseline: with what cases are compared where a plan declares no criteria; None: the plan has to declare some
    accept: criterion -> bound, where a plan sets none
    threats: what its method leaves open, for the report
    """

    name: str
    meaning: str
    metrics: tuple[str, ...] = ()
    interval: Literal["student", "bootstrap"] = "student"
    checks_normality: bool = False
    baseline: Mapping[str, Any] | None = None
    accept: Mapping[str, float] = field(default_factory=dict)
    threats: tuple[str, ...] = ()


_LIST = (
    Protocol(PAIRED_BLOCKS, "ratios to a baseline paired within blocks, with skew-adjusted t intervals over blocks"),
    Protocol(
        "welch-mann-whitney",
        "Shapiro-Wilk on each sample, then Welch or Mann-Whitney for all pairs; ANOVA with Tukey HSD only where its "
        "assumptions hold; Student's 95 % intervals; `advantageous` by speed-up and Top-1",
        metrics=("latency_mean_ms", "throughput_samples_per_s", "gpu_energy_per_sample_j"),
        checks_normality=True,
        baseline={"precision": "fp32"},
        accept={"speedup_min": 1.15, "top1_delta_pp_min": -1.0},
        threats=(_REPETITIONS, _NOT_PAIRED, _POOLED, _TREND, _TWO_STEPS, _HYPOTHESES, _RAW, _POINT_RULE),
    ),
    Protocol(
        "bootstrap-mann-whitney",
        "Mann-Whitney for all pairs, bootstrap intervals of the means",
        metrics=(
            "gpu_energy_per_token_j",
            "gpu_tokens_per_s_per_w",
            "throughput_tokens_per_s",
            "latency_p99_ms",
            "bandwidth_gb_per_s",
            "gpu_energy_per_gb_j",
        ),
        interval="bootstrap",
        threats=(_REPETITIONS, _NOT_PAIRED, _POOLED, _SHORT_INTERVALS, _RAW),
    ),
)

PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in _LIST}


def protocol_named(name: str) -> Protocol:
    """Raises UsageError for a name that this version does not know."""
    if name not in PROTOCOLS:
        raise UsageError(f"unknown protocol {name!r}", hint=f"use one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


def with_house(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each once, the house's own first: it is always analysed."""
    return tuple(dict.fromkeys((PAIRED_BLOCKS, *names)))
