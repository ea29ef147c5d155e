# SPDX-License-Identifier: Apache-2.0
"""Everything wrong with a plan, at once, each at its line and column with the nearest valid name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pybench.campaign.layout import SCHEMA_VERSION
from pybench.catalogue.runtimes import RUNTIMES

Problems = Callable[..., list[str]]

HUNDRED = list(range(1, 101))
BROKEN = """\
schema_version: 2
name: my plan
sead: 3
iterations: 5
repetitions: 0
defaults: {warmup: 3, iterations: 1e2, pinned: on}
matrix:
  - workload: infer
    model: resnet5O
    runtime: onnxrt
    prescision: int8
    batch: [1, 0, x]
    batch: 3
  - workload: infer
    model: resnet50
    seq_len: 128
    data: {image: here}
    runtime: torch
  - just text
criteria:
  baseline: {precision: fp33}
  accept: {speed_up_min: 1, top1_delta_pp_min: a}
require: [timings]
"""

TENSORRT_INT8 = "{workload: infer, model: mlp, runtime: tensorrt, precision: int8}"


def test_all_problems_are_given_at_once_in_the_order_of_the_file(problems: Problems) -> None:
    found = problems(BROKEN, whole=True)
    expected = [
        ("1:17", "`schema_version` is 2"),
        ("2:7", "`name` takes a short word"),
        ("3:1", "unknown key `sead` (did you mean `seed`?)"),
        ("4:1", "unknown key `iterations` (a factor: write it in `defaults`"),
        ("5:14", "`repetitions` takes an integer from 1 to 100000; not 0"),
        ("6:12", "unknown key `warmup` (did you mean `warmup_iterations`?)"),
        ("6:35", "`iterations` takes an integer from 1 to 9007199254740992; not 100.0 (write 100)"),
        ("6:48", "`pinned` takes true or false; not 'on' (in YAML 1.2 `on` is text: write true)"),
        ("9:12", "`model`: no model and no file is called resnet5O; built-in: resnet50, vgg16"),
        (
            "10:14",
            (
                f"`runtime` takes one of {', '.join(RUNTIMES)}; not 'onnxrt' (did you mean `onnxruntime`? "
                "Or install the package that adds onnxrt to pybench)"
            ),
        ),
        ("11:5", "unknown key `prescision` (did you mean `precision`?)"),
        ("12:16", "`batch` takes an integer from 1"),
        ("12:19", "`batch` takes an integer from 1"),
        ("13:5", "key `batch` is given twice (first on line 12)"),
        (
            "16:5",
            "`seq_len` has no meaning for resnet50, which takes no tokens (it applies to infer, train, generate",
        ),
        ("17:12", "unknown key `image` (did you mean `images`?)"),
        ("19:5", "`matrix` takes a list of mappings; not 'just text'"),
        ("21:25", "`precision` takes one of"),
        ("22:12", "unknown key `speed_up_min` (did you mean `speedup_min`?)"),
        ("22:48", "top1_delta_pp_min takes a number, not 'a'"),
        ("23:11", "`require` takes one of timing, energy, precision, accuracy; not 'timings' (did you mean `timing`?)"),
    ]
    assert len(found) == len(expected), "\n".join(found)
    for said, (place, text) in zip(found, expected, strict=True):
        assert said.startswith(f"{place}: {text}"), said


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{model: resnet50}", "4:5: `workload` is missing (one of infer, train"),
        ("{workload: infer, runtime: torch}", "4:5: `model` is missing: workload infer needs it"),
        ("{workload: infer, model: resnet50}", "4:5: `runtime` is missing: workload infer needs it"),
        ("{workload: train}", "4:5: `model` is missing: workload train needs it (one of resnet50, vgg16"),
        ("{workload: accuracy, model: resnet50, runtime: torch}", "4:5: `images` is missing"),
        ("{workload: noop, repetitions: 0}", "4:35: `repetitions` takes an integer from 1 to 100000; not 0"),
        ("{workload: noop, repetitions: [2, 3]}", "4:35: `repetitions` takes an integer from 1 to 100000; not a list"),
        ("{workload: noop, include: {repetitions: 3}}", "4:32: unknown key `repetitions`"),
        (
            "{workload: noop, slo_ms: 50}",
            "4:22: `slo_ms` has no meaning for workload noop (it applies to infer",
        ),
        (
            "{workload: infer, model: mlp, runtime: torch, slo_ms: []}",
            "4:59: `slo_ms` is an empty list (give a bound in ms, or remove the key)",
        ),
        (
            "{workload: infer, model: mlp, runtime: torch, slo_ms: [20, 0]}",
            "4:59: `slo_ms` takes milliseconds above 0, or a list of them; not 0 (as in `slo_ms: 50` or",
        ),
        (
            "{workload: infer, model: mlp, runtime: torch, slo_ms: fast}",
            "4:59: `slo_ms` takes milliseconds above 0, or a list of them; not 'fast'",
        ),
        (
            "{workload: train, model: tinylm-small, batch: [4, 6], accumulation: 4}",
            "4:73: `accumulation` 4 does not divide a batch of 6 (the batch is what one step of the optimiser sees",
        ),
        (
            "{workload: train, model: resnet50, image_size: 32, batch: [1, 2]}",
            "4:64: the last batch norm of resnet50 sees one value of each channel: 1 image of 32x32 in a part of the b",
        ),
        (
            "{workload: train, model: mobilenet-v1, image_size: 32, batch: 4, accumulation: 4}",
            "4:84: the last batch norm of mobilenet-v1 sees one value of each channel",
        ),
        (
            "{workload: train, model: mobilenet-v2, image_size: 32}",
            "4:30: the last batch norm of mobilenet-v2 sees one value of each channel",
        ),
        (
            "{workload: infer, model: resnet50, runtime: torch, trained_in: amp-bf16}",
            "4:56: `trained_in` changes nothing in this entry (no weights are trained beforehand: they are random, or",
        ),
        (
            "{workload: fit, model: digits-cnn}",
            "4:5: `target_top1_percent` is missing: workload fit needs it (as in `target_top1_percent: 95`)",
        ),
        (
            "{workload: fit, model: resnet50, target_top1_percent: 50}",
            "4:5: `images` is missing: workload fit needs it (synthetic-100, or a folder",
        ),
        (
            "{workload: fit, model: tinylm-tiny, target_top1_percent: 50}",
            "4:28: workload fit takes an image model, not tinylm-tiny (one of resnet50, vgg16,",
        ),
        (
            "{workload: fit, model: digits-cnn, target_top1_percent: 50, learning_rate: 1e30}",
            "4:80: `learning_rate` takes a number from 1e-09 to 1000; not 1e+30",
        ),
        (
            "{workload: noop, energy_window_s: 1e300}",
            "4:39: `energy_window_s` takes a number from 0 to 9.0072e+15; not 1e+300",
        ),
        (
            "{workload: fit, model: digits-cnn, target_top1_percent: 101}",
            "4:61: `target_top1_percent` takes a number from 0 to 100; not 101",
        ),
        (
            "{workload: fit, model: digits-cnn, target_top1_percent: 90, iterations: 3}",
            "4:65: `iterations` changes nothing in this entry (fit trains once, and all of that is its window)",
        ),
        (
            "{workload: train, model: digits-cnn, epochs_max: 3}",
            "4:42: `epochs_max` has no meaning for workload train (it applies to fit)",
        ),
        (
            "{workload: infer, model: tinylm-small, runtime: torch, accumulation: 2}",
            "4:60: `accumulation` has no meaning for workload infer (it applies to train, fit)",
        ),
        (
            "{workload: tokenize, path: rust, gradient_checkpointing: true}",
            "4:38: `gradient_checkpointing` has no meaning for workload tokenize (it applies to train of lang",
        ),
        ("{workload: noop, fused_optimiser: true}", "4:22: `fused_optimiser` has no meaning for workload noop"),
        ("{workload: noop, fed: false}", "4:22: `fed` has no meaning for workload noop (it applies to infer, train"),
        (
            "{workload: train, model: tinylm-small, path: rust, fed: false}",
            "4:56: `fed` changes nothing in this entry (a path that reads text always feeds the model batch by batch)",
        ),
        (
            "{workload: train, model: tinylm-small, compile_mode: default}",
            "4:44: `compile_mode` changes nothing in this entry (it is a factor of torch-compile)",
        ),
        (
            "{workload: h2d, direction: both, pinned: [true, false], non_blocking: true}",
            "4:32: copies in both directions run at once only with `pinned: true` and `non_blocking: true` (set both",
        ),
        ("{workload: h2d, direction: up}", "4:32: `direction` takes one of h2d, d2h, both; not 'up'"),
        (
            "{workload: h2d, transfer_bytes: 3, streams: 4, pinned: true, non_blocking: true}",
            "4:49: 3 bytes cannot be cut into 4 parts (use fewer `streams`)",
        ),
        (
            "{workload: h2d, streams: 2, pinned: true}",
            "4:21: `streams` changes nothing in this entry (only copies with `pinned: true` and `non_blocking: true`",
        ),
        ("{workload: train, model: tinylm-small, numa_node: 0}", "4:44: `numa_node` has no meaning for workload train"),
        ("{workload: noop, batch: 3}", "4:22: `batch` has no meaning for workload noop (it applies to infer, train"),
        ("{workload: h2d, model: resnet50}", "4:21: `model` has no meaning for workload h2d"),
        (
            "{workload: train, model: tinylm-small, seq_len: [128, 4096]}",
            "4:59: tinylm-small takes sequences of up to 2048 tokens",
        ),
        ("{workload: train, model: mlp}", "4:30: workload train takes a language model or an image model, not mlp"),
        (
            "{workload: accuracy, model: mlp, runtime: torch}",
            "4:33: workload accuracy takes an image model or one with data of its own, not mlp (one of resnet50,",
        ),
        (
            "{workload: infer, model: tinylm-small, runtime: torch, images: digits}",
            "4:60: `images` has no meaning for tinylm-small, which takes no images",
        ),
        (
            "{workload: generate, model: tinylm-small, runtime: torch, seq_len: [2000, 8], new_tokens: 49}",
            "4:95: tinylm-small takes sequences of up to 2048 tokens, and seq_len 2000 with new_tokens 49 is 2049",
        ),
        (
            "{workload: generate, model: tinylm-small, runtime: torch, seq_len: 2048}",
            "4:72: tinylm-small takes sequences of up to 2048 tokens",
        ),
        ("{workload: generate, model: distilbert, runtime: torch}", "4:33: workload generate takes a language model"),
        ("{workload: generate, model: tinylm-small, runtime: torch, new_tokens: 1}", "4:75: `new_tokens` takes"),
        ("{workload: generate, model: tinylm-small, runtime: torch, temperature: -1}", "4:76: `temperature` takes"),
        (
            "{workload: generate, model: tinylm-small, runtime: torch, transfers: true}",
            "4:63: `transfers` has no meaning for workload generate (it applies to infer",
        ),
        (
            "{workload: infer, model: tinylm-small, runtime: torch, new_tokens: 8}",
            "4:60: `new_tokens` has no meaning for workload infer (it applies to generate",
        ),
        (
            "{workload: train, model: tinylm-small, temperature: 1}",
            "4:44: `temperature` has no meaning for workload train (it applies to generate",
        ),
        (
            "{workload: generate, model: tinylm-small, runtime: torch, arrivals: poisson}",
            "4:73: poisson arrivals need `arrival_rate_per_s`",
        ),
        ("{workload: train, model: distilbert}", "4:30: workload train takes a language model or"),
        (
            "{workload: infer, model: distilbert, runtime: torch, seq_len: [512, 513]}",
            "4:73: distilbert takes sequences of up to 512 tokens",
        ),
        (
            "{workload: infer, model: distilbert, runtime: torch, path: rust}",
            "4:58: `path` has no meaning for distilbert: its ids are synthetic",
        ),
        (
            "{workload: infer, model: unet3d, runtime: torch, seq_len: 8}",
            "4:54: `seq_len` has no meaning for unet3d, which takes no tokens",
        ),
        (
            "{workload: accuracy, model: vit-heads, runtime: torch}",
            "4:33: workload accuracy takes an image model or one with data of its own, not vit-heads",
        ),
        (
            "{workload: infer, model: mlp, runtime: torch, precision: int8, images: digits}",
            "4:68: `images` has no meaning for mlp, which takes no images",
        ),
        (
            "{workload: infer, model: vgg16, runtime: torch, checkpoint: synthetic-100}",
            "4:65: vgg16 is not trained on synthetic-100 (those that are: resnet50",
        ),
        (
            "{workload: infer, model: resnet50, runtime: torch, calibration: entropy}",
            "4:56: `calibration` changes nothing in this entry (only int8, int4 and fp8 are quantised; qat fi",
        ),
        (
            "{workload: infer, model: tinylm-small, runtime: torch, corpus_limit_bytes: 9}",
            "4:60: `corpus_limit_bytes` changes nothing in this entry (path none uses synthetic ids)",
        ),
        (
            "{workload: train, model: tinylm-small, batch_tokens: [256, 300]}",
            "4:64: `batch_tokens` 300 is not a multiple of seq_len 128 (use 256 or 384)",
        ),
        ("{workload: train, model: tinylm-small, batch_tokens: 64}", "4:58: `batch_tokens` 64 is not a multiple"),
        (
            "{workload: train, model: tinylm-small, batch_tokens: 256, batch: 2}",
            "4:44: `batch_tokens` and `batch` both set the batch size",
        ),
        ("{workload: train, model: tinylm-small, batch_tokens: null}", "4:58: `batch_tokens` takes an integer from 2"),
        ("{workload: tokenize}", "4:5: `path` is missing: workload tokenize needs it (one of python, hf"),
        (
            "{workload: infer, model: tinylm-small, runtime: torch, tokenizer: tok32k}",
            "4:60: `tokenizer` changes nothing in this entry (path none uses synthetic ids)",
        ),
        (
            "{workload: infer, model: resnet50, runtime: torch, image_limit: 3}",
            "4:56: `image_limit` changes nothing in this entry (infer and train measure no accuracy",
        ),
        (
            "{workload: infer, model: resnet50, runtime: torch, arrivals: poisson}",
            "4:66: poisson arrivals need `arrival_rate_per_s` (as in `arrival_rate_per_s: 100`: iterations a second)",
        ),
        (
            "{workload: infer, model: resnet50, runtime: torch, arrival_rate_per_s: 9}",
            "4:56: `arrival_rate_per_s` changes nothing in this entry (in a closed loop nothing arrives",
        ),
        (
            "{workload: infer, model: resnet50, runtime: torch, arrivals: fixed, arrival_rate_per_s: 0}",
            "4:93: `arrival_rate_per_s` takes a number of at least 0.001; not 0",
        ),
        (
            "{workload: train, model: tinylm-small, arrivals: fixed}",
            "4:44: `arrivals` has no meaning for workload train",
        ),
        ("{workload: noop, threads: []}", "4:31: `threads` is an empty list"),
        ("{workload: noop, threads: true}", "4:31: `threads` takes an integer"),
        (
            TENSORRT_INT8.replace("}", ", quantiser: modelopt, calibration: percentile}"),
            "4:82: the quantiser modelopt does not support calibration: percentile (supported: minmax, entropy; the",
        ),
        (
            "{workload: infer, model: digits-cnn, runtime: onnxruntime, precision: int8, calibration: moving-average}",
            "4:94: the quantiser onnxruntime does not support calibration: moving-average",
        ),
        (
            "{workload: infer, model: digits-cnn, runtime: onnxruntime, precision: int8, range: full}",
            "4:88: the quantiser onnxruntime does not support range: full (use quantiser: pybench)",
        ),
        (
            TENSORRT_INT8.replace("}", ", scheme: asymmetric}"),
            "4:79: the quantiser pybench does not support scheme: asymmetric (use quantiser: onnxruntime or dyn",
        ),
        (
            TENSORRT_INT8.replace("}", ", quantiser: dynamic, calibration: minmax}"),
            "4:91: `calibration` changes nothing in this entry (only int8, int4 and fp8 are quantised; qat fi",
        ),
        (
            "{workload: infer, model: digits-cnn, runtime: onnxruntime, precision: int8, quantiser: modelopt-autotune}",
            "4:92: the quantiser modelopt-autotune measures engines of TensorRT, and runtime onnxruntime opens none (u",
        ),
        (
            "{workload: sensitivity, model: digits-cnn, precision: int8, quantiser: modelopt-autotune}",
            "4:76: the quantiser modelopt-autotune measures engines of TensorRT, and runtime onnxruntime opens none",
        ),
        (
            TENSORRT_INT8.replace("}", ", quantiser: modelopt-autotune, calibration: percentile}"),
            "4:82: the quantiser modelopt-autotune does not support calibration: percentile (supported: minmax",
        ),
        (
            TENSORRT_INT8.replace("}", ", quantiser: modelopt, placement: naive}"),
            "4:103: the quantiser modelopt does not support placement: naive (use quantiser: pybench)",
        ),
        (
            TENSORRT_INT8.replace("}", ", quantiser: modelopt, granularity: tensor}"),
            "4:105: the quantiser modelopt does not support granularity: tensor (use quantiser: pybench or onnx",
        ),
        (
            "{workload: train, model: tinylm-small, scheme: symmetric}",
            "4:44: `scheme` has no meaning for workload train",
        ),
        (
            TENSORRT_INT8.replace("int8}", "fp8, quantiser: onnxruntime}"),
            "4:81: the quantiser onnxruntime does not round to fp8: it has one scale for all channels",
        ),
        (
            "{workload: sensitivity, model: digits-cnn, precision: int8, quantiser: dynamic}",
            "4:76: workload sensitivity takes pairs of Q/DQ apart, and the quantiser dynamic writes none",
        ),
        (
            "{workload: sensitivity, model: text-encoder, precision: int4, quantiser: weight-only}",
            "4:78: workload sensitivity takes pairs of Q/DQ apart, and the quantiser weight-only writes none",
        ),
        (
            "{workload: infer, model: distilbert, runtime: onnxruntime, precision: int4}",
            "4:75: the quantiser onnxruntime does not round to int4: in int4 only weights are stored (use",
        ),
        (
            "{workload: infer, model: distilbert, runtime: onnxruntime, precision: int8+fp16, quantiser: weight-only}",
            "4:75: weight-only leaves FP32 around the weights, and int8+fp16 has fp16 there (use precision: int8",
        ),
        (
            "{workload: infer, model: resnet50, runtime: onnxruntime, precision: int8, quantiser: weight-only}",
            "4:90: weight-only stores the weights of matrix products, and most weights of resnet50 are of convolutions",
        ),
        (
            "{workload: infer, model: mlp, runtime: native, precision: int4, quantiser: weight-only, block_size: 48}",
            "4:105: `block_size` takes a power of two, not 48 (use 16, 32, 64, 128 or 256)",
        ),
        (
            "{workload: infer, model: mlp, runtime: onnxruntime, precision: int8, block_size: 64}",
            "4:74: `block_size` changes nothing in this entry (only the quantiser weight-only has blocks)",
        ),
        (
            "{workload: sensitivity, model: digits-cnn}",
            "4:5: workload sensitivity takes a quantised model apart, and fp32 quantises nothing (as in `precision: in",
        ),
        (
            "{workload: sensitivity, model: digits-cnn, precision: int8, runtime: tensorrt}",
            "4:74: workload sensitivity computes parts of an ONNX file in onnxruntime, not in tensorrt (leave `run",
        ),
        (
            TENSORRT_INT8.replace("}", ", quantiser: qat}"),
            "4:82: the quantiser qat trains the weights, and there is no training data for mlp ",
        ),
        (
            TENSORRT_INT8.replace("mlp", "digits-cnn").replace("int8}", "fp8, quantiser: qat}"),
            "4:88: the quantiser qat does not round to fp8: it trains with the rounding of int8 (use",
        ),
        (
            TENSORRT_INT8.replace("mlp", "digits-cnn").replace("}", ", quantiser: qat, keep_fp32: fc}"),
            "4:105: the quantiser qat rounds every convolution and linear layer, and takes no `keep_fp32`",
        ),
        (
            TENSORRT_INT8.replace("mlp", "digits-cnn").replace("}", ", quantiser: qat, calibration_images: 3}"),
            "4:94: `calibration_images` changes nothing in this entry (only int8, int4 and fp8 are quantised; qat fi",
        ),
        ("{workload: noop, affinity: 3-0}", "4:32: `affinity` has the span 3-0, which ends before it begins"),
        ("{workload: noop, affinity: all}", "4:32: `affinity` takes CPUs such as `0-3,8`"),
        ("{workload: noop, device: gpu}", "4:30: `device` takes auto, cpu, cuda or a GPU's UUID (GPU-...); not 'gpu'"),
        ("{workload: noop, energy_window_s: -1}", "4:39: `energy_window_s` takes a number of at least 0; not -1"),
        ("{workload: noop, energy_window_s: .nan}", "4:39: `energy_window_s` takes a number of at least 0; not nan"),
        (
            "{workload: noop, zip: [{threads: [1, 2], iterations: [3]}]}",
            "4:28: lists in a zip block must have the same length",
        ),
        ("{workload: noop, threads: 1, zip: {threads: [1, 2]}}", "4:40: `threads` is given twice in this entry"),
        ("{workload: noop, exclude: [{threads: 3}]}", "4:32: this exclusion matches no cell of its entry (`threads`"),
        ("{workload: noop, exclude: {}}", "4:31: an exclusion without factors"),
        ("{workload: noop, exclude: {workload: noop}}", "4:22: the exclusions leave no cell of this entry"),
        ("{workload: noop, include: [{batch: 3}]}", "4:33: `batch` has no meaning for workload noop"),
        ("{workload: noop, data: 3}", "4:28: `data` takes a path; not 3"),
        ("{workload: null}", "4:16: `workload` takes one of infer, train"),
        (
            f"{{workload: noop, iterations: {HUNDRED}, threads: {HUNDRED}, device: [auto, cpu]}}",
            "4:5: 20000 cells in this entry: a plan has at most 10000",
        ),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_be_meant_is_refused_at_its_place(problems: Problems, entry: str, expected: str) -> None:
    found = problems(f"  - {entry}\n")
    assert found[0].startswith(expected), found
    assert len(found) == 1, found


def test_all_entries_together_are_bounded(problems: Problems) -> None:
    entry = f"  - {{workload: noop, threads: {list(range(1, 101))}, iterations: {list(range(1, 61))}}}\n"
    assert [said[:18] for said in problems(entry * 2)] == ["5:5: 6000 cells in"]


def test_a_default_that_applies_nowhere_is_refused(problems: Problems) -> None:
    text = "schema_version: 1\nname: x\ndefaults: {seq_len: 64}\nmatrix: [{workload: noop}]\n"
    assert problems(text, whole=True)[0].startswith("3:12: `seq_len` applies to no entry of the matrix")


def test_a_scalar_or_a_list_is_no_plan(problems: Problems) -> None:
    assert problems("just text", whole=True) == ["1:1: the plan takes a mapping; not 'just text'"]
    assert problems("[1]", whole=True) == ["1:1: the plan takes a mapping; not a list"]


def test_missing_keys_are_all_named(problems: Problems) -> None:
    found = problems("repetitions: 3", whole=True)
    assert [said.split(" is missing")[0] for said in found] == ["1:1: `schema_version`", "1:1: `name`", "1:1: `matrix`"]


def test_a_problem_in_a_merged_mapping_is_shown_where_it_is_written(problems: Problems) -> None:
    text = "  - &first {workload: noop, threads: 0}\n  - {<<: *first, iterations: 5}\n"
    assert problems(text) == ["4:38: `threads` takes an integer from 1 to 9007199254740992; not 0"]


def test_a_case_twice_wrong_in_a_product_is_one_problem(problems: Problems) -> None:
    assert len(problems("  - {workload: h2d, batch: [1, 2, 3], pinned: [true, false]}\n")) == 1


def test_the_version_of_plans_has_not_changed() -> None:
    assert SCHEMA_VERSION == 1


def test_an_unknown_model_is_not_said_to_lack_images(problems: Problems) -> None:
    (found,) = problems("  - {workload: accuracy, model: resnet51, runtime: onnxruntime, precision: fp32}\n")
    assert "no model and no file is called resnet51" in str(found)
    (found,) = problems("  - {workload: accuracy, model: resnet50, runtime: onnxruntime, precision: fp32}\n")
    assert "`images` is missing" in str(found)


def test_the_folder_of_the_plan_is_named_when_a_file_is_missing(problems: Problems, tmp_path: Path) -> None:
    found = problems("  - {workload: infer, model: nothing.onnx, runtime: onnxruntime}\n")
    assert len(found) == 1
    assert found[0].startswith("4:30: `model`: no such file: nothing.onnx; built-in: resnet50, vgg16")
    assert found[0].endswith(f"(paths are relative to the plan's folder, {tmp_path})")


def test_a_list_of_defaults_is_told_where_lists_stand_and_nothing_is_said_to_be_missing(problems: Problems) -> None:
    found = problems(
        "schema_version: 1\nname: x\ndefaults: {workload: infer, model: [mlp, digits-cnn], runtime: cpp}\n"
        "matrix:\n  - {batch: [1, 2]}\n",
        whole=True,
    )
    assert len(found) == 2
    hint = "an entry of `matrix` takes a list, and has a case for each of its values"
    assert found[0] == f"3:36: `model` takes one value here, not a list ({hint})"
    assert found[1].startswith("3:64: `runtime` takes one of tensorrt,")


def test_what_is_required_of_no_case_is_refused(problems: Problems) -> None:
    plan = "  - {workload: infer, model: digits-cnn, runtime: onnxruntime}\nrequire: [timing, accuracy]\n"
    (said,) = problems(plan)
    assert "`require: accuracy` has no meaning for any case (remove it)" in said
