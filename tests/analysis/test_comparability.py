# SPDX-License-Identifier: Apache-2.0
"""Runs are compared when board and software are equal; what is left out is counted and named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pybench.analysis import Analysis, analyse
from pybench.analysis.comparability import Comparability, PairComparability
from pybench.analysis.findings.changes import Change
from pybench.analysis.findings.comparison import compare
from pybench.case import Case
from pybench.cli import main
from pybench.dataset import load
from pybench.dataset.software import read_software
from pybench.errors import EXIT_OK, EXIT_USAGE
from tests.support.campaigns import CampaignBuilder, predictions_csv
from tests.support.environments import PACKAGES, environment

BASELINE = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
CANDIDATE = BASELINE.with_factors(runtime="torch")
DECLARED = {"baseline": {"runtime": "onnxruntime"}, "accept": {"speedup_min": 1.1}}


def build(folder: Path, candidates: list[dict[str, Any]], **declared: Any) -> CampaignBuilder:
    """One block for each environment of the candidate; the candidate is 1.5 times as fast, with a little noise."""
    builder = CampaignBuilder(folder, [BASELINE, CANDIDATE], repetitions=len(candidates), declared=DECLARED, **declared)
    for block, given in enumerate(candidates, start=1):
        builder.run(BASELINE, block, {"latency_mean_ms": 3.0 + 0.01 * (block % 3)}, environment=environment())
        builder.run(CANDIDATE, block, {"latency_mean_ms": 2.0}, environment=given)
    return builder


def found(analysis: Analysis) -> PairComparability:
    ((one,),) = [contrast.pairs for contrast in analysis.contrasts]
    return one.comparability


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"gpu": {"uuid": "GPU-2"}}, "board GPU-1 against GPU-2"),
        ({"gpu": {"driver_version": "590.2"}}, "driver 580.1 against 590.2"),
        ({"cpu": "Intel Xeon"}, "cpu AMD EPYC against Intel Xeon"),
        ({"image_digest": "sha256:bb"}, "image sha256:aa against sha256:bb"),
        ({"image_digest": None}, "image sha256:aa against no image"),
        ({"pybench": "0.2.0"}, "pybench 0.1.0 against 0.2.0"),
        ({"native_build_id": "b2"}, "native build b1 against b2"),
        ({"python": "3.12.1"}, "python 3.11.2 against 3.12.1"),
        ({"packages": {**PACKAGES, "onnxruntime": "1.20.0"}}, "onnxruntime 1.31.1 against 1.20.0"),
    ],
)
def test_each_fact_that_differs_makes_a_pair_not_comparable(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    analysis = analyse(load(build(tmp_path / "c", [environment(**change)] * 3).path))
    one = found(analysis)
    assert one.status is Comparability.NOT_COMPARABLE
    assert [difference.text() for difference in one.differences] == [text]
    effect = analysis.contrasts[0].pairs[0].effects["latency_mean_ms"]
    assert effect.effect is None
    assert effect.why_none == f"not comparable: the software of the two sides differs in every block ({text})"


def test_only_the_blocks_that_differ_are_left_out_counted_and_named(tmp_path: Path) -> None:
    other = environment(packages={**PACKAGES, "numpy": "1.26.4"})
    analysis = analyse(load(build(tmp_path / "c", [environment(), other, environment(), environment()]).path))
    one = found(analysis)
    assert one.status is Comparability.IN_PART
    assert one.as_json()["blocks_excluded"] == [2]
    assert one.as_json()["differences"] == [{"name": "numpy", "baseline": "2.4.6", "case": "1.26.4", "blocks": 1}]
    effect = analysis.contrasts[0].pairs[0].effects["latency_mean_ms"].effect
    assert effect is not None
    assert effect.pairing.blocks == (1, 3, 4)


def test_packages_of_one_side_follow_from_the_factor_and_are_listed(tmp_path: Path) -> None:
    given = environment(packages={"numpy": "2.4.6", "torch": "2.9.0"})
    one = found(analyse(load(build(tmp_path / "c", [given] * 2).path)))
    assert one.status is Comparability.COMPARABLE
    assert (one.only_candidate, one.only_baseline) == (("torch",), ("onnxruntime",))


def test_a_fact_that_one_side_does_not_state_is_named_and_does_not_count(tmp_path: Path) -> None:
    given = environment(image_digest=..., native_build_id=...)
    one = found(analyse(load(build(tmp_path / "c", [given] * 2).path)))
    assert one.status is Comparability.COMPARABLE
    assert one.unstated == ("image", "native build")


def test_an_environment_without_facts_states_none() -> None:
    assert read_software({"measuring": None}).facts == {}
    assert read_software({"image_digest": None}).facts == {"image": "no image"}


@pytest.mark.parametrize("command", ["check", "analyse"])
def test_commands_say_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    builder = build(tmp_path / "c", [environment(pybench="0.2.0"), environment(pybench="0.2.0")])
    assert main([command, str(builder.path)]) == EXIT_OK
    out = capsys.readouterr().out
    assert "2 pairs of runs in 1 comparison are excluded, because their two runs differ in pybench" in out
    assert "not comparable" in out
    assert main([command, str(builder.path), "--json"]) == EXIT_OK
    assert '"status": "not comparable"' in capsys.readouterr().out


def test_protocols_leave_out_what_differs(tmp_path: Path) -> None:
    given = [environment(), environment(python="3.12.1")] * 3
    builder = build(tmp_path / "c", given, protocols=["welch-mann-whitney"])
    (protocol,) = analyse(load(builder.path)).protocols
    tested = [pair for pair in protocol.tested_pairs if pair.paired is not None]
    assert tested
    assert {pair.paired.pairing.blocks for pair in tested if pair.paired} == {(1, 3, 5)}


def test_images_are_compared_where_predictions_repeat(tmp_path: Path) -> None:
    cases = [case.with_factors(workload="accuracy") for case in (BASELINE, CANDIDATE)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=2, declared={"baseline": {"runtime": "onnxruntime"}})
    for block, given in ((1, environment(python="3.12.1")), (2, environment())):
        for case, stored in zip(cases, (environment(), given), strict=True):
            builder.run(case, block, {"top1_percent": 90.0}, predictions=predictions_csv("fp32"), environment=stored)
    effect = analyse(load(builder.path)).contrasts[0].pairs[0].effects["top1_percent"]
    assert effect.units is not None
    assert effect.effect is not None
    assert effect.effect.pairing.blocks == (2,)


# --- two campaigns ---------------------------------------------------------------------------------------------------


def two(tmp_path: Path, **changes: Any) -> tuple[Path, Path]:
    for name, given in (("a", environment()), ("b", environment(**changes))):
        builder = CampaignBuilder(tmp_path / name, [BASELINE], repetitions=3)
        for block in (1, 2, 3):
            builder.run(BASELINE, block, {"latency_p50_ms": 3.0 + 0.01 * block}, environment=given)
    return tmp_path / "a", tmp_path / "b"


def test_compare_of_other_software_begins_with_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = two(tmp_path, packages={**PACKAGES, "onnxruntime": "1.32.0"}, gpu={"driver_version": "590.2"})
    assert main(["compare", str(before), str(after)]) == EXIT_OK
    out = capsys.readouterr().out
    assert out.startswith("Software that differs between A and B")
    assert "1.32.0" in out.split("Changes from A to B")[0]
    assert main(["compare", str(before), str(after), "--json"]) == EXIT_OK
    stored = json.loads(capsys.readouterr().out)
    assert stored["software"] == [
        {"name": "driver", "before": "580.1", "after": "590.2"},
        {"name": "onnxruntime", "before": "1.31.1", "after": "1.32.0"},
    ]
    assert stored["changes"][0]["change"] == "same"


def test_two_campaigns_are_compared_environment_by_environment(tmp_path: Path) -> None:
    """What has the versions the other way round has the same set of versions."""
    versions = ("1.31.1", "1.32.0")
    for folder, order in (("a", versions), ("b", versions[::-1])):
        cases = [BASELINE.with_factors(environment=name) for name in ("old", "new")]
        builder = CampaignBuilder(tmp_path / folder, cases, repetitions=1)
        for case, version in zip(cases, order, strict=True):
            given = environment(packages={**PACKAGES, "onnxruntime": version}, pybench=f"0.{folder}")
            builder.run(case, 1, {"latency_p50_ms": 3.0}, environment=given)
    software = compare(load(tmp_path / "a"), load(tmp_path / "b")).software
    assert {one.text() for one in software} == {
        "pybench 0.a against 0.b",
        "onnxruntime in old 1.31.1 against 1.32.0",
        "onnxruntime in new 1.32.0 against 1.31.1",
    }


def test_compare_of_another_cpu_model_needs_across_boards_where_no_gpu_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without, other = environment(measuring={}), environment(measuring={}, cpu="Intel Xeon")
    before, after = (build(tmp_path / name, [given] * 2).path for name, given in (("a", without), ("b", other)))
    on_gpu = build(tmp_path / "g", [environment(cpu="Intel Xeon")] * 2).path
    named = ["--metric", "latency_mean_ms"]
    assert main(["compare", str(before), str(after), *named]) == EXIT_OK
    assert "CPU model AMD EPYC against Intel Xeon" in capsys.readouterr().out
    assert main(["compare", str(before), str(after), *named, "--across-boards"]) == EXIT_OK
    said = capsys.readouterr().out
    assert "not comparable" not in said
    assert "cpu" in said
    main(["compare", str(on_gpu), str(on_gpu), *named])
    assert "not comparable" not in capsys.readouterr().out


def test_compare_of_another_gpu_model_needs_across_boards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = two(tmp_path, gpu={"name": "NVIDIA L40S", "uuid": "GPU-2"})
    assert {change.change for change in compare(load(before), load(after)).changes} == {Change.NOT_COMPARABLE}
    assert main(["compare", str(before), str(after)]) == EXIT_USAGE
    said = capsys.readouterr()
    assert "not comparable: GPU model NVIDIA H200 against NVIDIA L40S" in said.err
    assert "--across-boards" in said.err
    assert main(["compare", str(before), str(after), "--across-boards"]) == EXIT_OK
    assert "GPU model" in capsys.readouterr().out


def test_compare_of_another_board_of_the_same_model_is_done_and_said(tmp_path: Path) -> None:
    before, after = two(tmp_path, gpu={"uuid": "GPU-2"})
    comparison = compare(load(before), load(after))
    assert [one.text() for one in comparison.software] == ["board GPU-1 against GPU-2"]
    assert comparison.changes[0].change is Change.SAME


ACROSS = [BASELINE.with_factors(environment=name) for name in ("old", "new")]
UPGRADED = {"python": "3.11.9", "packages": {**PACKAGES, "onnxruntime": "1.32.0"}}


def across(folder: Path, sides: list[tuple[dict[str, Any], dict[str, Any]]]) -> Analysis:
    """One block for each pair of what the old and the new environment changed."""
    declared = {"baseline": {"environment": "old"}}
    builder = CampaignBuilder(folder, ACROSS, repetitions=len(sides), declared=declared)
    for block, given in enumerate(sides, start=1):
        for case, changes in zip(ACROSS, given, strict=True):
            builder.run(case, block, {"latency_mean_ms": 2.0}, environment=environment(**changes))
    return analyse(load(builder.path))


def test_what_an_environment_brings_is_listed_and_excludes_nothing(tmp_path: Path) -> None:
    analysis = across(tmp_path / "c", [({}, UPGRADED)] * 3)
    one = found(analysis)
    assert one.status is Comparability.COMPARABLE
    assert [each.text() for each in one.brought] == [
        "python 3.11.2 against 3.11.9",
        "onnxruntime 1.31.1 against 1.32.0",
    ]
    assert one.as_json()["brought_by_environment"][1] == {
        "name": "onnxruntime",
        "baseline": "1.31.1",
        "case": "1.32.0",
    }
    effect = analysis.contrasts[0].pairs[0].effects["latency_mean_ms"].effect
    assert effect is not None
    assert effect.pairing.blocks == (1, 2, 3)


def test_the_same_versions_in_two_environments_bring_nothing(tmp_path: Path) -> None:
    one = found(across(tmp_path / "c", [({}, {})] * 2))
    assert (one.status, one.brought) == (Comparability.COMPARABLE, ())
    assert "brought_by_environment" not in one.as_json()


def test_an_environment_that_changed_meanwhile_loses_the_blocks_after(tmp_path: Path) -> None:
    later = {"packages": {**PACKAGES, "numpy": "2.5.0"}}
    one = found(across(tmp_path / "c", [({}, UPGRADED), ({}, UPGRADED), (later, UPGRADED), ({}, later)]))
    assert one.status is Comparability.IN_PART
    assert {block: [each.text() for each in differences] for block, differences in one.excluded.items()} == {
        3: ["numpy 2.4.6 against 2.5.0"],
        4: ["python 3.11.9 against 3.11.2", "numpy 2.4.6 against 2.5.0", "onnxruntime 1.32.0 against 1.31.1"],
    }


def test_images_of_environments_are_what_they_bring_unless_one_changes(tmp_path: Path) -> None:
    other, later = {"image_digest": "sha256:bb"}, {"image_digest": "sha256:cc"}
    one = found(across(tmp_path / "c", [({"image_digest": None}, other)] * 2 + [({"image_digest": None}, later)]))
    assert [each.text() for each in one.brought] == ["image no image against sha256:bb"]
    assert {block: [each.text() for each in differences] for block, differences in one.excluded.items()} == {
        3: ["image sha256:bb against sha256:cc"]
    }


def test_environments_on_two_boards_are_not_comparable(tmp_path: Path) -> None:
    one = found(across(tmp_path / "c", [({}, {**UPGRADED, "gpu": {"uuid": "GPU-2"}})] * 2))
    assert one.status is Comparability.NOT_COMPARABLE
    assert [each.text() for each in one.differences] == ["board GPU-1 against GPU-2"]
