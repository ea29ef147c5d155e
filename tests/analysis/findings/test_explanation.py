# SPDX-License-Identifier: Apache-2.0
"""Explanations of campaigns with known numbers: which side is slower, what is assigned, and what cannot be."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.analysis.findings.explanation import Explanation, explain, names_of
from pybench.case import Case
from pybench.catalogue.runtimes import RUNTIMES
from pybench.dataset import load
from pybench.errors import UsageError
from pybench.kernels.profile import Kernel, Profile, Work
from pybench.report.explanation import sentences
from tests.kernels.test_engine import recorded
from tests.support.campaigns import CampaignBuilder
from tests.support.environments import environment

FP32 = Case(workload="infer", model="resnet50", runtime="onnxruntime")
INT8 = FP32.with_factors(precision="int8")


def kernel(name: str, work: Work, time_ms: float, node: str | None = None, *, constants: bool = False) -> Kernel:
    reads, writes = (("in",), ("x",)) if work == "quantising" else (("x",), ("y",))
    return Kernel(
        name=name,
        kernel=name,
        work=work,
        nodes=() if node is None else (node,),
        reads=reads,
        writes=writes,
        of_constants=constants,
        time_ms=time_ms,
    )


def profile(*kernels: Kernel) -> Profile:
    return Profile(source="onnxruntime", method="by hand", iterations=1, kernels=kernels, qdq_nodes=4)


SLOW = profile(
    kernel("conv", "multiplying", 2.0, "conv"),
    *(kernel(f"move{number}", "moving", 0.25, f"bias{number}", constants=True) for number in range(4)),
    kernel("quantise", "quantising", 0.5, "conv"),
)
FAST = profile(kernel("conv", "multiplying", 2.5, "conv"))


def campaign(folder: Path, **latency_ms: float) -> CampaignBuilder:
    builder = CampaignBuilder(folder, [FP32, INT8], repetitions=2)
    for block in (1, 2):
        for case, found in ((FP32, FAST), (INT8, SLOW)):
            metrics = {"latency_mean_ms": latency_ms.get(case.precision, 1.0)}
            builder.run(case, block, metrics, profile=found)
    return builder


def explained(folder: Path, *cases: Case) -> Explanation:
    first, second = cases
    return explain(load(folder), (first, second))


def test_the_slower_case_comes_first_whichever_was_named_first(tmp_path: Path) -> None:
    builder = campaign(tmp_path / "c", fp32=3.0, int8=4.0)
    for cases in ((FP32, INT8), (INT8, FP32)):
        found = explained(builder.path, *cases)
        assert [side.name for side in found.sides] == ["int8", "fp32"]
        assert [side.latency_ms for side in found.sides] == [4.0, 3.0]
        assert found.loss_ms == pytest.approx(1.0)


def of_values(folder: Path, fp32: list[float], int8: list[float]) -> CampaignBuilder:
    """Latencies of both cases in ms, block by block."""
    builder = CampaignBuilder(folder, [FP32, INT8], repetitions=len(fp32))
    for case, profile_of, values in ((FP32, FAST, fp32), (INT8, SLOW, int8)):
        for block, value in enumerate(values, start=1):
            builder.run(case, block, {"latency_mean_ms": value}, profile=profile_of)
    return builder


def test_means_and_their_ratio_are_those_of_the_report(tmp_path: Path) -> None:
    """The values of a first user, whose arithmetic mean of int8 was 0.0705 ms."""
    builder = of_values(tmp_path / "c", [0.0231, 0.0270, 0.0339], [0.1231, 0.0603, 0.0281])
    found = explained(builder.path, INT8, FP32)
    reported = analyse(load(builder.path))
    for side in found.sides:
        finding = next(one for one in reported.cases if one.case == side.case)
        assert side.estimates["latency_mean_ms"] == finding.metrics["latency_mean_ms"].estimate
    assert found.sides[0].latency_ms == pytest.approx((0.1231 * 0.0603 * 0.0281) ** (1 / 3))
    ratios = [x / y for x, y in zip([0.1231, 0.0603, 0.0281], [0.0231, 0.0270, 0.0339], strict=True)]
    ratio = found.ratios["latency_mean_ms"]
    assert ratio.value == pytest.approx(math.prod(ratios) ** (1 / 3))
    assert ratio.lower is not None
    assert ratio.lower < 1
    assert not found.is_shown
    stored = found.as_json()
    assert stored["is_shown"] is False
    assert stored["ratios"]["latency_mean_ms"] == ratio.as_json()


def test_a_difference_beyond_the_scatter_is_shown_from_either_side(tmp_path: Path) -> None:
    builder = of_values(tmp_path / "c", [1.0, 1.02, 0.99], [2.0, 2.05, 1.97])
    for cases in ((FP32, INT8), (INT8, FP32)):
        found = explained(builder.path, *cases)
        assert found.sides[0].case == INT8
        assert found.ratios["latency_mean_ms"].value == pytest.approx(2.0, rel=0.01)
        assert found.is_shown


def test_losses_by_work_add_up_to_the_whole_and_moves_of_constants_are_apart(tmp_path: Path) -> None:
    found = explained(campaign(tmp_path / "c", fp32=3.0, int8=4.0).path, INT8, FP32)
    shares = {(share.work, share.constants): (share.counts, share.excess_ms) for share in found.shares}
    assert shares == {
        ("moving", True): ((4, 0), 1.0),
        ("quantising", False): ((1, 0), 0.5),
        ("multiplying", False): ((1, 1), -0.5),
    }
    assert sum(share.excess_ms for share in found.shares) == pytest.approx(found.loss_ms)


def test_rows_and_what_is_not_assigned_add_up_to_the_profiled_times(tmp_path: Path) -> None:
    found = explained(campaign(tmp_path / "c", fp32=3.0, int8=4.0).path, INT8, FP32)
    for side in (0, 1):
        in_rows = sum(row.sides[side].time_ms for row in found.rows.rows)
        assert in_rows + found.unassigned_ms(side) == pytest.approx(found.sides[side].profile.total_ms)
        assert found.assigned_ratio(side) == 1.0


def test_json_has_both_times_of_both_cases(tmp_path: Path) -> None:
    stored = json.loads(json.dumps(explained(campaign(tmp_path / "c", fp32=3.0, int8=4.0).path, INT8, FP32).as_json()))
    assert stored["slower"] == INT8.id
    assert [(one["latency_mean_ms"], one["profiled_ms"]) for one in stored["cases"]] == [(4.0, 3.5), (3.0, 2.5)]
    assert stored["rows"][0]["sides"][0]["kernels"][0]["time_ms"] == 0.25
    assert [one["time_ms"] for one in stored["not_assigned"]] == [0.0, 0.0]


def test_cases_that_ran_with_two_drivers_are_explained_with_what_differs(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [FP32, INT8], repetitions=1)
    for case, found, driver in ((FP32, FAST, "580.1"), (INT8, SLOW, "590.2")):
        given = environment(gpu={"driver_version": driver})
        latency_ms = 4.0 if case == INT8 else 3.0
        builder.run(case, 1, {"latency_mean_ms": latency_ms}, profile=found, environment=given)
    for cases in ((FP32, INT8), (INT8, FP32)):
        found_out = explained(builder.path, *cases)
        assert sentences(found_out)[0] == (
            "int8 and fp32 ran with different software, which may explain a difference: driver 590.2 against 580.1."
        )
        assert found_out.as_json()["software"] == [{"name": "driver", "baseline": "580.1", "case": "590.2"}]
        assert found_out.ratios == {}
        assert found_out.why_no_ratio is not None
        assert found_out.why_no_ratio.startswith("not comparable: ")
    same = explained(campaign(tmp_path / "same", fp32=3.0, int8=4.0).path, INT8, FP32)
    assert not any("software" in one for one in sentences(same))


def test_one_case_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="was given twice"):
        explained(campaign(tmp_path / "c").path, INT8, INT8)


def test_two_models_are_refused(tmp_path: Path) -> None:
    other = FP32.with_factors(model="mobilenet-v2")
    builder = CampaignBuilder(tmp_path / "c", [FP32, other], repetitions=1)
    with pytest.raises(UsageError, match="run different models"):
        explained(builder.path, FP32, other)


def test_a_case_whose_runs_stored_no_profile_says_how_to_get_one(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [FP32, INT8], repetitions=1)
    builder.run(INT8, 1, {"latency_mean_ms": 1.0}, profile=SLOW)
    builder.run(FP32, 1, {"latency_mean_ms": 1.0}, labels={"profile": "not made: too large"})
    with pytest.raises(UsageError, match=r"no run of .* stored a profile \(not made: too large\)") as error:
        explained(builder.path, INT8, FP32)
    assert error.value.hint == f"runs of this pybench store one: `pybench run {builder.path} --rerun {FP32.id[:12]}`"


def test_a_runtime_that_tells_no_kernels_is_told_with_those_that_do(tmp_path: Path) -> None:
    silent = FP32.with_factors(runtime="openvino", provider="cpu")
    builder = CampaignBuilder(tmp_path / "c", [FP32, silent], repetitions=1)
    builder.run(FP32, 1, {"latency_mean_ms": 1.0}, profile=FAST)
    builder.run(silent, 1, {"latency_mean_ms": 1.0})
    with pytest.raises(UsageError) as error:
        explained(builder.path, FP32, silent)
    assert (
        error.value.message == f"{silent.title()} cannot be explained: openvino does not tell the kernels that it runs"
    )
    able = [row.name for row in RUNTIMES.values() if row.profile is not None]
    assert error.value.hint == f"give cases of {', '.join(able[:-1])} or {able[-1]}"


def test_a_workload_that_makes_no_profile_sends_nobody_to_run_it_again(tmp_path: Path) -> None:
    accuracy = FP32.with_factors(workload="accuracy")
    builder = CampaignBuilder(tmp_path / "c", [FP32, accuracy], repetitions=1)
    builder.run(FP32, 1, {"latency_mean_ms": 1.0}, profile=FAST)
    builder.run(accuracy, 1, {"top1_percent": 90.0})
    with pytest.raises(UsageError) as error:
        explained(builder.path, FP32, accuracy)
    assert error.value.message.endswith("cannot be explained: runs of the workload accuracy make no profile")
    assert error.value.hint == f"give cases of the workload infer, such as {FP32.id[:12]} ({FP32.title()})"


def engines(folder: Path, **inspected: str) -> tuple[CampaignBuilder, tuple[Case, Case]]:
    """A campaign of engines whose runs stored no profile, as an older pybench left it."""
    cases = [FP32.with_factors(runtime="tensorrt", precision=name.replace("_", "+")) for name in inspected]
    builder = CampaignBuilder(folder, cases, repetitions=1)
    for case, name in zip(cases, inspected.values(), strict=True):
        made = builder.path / "artefacts" / case.id
        made.mkdir(parents=True)
        (made / "layers.json").write_text(recorded(name))
        engine = {"engine": f"artefacts/{case.id}/engine.plan"}
        builder.run(case, 1, {"latency_mean_ms": 1.0}, artefacts=engine)
    return builder, (cases[0], cases[1])


def test_engines_without_times_are_paired_by_structure(tmp_path: Path) -> None:
    builder, cases = engines(tmp_path / "c", int8_fp16="int8+fp16-residual", fp8_fp16="fp8-residual")
    found = explained(builder.path, *cases)
    assert not found.has_times
    assert [side.name for side in found.sides] == ["int8+fp16", "fp8+fp16"], "in the order that was asked for"
    assert found.paired == len(found.rows.rows) == 55
    assert found.rows.unassigned == ((), ())
    ids = " ".join(f"--rerun {case.id[:12]}" for case in cases)
    assert any(f"`pybench run {builder.path} {ids}`" in one for one in sentences(found)), "a command to type"
    stored = found.as_json()
    assert stored["slower"] is None
    assert stored["profiled_loss_ms"] is None
    assert {row["excess_ms"] for row in stored["rows"]} == {None}


def test_names_are_the_factors_that_differ() -> None:
    assert names_of((FP32, INT8.with_factors(batch=8))) == ("fp32 batch=1", "int8 batch=8")
    assert names_of((FP32, INT8.with_factors(calibration_images=8))) == ("fp32", "int8 calibration_images=8")
    assert names_of((FP32, FP32.with_factors(iterations=7))) == ("iterations=100", "iterations=7")
