# SPDX-License-Identifier: Apache-2.0
"""An explanation in sentences: what one case loses against another, and what its kernels do in that time."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from pybench.analysis.comparability import SoftwareDifference
from pybench.analysis.findings.explanation import (
    CORE_PROBE,
    ENERGIES,
    ENOUGH_RATIO,
    LATENCY,
    Explanation,
    WorkShare,
    excludes_one,
)
from pybench.analysis.statistics.estimate import Estimate
from pybench.catalogue.metrics import METRICS
from pybench.kernels.profile import total_ms, work_of
from pybench.report.numbers import format_estimate, format_fixed, format_plain

WORK_WORDS = {
    ("multiplying", False): "multiply",
    ("moving", True): "move constants",
    ("moving", False): "move or reformat tensors",
    ("quantising", True): "quantise or dequantise constants",
    ("quantising", False): "quantise or dequantise tensors",
    ("other", False): "do anything else",
}
_DIGITS = 2  # significant digits of a time in a sentence
_WORTH_RATIO = 0.05  # of the loss: what is less is in the table alone
_WORTH_CORE = 0.02  # of the core's speed: what is less changes no conclusion
_COSTLIEST = 3  # rows named in one sentence


def sentences(explanation: Explanation) -> list[str]:
    """In the order of reading: what else differs, how much is lost, by what, and how much of it is known."""
    if not explanation.has_times:
        return [
            *_software(explanation),
            *_ratio(explanation),
            *_without_times(explanation),
            *_structure(explanation),
        ]
    return [
        *_software(explanation),
        *_totals(explanation),
        *_losses(explanation),
        *_types(explanation),
        *_rows(explanation),
        *_coverage(explanation),
        *_energies(explanation),
    ]


def milliseconds(value: float) -> str:
    """`0.14 ms`: two significant digits, and whole milliseconds from 10 on."""
    if not value:
        return "0 ms"
    return f"{format_fixed(value, max(_DIGITS - 1 - math.floor(math.log10(abs(value))), 0))} ms"


def percent(ratio: float) -> str:
    """`98.7 %`."""
    return f"{format_plain(round(100 * ratio, 1))} %"


def _software(explanation: Explanation) -> Iterator[str]:
    slow, fast = explanation.sides
    if explanation.software:
        yield software_text(slow.name, fast.name, explanation.software)


def software_text(first: str, second: str, differences: Sequence[SoftwareDifference]) -> str:
    """What speaks against comparing two cases. `differences`: `second` is the baseline."""
    told = "; ".join(f"{one.name} {one.candidate} against {one.baseline}" for one in differences)
    return f"{first} and {second} ran with different software, which may explain a difference: {told}."


# --- how much --------------------------------------------------------------------------------------------------------


def _totals(explanation: Explanation) -> Iterator[str]:
    slow, fast = explanation.sides
    yield from _ratio(explanation)
    for side in explanation.sides:
        if side.latency_ms is None:
            yield f"{side.name} has no unprofiled time: {side.why_none}."
    medians = (slow.median_ms, fast.median_ms)
    if explanation.is_shown and medians[0] is not None and medians[1] is not None and medians[0] < medians[1]:
        yield (
            f"The median iteration of {slow.name} is the faster one: single long iterations make its mean the larger. "
            "A profile does not explain those."
        )
    loss = explanation.loss_ms
    if loss > 0:
        yield f"Profiled, the kernels of {slow.name} take {milliseconds(loss)} longer than those of {fast.name}."
    else:
        yield f"Profiled, the kernels of {slow.name} are not slower: they take {milliseconds(-loss)} less." + (
            " The difference is outside of kernels, where a profile does not look, or in what profiling changes."
            if explanation.is_shown
            else ""
        )
    yield (
        "Profiles are made after every window, and their times have no intervals. "
        "Profiling changes times, so compare profiled with profiled ones only."
    )


def _ratio(explanation: Explanation) -> Iterator[str]:
    """The ratio of unprofiled times that a report has, and whether it shows a difference."""
    slow, fast = explanation.sides
    if slow.latency_ms is None or fast.latency_ms is None:
        return
    ratio = explanation.ratios.get(LATENCY)
    if ratio is None:
        yield f"No difference is shown: no pair of unprofiled runs can be compared ({explanation.why_no_ratio})."
        return
    text = f"Unprofiled, an iteration of {slow.name} takes {_factor(ratio)} the time of one of {fast.name}"
    if explanation.is_shown:
        yield f"{text}."
    elif ratio.lower is None or ratio.lower == ratio.upper:
        why = ratio.why_no_interval if ratio.lower is None else f"{ratio.n} equal repetitions give no interval"
        yield f"{text}: {why}, so no difference is shown."
    else:
        yield f"{text}: the interval includes 1, so no difference is shown. What follows is of the profiles alone."
    core = explanation.ratios.get(CORE_PROBE)
    if core is not None and excludes_one(core) and abs(core.value - 1) > _WORTH_CORE:
        yield (
            f"On the core that called {slow.name}, the same work took {_factor(core)} as long as on that of "
            f"{fast.name}. "
            "A case that waits for its core differs by this factor for that reason alone."
        )


def _factor(ratio: Estimate) -> str:
    """`1.9 times [1.2, 3.1]`."""
    value, interval = format_estimate(ratio)
    return f"{value} times {interval}" if interval else f"{value} times"


# --- by what ---------------------------------------------------------------------------------------------------------


def _losses(explanation: Explanation) -> Iterator[str]:
    slow, fast = explanation.sides
    loss = explanation.loss_ms
    least = _WORTH_RATIO * abs(loss)
    for share in explanation.shares:
        excess = share.excess_ms
        if excess > least:
            count, total = share.counts[0], len(slow.profile.running)
            of_loss = f"{milliseconds(excess)} of the {milliseconds(loss)} that {slow.name} loses"
            if excess > loss:
                of_loss = f"{slow.name} loses {milliseconds(excess)} there"
            if not explanation.is_shown:
                of_loss = f"{milliseconds(excess)} more than in the profile of {fast.name}"
            yield f"{count} of {total} kernels {_words(share)}: {of_loss}."
    for share in reversed(explanation.shares):
        if -share.excess_ms > least:
            less = f"{milliseconds(-share.excess_ms)}"
            if explanation.is_shown:
                yield f"Where kernels {_words(share)}, {slow.name} gains {less} on {fast.name}."
            else:
                yield f"Kernels that {_words(share)} take {less} less in the profile of {slow.name}."


def _words(share: WorkShare) -> str:
    return WORK_WORDS[share.work, share.constants]


def _types(explanation: Explanation) -> Iterator[str]:
    """Products of the slower side in another type than most of them."""
    slow = explanation.sides[0]
    products = work_of(slow.profile, "multiplying")
    counted = Counter(kernel.computes_in for kernel in products if kernel.computes_in is not None)
    for kind, count in counted.most_common()[1:]:
        time_ms = total_ms(kernel for kernel in products if kernel.computes_in == kind)
        yield (
            f"{count} of the {len(products)} kernels of {slow.name} that multiply compute in {kind}: "
            f"{milliseconds(time_ms)}."
        )


def _rows(explanation: Explanation) -> Iterator[str]:
    rows = explanation.rows.rows
    costly = [row for row in rows[:_COSTLIEST] if row.excess_ms > 0]
    if len(rows) <= _COSTLIEST or not costly:
        return
    nodes = ", ".join(row.nodes[0] for row in costly)
    lost = math.fsum(row.excess_ms for row in costly)
    verb = "lose" if explanation.is_shown else "differ by"
    yield f"The costliest of {len(rows)} rows, {nodes}, {verb} {milliseconds(lost)}."


# --- how much of it is known -----------------------------------------------------------------------------------------


def _coverage(explanation: Explanation) -> Iterator[str]:
    ratios = [explanation.assigned_ratio(number) for number in (0, 1)]
    told = [
        f"{percent(ratio)} of the profiled time of {side.name}"
        for ratio, side in zip(ratios, explanation.sides, strict=True)
        if ratio is not None
    ]
    yield f"Assigned to nodes: {', '.join(told)}."
    for number, ratio in enumerate(ratios):
        if ratio is not None and ratio < ENOUGH_RATIO:
            name, time_ms = explanation.sides[number].name, explanation.unassigned_ms(number)
            yield f"{milliseconds(time_ms)} of {name} is not assigned, because these kernels name no node."
    yield from _one_sided(explanation)


def _one_sided(explanation: Explanation) -> Iterator[str]:
    rows = len(explanation.rows.rows)
    alone = rows - explanation.paired
    if alone:
        yield f"{alone} of {rows} rows have kernels on one side only: the other side has no kernel of these nodes."


def _energies(explanation: Explanation) -> Iterator[str]:
    """A ratio of energies as the product of two ratios: of time, and of mean power."""
    first, second = explanation.sides
    for metric in ENERGIES:
        energy, time = explanation.ratios.get(metric), explanation.throughputs.get(metric)
        if energy is None:
            continue
        text = f"{METRICS[metric].label}: {first.name} needs {_factor(energy)} that of {second.name}"
        if time is not None:
            text += (
                f", which is {format_plain(round(1 / time.value, 3))} times the time, "
                f"at {format_plain(round(energy.value * time.value, 3))} times the mean power"
            )
        shown = "" if excludes_one(energy) else "; no difference is shown"
        yield f"{text}{shown}."


# --- without times ---------------------------------------------------------------------------------------------------


def _without_times(explanation: Explanation) -> Iterator[str]:
    absent = [side.name for side in explanation.sides if not side.profile.has_times]
    have = "has" if len(absent) == 1 else "have"
    yield (
        f"Times of kernels are absent: the profile of {' and that of '.join(absent)} {have} none. "
        "What follows is structure: nodes, kernels, types and moves."
    )
    folder = "DIR" if explanation.folder is None else shlex.quote(str(explanation.folder))
    ids = " ".join(f"--rerun {side.case.id[:12]}" for side in explanation.sides if not side.profile.has_times)
    yield (
        "Runs of this pybench store the times of layers. "
        f"On a machine with the same GPU, repeat them with `pybench run {folder} {ids}`."
    )


def _structure(explanation: Explanation) -> Iterator[str]:
    first, second = explanation.sides
    totals = [len(side.profile.running) for side in explanation.sides]
    yield f"{first.name} runs {totals[0]} kernels, {second.name} {totals[1]}."
    for share in explanation.shares:
        if share.work != "other":
            yield (
                f"Kernels that {_words(share)}: {share.counts[0]} of {totals[0]} in {first.name}, "
                f"{share.counts[1]} of {totals[1]} in {second.name}."
            )
    for side in explanation.sides:
        counted = Counter(
            kernel.computes_in or "a type that is not told" for kernel in work_of(side.profile, "multiplying")
        )
        if len(counted) > 1:
            told = ", ".join(f"{count} in {kind}" for kind, count in counted.most_common())
            yield f"{side.name} multiplies {told}."
    unassigned = sum(map(len, explanation.rows.unassigned))
    if unassigned:
        yield f"{unassigned} of {sum(totals)} kernels of both sides are assigned to no node."
    yield from _one_sided(explanation)
