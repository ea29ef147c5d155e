# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a plan's criteria: comparisons that compare nothing, or not what they mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pybench.plan import Plan
from pybench.plan.comparisons import _who_yields

Load = Callable[..., Plan]
Problems = Callable[..., list[str]]

INT8 = """\
  - workload: infer
    model: resnet50
    runtime: onnxruntime
    precision: [fp32, int8]
    calibration: CALIBRATION
criteria:
"""


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ("{baseline: {precision: fp16}}", "10:26: no case has precision=fp16 (the plan has fp32, int8)"),
        ("{accept: {speedup_min: 1}}", "10:3: `baseline` is missing (the cases that others are compared with"),
        ("{baseline: {}}", "10:14: `baseline` names no factor (as in {precision: fp32})"),
        ("{baseline: {batch: 1}}", "10:14: no case can be compared with this baseline"),
        (
            "{baseline: {precision: fp32}, accept: {top1_delta_pp_min: -1}}",
            "10:42: `top1_delta_pp_min` needs top1_percent, which no compared case yields (it comes from workload acc",
        ),
        (
            "{baseline: {precision: fp32}, accept: {tokens_per_s_ratio_min: 1}}",
            "10:42: `tokens_per_s_ratio_min` needs throughput_tokens_per_s, which no compared case yields",
        ),
        (
            "{baseline: {precision: fp32}, accept: {gpu_net_energy_per_token_ratio_max: 1}}",
            "10:42: `gpu_net_energy_per_token_ratio_max` needs gpu_net_energy_per_token_j, which no compared case",
        ),
        (
            "{baseline: {precision: fp32}, accept: {build_s_ratio_max: 1}}",
            "10:42: `build_s_ratio_max` needs build_s, which no compared case yields (it is: ",
        ),
        (
            "{baseline: {precision: fp32}, accept: {speedup_min: 1.0e+300}}",
            "10:55: speedup_min takes a ratio from 1e-09 to 1e+09, not 1e+300",
        ),
        ("{baseline: {precision: fp32}, where: {batch: 8}}", "10:48: no case has batch=8 (the plan has 1)"),
        ("{baseline: {precision: fp32}, where: {batch: [1, 8]}}", "10:52: no case has batch=8 (the plan has 1)"),
        (
            "{baseline: {precision: fp32}, where: {precision: fp32, calibration: percentile}}",
            "10:33: `where` selects no case",
        ),
        (
            "{baseline: {precision: fp32}, accept: {speedup_min: 0}}",
            "10:55: speedup_min takes a ratio from 1e-09 to 1e+09, not 0",
        ),
    ],
)
def test_a_comparison_that_compares_nothing_is_refused(problems: Problems, criteria: str, expected: str) -> None:
    found = problems(f"{INT8.replace('CALIBRATION', 'percentile')}  {criteria}\n")
    assert len(found) == 1
    assert found[0].startswith(expected), found


def test_a_speedup_between_iterations_of_unequal_numbers_of_samples_is_refused(problems: Problems) -> None:
    sizes = INT8.replace("precision: [fp32, int8]", "batch: [1, 64]").replace("    calibration: CALIBRATION\n", "")
    accept = "speedup_min: 1, latency_p99_ratio_max: 20"
    (found,) = problems(f"{sizes}  {{baseline: {{batch: 1}}, accept: {{{accept}}}}}\n")
    assert found.startswith("9:35: `speedup_min` divides latencies of iterations with 1 and 64 samples")
    assert found.endswith("(bound a rate: `throughput_ratio_min`)")


def test_energy_above_idle_cannot_be_compared_without_idle_windows(problems: Problems) -> None:
    restless = INT8.replace("CALIBRATION", "percentile").replace("criteria", "    idle_window_s: 0\ncriteria")
    found = problems(f"{restless}  {{baseline: {{precision: fp32}}, accept: {{gpu_net_energy_ratio_max: 0.9}}}}\n")
    assert len(found) == 1
    assert "(it comes from workload infer or train or generate or tokenize, where `idle_window_s` is not 0)" in found[0]


def test_a_baseline_that_two_cases_fit_is_refused(problems: Problems) -> None:
    text = f"{INT8.replace('CALIBRATION', '[minmax, percentile]')}  baseline: {{precision: int8}}\n"
    assert problems(text)[0].startswith(
        "10:13: 2 cases fit the baseline of `infer resnet50 onnxruntime`: they differ in cal"
    )


def test_the_hint_for_a_metric_names_who_yields_it() -> None:
    assert _who_yields("bandwidth_gb_per_s") == "it comes from workload h2d"


def test_a_comparison_that_stands_twice_is_refused(problems: Problems) -> None:
    entry = "{baseline: {precision: fp32}, accept: {speedup_min: 1}NAME}"
    plan = INT8.replace("CALIBRATION", "percentile")
    twice = "".join(f"  - {entry.replace('NAME', name)}\n" for name in ("", ", name: again"))
    (said,) = problems(plan + twice)
    assert said.startswith("11:6: the same comparison stands before, in line 10 (remove one of them; ")
    one_other = f"  - {{baseline: {{precision: fp32}}, accept: {{speedup_min: 2}}}}\n{twice}"
    assert [said[:5] for said in problems(plan + one_other)] == ["12:6:"]


def test_two_comparisons_of_one_name_are_refused(problems: Problems) -> None:
    entries = "".join(f"  - {{baseline: {{precision: fp32}}, accept: {{speedup_min: {n}}}, name: a}}\n" for n in (1, 2))
    (said,) = problems(INT8.replace("CALIBRATION", "percentile") + entries)
    assert said == "11:61: another comparison is called `a`, too (rename one)"


def test_a_criterion_that_is_named_by_its_metric_is_hinted_at(problems: Problems) -> None:
    accept = "throughput_samples_per_s_ratio_min: 2"
    plan = INT8.replace("CALIBRATION", "percentile")
    (found,) = problems(f"{plan}  {{baseline: {{precision: fp32}}, accept: {{{accept}}}}}\n")
    assert "unknown key `throughput_samples_per_s_ratio_min` (did you mean `throughput_ratio_min`?)" in found


def test_a_bound_of_gpu_energy_requires_a_case_that_may_use_a_gpu(problems: Problems, load: Load) -> None:
    plan = f"{INT8.replace('CALIBRATION', 'percentile').replace('criteria:', '    device: DEVICE')}criteria:\n"
    plan += "  {baseline: {precision: fp32}, accept: {gpu_energy_ratio_max: 1, speedup_min: 1}}\n"
    (found,) = problems(plan.replace("DEVICE", "cpu"))
    assert found.endswith(
        "11:42: `gpu_energy_ratio_max` needs energy of a GPU, and every compared case has `device: cpu` "
        "(remove it, or give the cases another `device`)"
    )
    for overrides in ((), ("matrix.0.device=cpu",)):  # an override may take away what the plan refers to
        assert load(plan.replace("DEVICE", "auto"), overrides).contrasts
