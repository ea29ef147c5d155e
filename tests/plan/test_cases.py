# SPDX-License-Identifier: Apache-2.0
"""What a plan without fault means: its cases, their order and their identity."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybench.campaign.layout import SCHEMA_VERSION
from pybench.campaign.recipe import recipes_of
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case import Case, case_from_json
from pybench.case.contrasts import from_json
from pybench.case.data import data_of
from pybench.case.factors import FACTORS, factors_in
from pybench.case.pairing import pairs
from pybench.case.service_levels import bounds_of
from pybench.catalogue.runtimes import BUILD_FACTORS
from pybench.errors import PlanError
from pybench.plan import Plan, load_plan, resolve
from tests.support.making import write_images
from tests.support.onnx_files import write

Load = Callable[..., Plan]


def factors(plan: Plan, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(case, name) for name in names) for case in plan.cases]


def test_a_list_is_a_product_and_the_first_key_varies_slowest(load: Load) -> None:
    plan = load("  - {workload: noop, threads: [2, 1], iterations: [5, 6]}\n")
    assert factors(plan, "threads", "iterations") == [(2, 5), (2, 6), (1, 5), (1, 6)]


def test_lists_in_a_zip_block_advance_together_within_the_product(load: Load) -> None:
    plan = load(
        "  - workload: infer\n    model: tinylm-small\n    runtime: torch\n"
        "    zip: [{batch: [1, 8], seq_len: [128, 256]}]\n    precision: [fp32, bf16]\n"
    )
    assert factors(plan, "batch", "seq_len", "precision") == [
        (1, 128, "fp32"), (1, 128, "bf16"), (8, 256, "fp32"), (8, 256, "bf16"),
    ]  # fmt: skip


def test_excluded_cells_are_left_out_and_included_ones_are_added_with_the_single_values(load: Load) -> None:
    plan = load(
        "  - workload: infer\n    model: resnet50\n    runtime: onnxruntime\n    threads: 2\n"
        "    precision: [fp32, int8]\n    batch: [1, 8, 32]\n"
        "    exclude: [{precision: int8, batch: [8, 32]}]\n    include: {batch: 64}\n"
    )
    found = factors(plan, "precision", "batch", "threads")
    assert found == [("fp32", 1, 2), ("fp32", 8, 2), ("fp32", 32, 2), ("int8", 1, 2), ("fp32", 64, 2)]


def test_an_exclusion_sees_defaults_and_batches_given_in_tokens(load: Load) -> None:
    plan = load(
        "schema_version: 1\nname: x\ndefaults: {seq_len: 64}\nmatrix:\n"
        "  - workload: train\n    model: tinylm-small\n    batch_tokens: [64, 128]\n"
        "    exclude: {batch: 2, seq_len: 64}\n",
        whole=True,
    )
    assert factors(plan, "batch", "seq_len") == [(1, 64)]


@pytest.mark.parametrize("written", ["true", "null"])
def test_an_exclusion_sees_the_default_of_the_workload(load: Load, written: str) -> None:
    plan = load(
        "  - workload: [train, infer]\n    model: tinylm-small\n    runtime: torch\n"
        f"    path: none\n    exclude: {{fed: {written}, workload: train}}\n"
    )
    assert factors(plan, "workload", "fed") == [("infer", False)]


def test_a_batch_in_tokens_becomes_samples(load: Load) -> None:
    plan = load("  - {workload: train, model: tinylm-small, batch_tokens: 512, seq_len: [64, 128]}\n")
    assert factors(plan, "batch", "seq_len") == [(8, 64), (4, 128)]


def test_defaults_reach_the_entries_they_apply_to_and_no_others(load: Load) -> None:
    plan = load(
        "schema_version: 1\nname: x\ndefaults: {seq_len: 64, iterations: 7, batch: 3, runtime: torch}\nmatrix:\n"
        "  - {workload: infer, model: [tinylm-small, resnet50]}\n  - {workload: noop}\n"
        "  - {workload: train, model: tinylm-small, batch_tokens: 128}\n",
        whole=True,
    )
    assert factors(plan, "model", "seq_len", "iterations", "batch") == [
        ("tinylm-small", 64, 7, 3), ("resnet50", 128, 7, 3), (None, 128, 7, 1), ("tinylm-small", 64, 7, 2),
    ]  # fmt: skip


def test_a_case_that_two_entries_give_is_kept_once(load: Load) -> None:
    plan = load("  - {workload: noop, threads: [1, 2, 1]}\n  - {workload: noop, threads: [2, 3]}\n")
    assert factors(plan, "threads") == [(1,), (2,), (3,)]


def test_a_factor_that_changes_nothing_makes_no_further_case(load: Load) -> None:
    plan = load(
        "  - {workload: infer, model: resnet50, runtime: onnxruntime, precision: [fp32, int8], "
        "calibration: [minmax, percentile]}\n"
    )
    found = factors(plan, "precision", "calibration")
    assert found == [("fp32", "minmax"), ("int8", "minmax"), ("int8", "percentile")]


def test_a_rate_is_of_the_open_loops_only(load: Load) -> None:
    plan = load(
        "  - {workload: infer, model: resnet50, runtime: torch, arrivals: [closed, poisson], "
        "arrival_rate_per_s: [50, 100]}\n"
    )
    found = factors(plan, "arrivals", "arrival_rate_per_s")
    assert found == [("closed", None), ("poisson", 50.0), ("poisson", 100.0)]


def test_data_is_another_way_to_write_its_factors(load: Load) -> None:
    entry = "  - {{workload: accuracy, model: digits-cnn, runtime: torch, {}}}\n"
    assert load(entry.format("data: {images: digits}")).cases == load(entry.format("images: digits")).cases


@pytest.mark.parametrize("workload", ["train", "tokenize"])
def test_training_and_tokenizing_run_in_torch_unless_said_otherwise(load: Load, workload: str) -> None:
    plan = load(f"  - {{workload: {workload}, model: tinylm-small}}\n")
    assert plan.cases[0].runtime == "torch"


def test_tokenizing_needs_no_model_and_then_no_runtime(load: Load) -> None:
    assert load("  - {workload: tokenize, path: rust}\n").cases == (Case(workload="tokenize", path="rust"),)


def test_digits_cnn_is_judged_on_digits(load: Load) -> None:
    assert load("  - {workload: accuracy, model: digits-cnn, runtime: torch}\n").cases[0].images == "digits"


def test_what_was_trained_on_the_generated_set_is_judged_on_it(load: Load) -> None:
    entry = "  - {workload: accuracy, model: resnet50, runtime: torch, checkpoint: synthetic-100}\n"
    case = load(entry).cases[0]
    assert (case.checkpoint, case.images, case.sources) == ("synthetic-100", "synthetic-100", ())


def test_text_models_are_judged_on_their_own_text_without_further_factors(load: Load) -> None:
    plan = load("  - {workload: accuracy, model: distilbert, runtime: onnxruntime, precision: [fp32, int8]}\n")
    cases = plan.cases
    assert [(case.images, case.checkpoint, data_of(case)) for case in cases] == [(None, None, "stdlib-packages")] * 2
    assert cases[0].headline == "top1_percent"


def test_a_model_without_data_has_no_accuracy_and_a_model_is_trained_on_its_own_data_only(load: Load) -> None:
    with pytest.raises(PlanError, match="workload accuracy takes an image model or one with data of its own, not mlp"):
        load("  - {workload: accuracy, model: mlp, runtime: torch}\n")
    with pytest.raises(PlanError, match="resnet50 is not trained on stdlib-packages") as found:
        load("  - {workload: infer, model: resnet50, runtime: torch, checkpoint: stdlib-packages}\n")
    assert "those that are: text-encoder, tinylm-classifier, distilbert" in str(found.value)


def test_models_of_ids_volumes_and_vectors_take_the_defaults_that_mean_something(load: Load) -> None:
    plan = load(
        "schema_version: 1\nname: x\ndefaults: {seq_len: 64, batch: 2, runtime: torch}\nmatrix:\n"
        "  - {workload: infer, model: [distilbert, unet3d, mlp]}\n",
        whole=True,
    )
    assert factors(plan, "model", "seq_len", "batch") == [("distilbert", 64, 2), ("unet3d", 128, 2), ("mlp", 128, 2)]


def test_null_is_a_value_where_a_factor_has_no_default(load: Load) -> None:
    assert factors(load("  - {workload: noop, threads: [null, 2]}\n"), "threads") == [(None,), (2,)]


def test_one_cpu_may_be_written_as_a_number(load: Load) -> None:
    assert factors(load("  - {workload: noop, affinity: [0, '1-3,7']}\n"), "affinity") == [("0",), ("1-3,7",)]


def test_a_gpu_is_named_by_its_uuid(load: Load) -> None:
    uuid = "GPU-12345678-90ab-cdef-1234-567890abcdef"
    assert factors(load(f"  - {{workload: noop, device: {uuid}}}\n"), "device") == [(uuid,)]


def test_an_integer_for_a_number_gives_the_same_case(load: Load) -> None:
    entry = "  - {{workload: noop, energy_window_s: {}}}\n"
    assert load(entry.format("2")).cases[0].id == load(entry.format("2.0")).cases[0].id


def test_an_empty_key_is_as_good_as_none(load: Load) -> None:
    plan = load("schema_version: 1\nname: x\ndefaults:\ncriteria:\nmatrix: [{workload: noop}]\n", whole=True)
    assert (plan.contrasts, plan.repetitions.usual, plan.seed) == ((), 10, 0)


@pytest.mark.parametrize("factor", [name for name, factor in FACTORS.items() if factor.kind != "file"])
def test_every_factor_can_be_set_to_its_own_default(load: Load, factor: str, tmp_path: Path) -> None:
    write("plain", tmp_path)
    entries: list[dict[str, Any]] = [
        {"workload": "infer", "model": "tinylm-small", "runtime": "torch", "path": "rust", "precision": "int8"},
        {"workload": "accuracy", "model": "digits-cnn", "runtime": "torch", "precision": "int8"},
        {"workload": "h2d"},
        {"workload": "infer", "model": "resnet50", "runtime": "tensorrt"},
        {"workload": "infer", "model": "resnet50", "runtime": "onnxruntime"},
        {"workload": "infer", "model": "resnet50", "runtime": "torch-compile"},
        {"workload": "infer", "model": "tinylm-small", "runtime": "torch"},
        {"workload": "infer", "model": "model.onnx", "runtime": "onnxruntime"},
    ]
    places = {"calibration_images": 1, "image_limit": 1, "transfer_bytes": 2, "pinned": 2, "non_blocking": 2}
    places |= {**dict.fromkeys((*BUILD_FACTORS, "launch", "cache"), 3), "provider": 4, "compile_mode": 5, "fed": 6}
    places |= dict.fromkeys(factors_in("file"), 7)
    entries += [
        {"workload": "train", "model": "tinylm-small"},
        {"workload": "h2d", "pinned": True, "non_blocking": True},
    ]
    places |= dict.fromkeys((*factors_in("training"), *factors_in("blocks")), len(entries) - 2) | {"image_size": 4}
    places |= dict.fromkeys(("direction", "streams", "numa_node"), len(entries) - 1)
    entries += [{"workload": "generate", "model": "tinylm-small", "runtime": "torch"}]
    places |= dict.fromkeys(factors_in("generating"), len(entries) - 1)
    entries += [{"workload": "train", "model": "resnet50"}]
    places |= dict.fromkeys(factors_in("layout"), len(entries) - 1)
    entries += [{"workload": "infer", "model": "c2p", "runtime": "solver"}]
    places |= {"solver": len(entries) - 1}
    entries += [{"workload": "infer", "model": "stack", "runtime": "torch"}]
    places |= dict.fromkeys(factors_in("shaping"), len(entries) - 1)
    entries += [
        {"workload": "infer", "model": "vit-heads", "runtime": "torch"},
        {"workload": "train", "model": "resnet50", "images": "synthetic-100", "workers": 0},
        {"workload": "fit", "model": "digits-cnn", "images": "digits", "target_top1_percent": 90.0},
        {
            "workload": "accuracy",
            "model": "digits-cnn",
            "runtime": "torch",
            "images": "synthetic-100",
            "checkpoint": "synthetic-100",
        },
        {
            "workload": "infer",
            "model": "distilbert",
            "runtime": "onnxruntime",
            "precision": "int4",
            "quantiser": "weight-only",
        },
    ]
    places |= {"heads": len(entries) - 5, "dispatch": len(entries) - 5, "workers": len(entries) - 4} | dict.fromkeys(
        factors_in("fitting"), len(entries) - 3
    )
    places |= {"trained_in": len(entries) - 2, "training_seed": len(entries) - 2, "block_size": len(entries) - 1}
    write_images(tmp_path / "pictures", {"ant": 1, "bee": 1})
    entries += [{"workload": "accuracy", "model": "digits-cnn", "runtime": "torch", "images": "pictures"}]
    places |= dict.fromkeys(("crop_share", "interpolation", "normalisation"), len(entries) - 1)
    places |= dict.fromkeys(factors_in("labelled", "judging"), 1)
    entry = entries[places.get(factor, 0)]
    entry.setdefault(factor, FACTORS[factor].default)
    assert len(load(f"  - {json.dumps(entry)}\n").cases) == 1


def test_how_pictures_are_read_is_part_of_a_case_and_of_its_calibration(load: Load, tmp_path: Path) -> None:
    write_images(tmp_path / "pictures", {"ant": 1, "bee": 1})
    entry = "  - {{workload: accuracy, model: digits-cnn, runtime: onnxruntime, precision: int8, images: pictures{}}}\n"
    usual, other = (load(entry.format(more)).cases[0] for more in ("", ", crop_share: 0.9655"))
    assert usual.id == load(entry.format(", crop_share: 0.875, interpolation: bilinear")).cases[0].id
    assert usual.id != other.id
    made = [dict(recipes_of(case)["model"].parameters) for case in (usual, other)]
    assert [parameters.get("crop_share") for parameters in made] == [None, 0.9655]


@pytest.mark.parametrize(
    ("images", "said"),
    [
        ("synthetic-100", "`normalisation` changes nothing in this entry (only pictures of a folder"),
        ("arrays.npz", "`normalisation` is for pictures in class folders, and arrays.npz contains arrays"),
    ],
)
def test_nothing_is_asked_of_pictures_that_are_none(load: Load, tmp_path: Path, images: str, said: str) -> None:
    values = np.zeros((2, 1, 8, 8), np.float32)
    np.savez(tmp_path / "arrays.npz", images=values, labels=np.array([0, 1]))
    with pytest.raises(PlanError, match=re.escape(said)):
        load(f"  - {{workload: accuracy, model: digits-cnn, runtime: torch, images: {images}, normalisation: half}}\n")


def test_threads_make_no_second_solver_and_each_network_is_compared_with_the_one(load: Load) -> None:
    plan = load(
        "  - {workload: infer, model: c2p, runtime: [solver, onnxruntime], threads: [1, 2]}\n"
        "criteria: {baseline: {runtime: solver}}\n"
    )
    assert factors(plan, "runtime", "threads") == [("solver", None), ("onnxruntime", 1), ("onnxruntime", 2)]
    assert [pair.case.threads for pair in pairs(plan.cases, plan.contrasts[0])] == [1, 2]


def test_the_resolved_plan_is_what_the_run_directory_reads(load: Load) -> None:
    text = """\
