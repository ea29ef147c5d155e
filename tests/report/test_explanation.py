# SPDX-License-Identifier: Apache-2.0
"""What an explanation says of known numbers, and its tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pybench.analysis.findings.explanation import (
    CORE_PROBE,
    LATENCY,
    MEDIAN,
    THROUGHPUT,
    ExplainedCase,
    Explanation,
    explained,
)
from pybench.analysis.statistics.estimate import EQUAL, SINGLE, SKEW_T, Estimate
from pybench.case import Case
from pybench.kernels.profile import Kernel, Profile, Work
from pybench.report.explanation import milliseconds, sentences
from pybench.report.explanation_tables import explanation_tables
from pybench.report.tables import to_text

FP16 = Case(workload="infer", model="resnet50", runtime="tensorrt", precision="fp16")


def kernel(name: str, work: Work, time_ms: float | None, *nodes: str, kind: str | None = None) -> Kernel:
    constants = name.startswith("constant")
    return Kernel(name=name, kernel=name, work=work, nodes=nodes, computes_in=kind, of_constants=constants,
                  reads=(f"{name}_in",), writes=(f"{name}_out",), time_ms=time_ms)  # fmt: skip


def side(
    precision: str,
    *kernels: Kernel,
    latency_ms: float | None = None,
    median_ms: float | None = None,
) -> ExplainedCase:
    profile = Profile(source="tensorrt", method="by hand", iterations=1, kernels=kernels)
    case = FP16.with_factors(precision=precision)
    why_none = None if latency_ms is not None else "timing was throttled"
    given = {LATENCY: latency_ms, MEDIAN: median_ms}
    estimates = {metric: estimate(value) for metric, value in given.items() if value is not None}
    return ExplainedCase(case, precision, profile, estimates, why_none)


def estimate(value: float, lower: float | None = None, upper: float | None = None) -> Estimate:
    """Ten per cent to either side where no bounds are given."""
    return Estimate(value, lower or value / 1.1, upper or value * 1.1, 5, SKEW_T)


def int8(**given: float | None) -> ExplainedCase:
    constants = [kernel(f"constant{number}", "moving", 0.0035, f"bias{number}") for number in range(40)]
    products = [kernel(f"conv{number}", "multiplying", 0.01, f"conv{number}", kind="int8") for number in range(9)]
    head = kernel("conv9", "multiplying", 0.08, "conv9", kind="fp32")
    return side("int8", *constants, *products, head, **given)


def fp16(**given: float | None) -> ExplainedCase:
    products = [kernel(f"conv{number}", "multiplying", 0.01, f"conv{number}", kind="fp16") for number in range(10)]
    return side("fp16", *products, **given)


@pytest.fixture
def known() -> Explanation:
    return explained(fp16(latency_ms=0.2), int8(latency_ms=0.4), {LATENCY: estimate(0.5)})


def test_a_loss_is_told_with_what_its_kernels_do(known: Explanation) -> None:
    told = sentences(known)
    assert told[0] == "Unprofiled, an iteration of int8 takes 2.00 times [1.82, 2.20] the time of one of fp16."
    assert told[1] == "Profiled, the kernels of int8 take 0.21 ms longer than those of fp16."
    assert "40 of 50 kernels move constants: 0.14 ms of the 0.21 ms that int8 loses." in told
    assert "10 of 50 kernels multiply: 0.070 ms of the 0.21 ms that int8 loses." in told


def test_products_in_another_type_are_named(known: Explanation) -> None:
    assert "1 of the 10 kernels of int8 that multiply compute in fp32: 0.080 ms." in sentences(known)


def test_what_is_assigned_is_said_and_what_is_not(known: Explanation) -> None:
    assert "Assigned to nodes: 100 % of the profiled time of int8, 100 % of the profiled time of fp16." in sentences(
        known
    )
    stray = side("int8", kernel("conv", "multiplying", 0.5, "conv"), kernel("stray", "other", 0.5), latency_ms=2.0)
    told = sentences(explained(stray, side("fp16", kernel("conv", "multiplying", 0.5, "conv"), latency_ms=1.0), {}))
    assert "0.50 ms of int8 is not assigned, because these kernels name no node." in told


def test_kernels_that_are_not_slower_do_not_explain_a_slower_case() -> None:
    told = sentences(explained(int8(latency_ms=0.1), fp16(latency_ms=0.4), {LATENCY: estimate(0.25)}))
    assert told[0] == "Unprofiled, an iteration of fp16 takes 4.00 times [3.64, 4.40] the time of one of int8."
    assert told[1].startswith("Profiled, the kernels of fp16 are not slower: they take 0.21 ms less.")


def test_a_mean_that_single_iterations_made_is_told_apart() -> None:
    slow, fast = int8(latency_ms=0.6, median_ms=0.11), fp16(latency_ms=0.2, median_ms=0.19)
    told = sentences(explained(slow, fast, {LATENCY: estimate(3.0)}))
    assert told[0] == "Unprofiled, an iteration of int8 takes 3.00 times [2.73, 3.30] the time of one of fp16."
    assert told[1].startswith("The median iteration of int8 is the faster one:")


def test_a_core_of_another_speed_is_told_and_one_of_the_same_speed_is_not() -> None:
    def told(core: Estimate) -> list[str]:
        ratios = {LATENCY: estimate(3.0), CORE_PROBE: core}
        return sentences(explained(int8(latency_ms=0.6), fp16(latency_ms=0.2), ratios))

    assert told(estimate(1.7, 1.5, 1.9))[1].startswith(
        "On the core that called int8, the same work took 1.70 times [1.50, 1.90] as"
    )
    for same in (estimate(1.01, 1.005, 1.015), estimate(1.2, 0.9, 1.5)):
        assert not any(one.startswith("On the core") for one in told(same))


@pytest.mark.parametrize(
    ("ratio", "ending"),
    [
        (estimate(2.2, 0.3, 8.4), "2.2 times [0.3, 8.4] the time of one of fp16: the interval includes 1, so no"),
        (Estimate(2.2, None, None, 1, SINGLE), "2.2 times the time of one of fp16: one repetition gives no interval,"),
        (Estimate(2.2, 2.2, 2.2, 3, EQUAL), "2.2 times the time of one of fp16: 3 equal repetitions give no interval,"),
    ],
)
def test_without_an_interval_that_excludes_one_no_difference_is_claimed(ratio: Estimate, ending: str) -> None:
    told = sentences(explained(int8(latency_ms=0.4), fp16(latency_ms=0.2), {LATENCY: ratio}))
    assert told[0].startswith(f"Unprofiled, an iteration of int8 takes {ending}")
    assert "no difference is shown" in told[0]
    assert not any(word in one for one in told for word in ("loses", "gains", "lose "))
    assert "40 of 50 kernels move constants: 0.14 ms more than in the profile of fp16." in told


def test_without_a_pair_of_runs_there_is_no_ratio_and_a_reason() -> None:
    found = explained(int8(latency_ms=0.4), fp16(latency_ms=0.2), {})
    told = sentences(replace(found, why_no_ratio="no block has values of both sides"))
    assert told[0] == (
        "No difference is shown: no pair of unprofiled runs can be compared (no block has values of both sides)."
    )


def test_a_latency_that_does_not_count_says_why() -> None:
    told = sentences(explained(int8(), fp16(latency_ms=0.2), {}))
    assert told[0] == "int8 has no unprofiled time: timing was throttled."


def test_energy_is_time_times_mean_power() -> None:
    ratios = {LATENCY: estimate(2.0), "gpu_energy_per_sample_j": estimate(1.2), THROUGHPUT: estimate(0.5)}
    of_its_blocks = {"gpu_energy_per_sample_j": estimate(1 / 1.5)}
    told = sentences(explained(int8(latency_ms=0.4), fp16(latency_ms=0.2), ratios, of_its_blocks))
    assert (
        "GPU energy/sample: int8 needs 1.20 times [1.09, 1.32] that of fp16, which is 1.5 times the time, "
        "at 0.8 times the mean power."
    ) in told


def test_an_energy_whose_interval_includes_one_is_no_difference() -> None:
    ratios = {LATENCY: estimate(2.0), "gpu_energy_per_sample_j": estimate(1.05)}
    told = sentences(explained(int8(latency_ms=0.4), fp16(latency_ms=0.2), ratios))
    assert told[-1].endswith("that of fp16; no difference is shown.")


def test_without_times_there_is_structure() -> None:
    slow = side(
        "int8", kernel("conv", "multiplying", None, "conv", kind="int8"), kernel("constant", "moving", None, "b")
    )
    fast = side("fp16", kernel("conv", "multiplying", None, "conv", kind="fp16"))
    told = sentences(explained(slow, fast, {}))
    assert told[0].startswith("Times of kernels are absent: the profile of int8 and that of fp16 have none.")
    assert "int8 runs 2 kernels, fp16 1." in told
    assert "Kernels that move constants: 1 of 2 in int8, 0 of 1 in fp16." in told
    assert "1 of 2 rows have kernels on one side only: the other side has no kernel of these nodes." in told


def test_without_times_of_layers_the_ratio_of_the_runs_is_still_told() -> None:
    slow = side("int8", kernel("conv", "multiplying", None, "conv"), latency_ms=0.4)
    fast = side("fp16", kernel("conv", "multiplying", None, "conv"), latency_ms=0.2)
    told = sentences(explained(slow, fast, {LATENCY: estimate(2.0)}))
    assert told[0] == "Unprofiled, an iteration of int8 takes 2.00 times [1.82, 2.20] the time of one of fp16."
    assert told[1].startswith("Times of kernels are absent: ")


def test_rows_that_are_not_shown_are_summed_and_what_is_not_assigned_stands_last(known: Explanation) -> None:
    text = to_text(explanation_tables(known, rows=1)[2])
    lines = [line.strip() for line in text.splitlines()]
    assert lines[2].startswith("conv9")
    assert lines[3].startswith("49 more rows")
    assert lines[4].startswith("not assigned")
    assert "+0.0700" in lines[2]


def test_all_rows_are_shown_where_no_limit_is_given(known: Explanation) -> None:
    assert len(explanation_tables(known)[2].rows) == 50 + 1


@pytest.mark.parametrize(
    ("value", "text"), [(0.14, "0.14 ms"), (0.0042, "0.0042 ms"), (12.3, "12 ms"), (0.0, "0 ms"), (1234.5, "1,234 ms")]
)
def test_times_have_two_digits(value: float, text: str) -> None:
    assert milliseconds(value) == text