schema_version: 1
name: resolved
description: a sentence
seed: 5
repetitions: 3
matrix:
  - {workload: infer, model: digits-cnn, runtime: onnxruntime, precision: [fp32, int8]}
criteria:
  - {name: int8, baseline: {precision: fp32}, accept: {speedup_min: 1.1}}
require: [timing, timing]
"""
    plan = load(text, ("repetitions=4", "matrix.0.batch=8"), whole=True)
    content = resolve(plan, plan.cases)
    read = parse_resolved_plan(content)
    assert (read.name, read.seed, read.repetitions.usual, read.require) == ("resolved", 5, 4, ("timing",))
    assert read.cases == plan.cases
    assert [case.batch for case in read.cases] == [8, 8]
    assert from_json(content["criteria"]) == plan.contrasts
    assert content["schema_version"] == SCHEMA_VERSION
    assert content["overrides"] == ["repetitions=4", "matrix.0.batch=8"]
    assert content["protocol"] == {"analysis": ["paired-blocks"]}
    assert len(content["plan_sha256"]) == 64


def test_resolving_some_cases_stores_only_those(load: Load) -> None:
    plan = load("  - {workload: noop, threads: [1, 2]}\n")
    selected: Sequence[Case] = plan.cases[1:]
    assert [case_from_json(stored) for stored in resolve(plan, selected)["cases"]] == list(selected)


def test_a_power_limit_multiplies_the_cases_of_a_gpu_and_not_those_of_the_cpu(load: Callable[..., Plan]) -> None:
    plan = load("  - {workload: h2d, device: [cpu, cuda], power_limit_w: [null, 300, 400]}\n")
    assert [(case.device, case.power_limit_w) for case in plan.cases] == [
        ("cpu", None), ("cuda", None), ("cuda", 300), ("cuda", 400),
    ]  # fmt: skip


ENTRIES = """\
schema_version: 1
name: uneven
repetitions: 5
matrix:
  - {workload: noop, iterations: 1}
  - {workload: noop, iterations: [2, 3], repetitions: 7}
"""


def test_an_entry_has_a_number_of_repetitions_of_its_own_which_is_no_part_of_a_case(load: Load) -> None:
    plan, even = load(ENTRIES, whole=True), load(ENTRIES.replace(", repetitions: 7", ""), whole=True)
    assert [plan.repetitions.of(case) for case in plan.cases] == [5, 7, 7]
    assert [case.id for case in plan.cases] == [case.id for case in even.cases]
    content = resolve(plan, plan.cases)
    assert content["case_repetitions"] == {case.id: 7 for case in plan.cases[1:]}
    assert parse_resolved_plan(content).repetitions == plan.repetitions
    assert "case_repetitions" not in resolve(even, even.cases)


SERVED = """\
schema_version: 1
name: served
defaults: {model: mlp, runtime: torch}
matrix:
  - {workload: infer, batch: [1, 2], slo_ms: [50, 20.5]}
  - {workload: infer, batch: [2, 4], slo_ms: 10}
  - {workload: infer, batch: 8}
"""


def test_bounds_of_latency_are_those_of_all_entries_that_make_a_case_and_no_part_of_it(load: Load) -> None:
    plan, without = load(SERVED, whole=True), load(re.sub(r", slo_ms: [^}]*", "", SERVED), whole=True)
    assert [bounds_of(case) for case in plan.cases] == [(20.5, 50), (10, 20.5, 50), (10,), ()]
    assert [case.id for case in plan.cases] == [case.id for case in without.cases]
    content = resolve(plan, plan.cases)
    assert list(content["case_slo_ms"].values()) == [[20.5, 50], [10, 20.5, 50], [10]]
    assert [bounds_of(case) for case in parse_resolved_plan(content).cases] == list(map(bounds_of, plan.cases))
    assert "case_slo_ms" not in resolve(without, without.cases)


def test_a_criterion_of_service_levels_needs_a_bound(load: Load) -> None:
    criteria = "criteria: {baseline: {batch: 1}, accept: {slo_attainment_delta_min: -0.01, goodput_ratio_min: 1}}\n"
    assert len(load(SERVED.replace("slo_ms: 10", "slo_ms: 50") + criteria, whole=True).contrasts) == 1
    with pytest.raises(PlanError) as error:
        load(re.sub(r", slo_ms: [^}]*", "", SERVED) + criteria, whole=True)
    first, second = error.value.problems
    assert first.what == "`slo_attainment_delta_min` needs slo_attainment_ratio, which no compared case yields"
    assert second.hint == "it comes from workload infer or generate, where the entry has `slo_ms`"


def test_a_bound_that_is_compared_is_in_the_baseline_too(load: Load) -> None:
    text = SERVED.replace("batch: [2, 4], slo_ms: 10", "batch: [2, 4], slo_ms: 20.5")
    criteria = "criteria: {baseline: {batch: 2}, accept: {goodput_ratio_min: 1}}\n"
    load(text + criteria, whole=True)
    with pytest.raises(PlanError) as error:
        load(SERVED + criteria.replace("batch: 2", "batch: 4"), whole=True)
    first, second = error.value.problems
    assert first.what == "`goodput_ratio_min` needs `slo_ms: 20.5` in the baseline, too"
    assert second.what == "`goodput_ratio_min` needs `slo_ms: 50` in the baseline, too"
    assert (first.hint or "").startswith("give the entry of `infer mlp torch batch=4`")


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("goodput_samples_per_s: {value: 90, source: a, slo_ms: 50}", None),
        ("slo_attainment: {value: 0.9, source: a, slo_ms: 20.5}", None),
        ("slo_attainment_delta: {value: -0.1, source: a, slo_ms: 50, where: {batch: 2}}", None),
        ("goodput_ratio: {value: 2, source: a}", "`goodput_ratio` needs the bound that it was published for (add the"),
        ("goodput_ratio: {value: 2, source: a, slo_ms: [1, 2]}", "`goodput_ratio` was published for one bound, not 2"),
        ("goodput_ratio: {value: 2, source: a, slo_ms: 0}", "`slo_ms` takes milliseconds above 0"),
        ("speedup: {value: 2, source: a, slo_ms: 5}", "`slo_ms` has no meaning for speedup (remove the key)"),
        ("goodput_ratio: {value: 2, source: a, slo_ms: 7}", "where the entry has `slo_ms: 7`)"),
    ],
)
def test_a_published_service_level_has_a_bound_of_the_plan(load: Load, reference: str, problem: str | None) -> None:
    text = (
        SERVED.replace("slo_ms: 10", "slo_ms: 50")
        + f"criteria: {{baseline: {{batch: 1}}, reference: {{{reference}}}}}\n"
    )
    if problem is None:
        (found,) = load(text, whole=True).contrasts[0].reference
        assert found.metric in (
            "goodput_samples_per_s@50ms",
            "slo_attainment_ratio@20.5ms",
            "slo_attainment_ratio@50ms",
        )
        return
    with pytest.raises(PlanError) as error:
        load(text, whole=True)
    assert problem in str(error.value)


def test_an_absolute_bound_needs_nothing_of_the_baseline(load: Load) -> None:
    criteria = "criteria: {baseline: {batch: 1}, accept: {slo_attainment_min: 0.9, goodput_min: 5}}\n"
    assert [one.name for one in load(SERVED + criteria, whole=True).contrasts[0].accept] == [
        "slo_attainment_min",
        "goodput_min",
    ]
    with pytest.raises(PlanError, match="slo_attainment_min takes a share above 0 and up to 1, not 90"):
        load(SERVED + criteria.replace("0.9", "90"), whole=True)


def test_a_number_for_the_whole_campaign_replaces_all_others(load: Load, tmp_path: Path) -> None:
    load(ENTRIES, whole=True)
    plan = load_plan(tmp_path / "plan.yaml", ("name=even",), repetitions=2)
    assert [plan.repetitions.of(case) for case in plan.cases] == [2, 2, 2]
    assert plan.overrides == ("name=even", "repetitions=2")


def test_entries_that_make_one_case_may_not_state_two_numbers_for_it(load: Load) -> None:
    same = ENTRIES.replace("[2, 3]", "[1, 2]")
    with pytest.raises(PlanError) as error:
        load(same, whole=True)
    (problem,) = error.value.problems
    assert (problem.line, problem.what) == (
        6,
        "the entry on line 5 makes the case noop, too, with 5 repetitions; this one has 7",
    )
    assert problem.hint is not None
    assert "`exclude`" in problem.hint
    assert len(load(same.replace("iterations: 1}", "iterations: 1, repetitions: 7}"), whole=True).cases) == 2
