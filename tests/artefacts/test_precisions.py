# SPDX-License-Identifier: Apache-2.0
"""Artefacts of every precision, made by their recipes from the trained digits network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from pybench import artefacts
from pybench.campaign.recipe import in_making_order, recipes_of
from pybench.case import Case
from pybench.catalogue.workloads import AGREEMENT
from pybench.errors import InputError, UnsupportedError
from pybench.measurement.doubts import LOST_KEY, agreement, output_cautions
from pybench.measurement.result import Result
from pybench.precision.audit import audit_onnx
from pybench.precision.conversion import convert
from pybench.precision.int8 import stamp
from pybench.precision.network import open_network
from pybench.precision.notes import read_notes
from tests.precision import graphs
from tests.support.making import artefacts_of, codes, run, store, write_classifier

pytestmark = pytest.mark.slow  # makes each precision of a model

DIGITS = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", quantiser="pybench")


def made(case: Case, folder: Path, files: dict[str, Path] | None = None) -> tuple[Result, Path]:
    """The last artefact of a case, made here, with what came of it."""
    recipe = recipes_of(case)["model"]
    needs: dict[str, Path] = {}
    for role, needed in recipe.needs:
        needs[role] = store() / needed.digest / needed.file
        for one in in_making_order({role: needed}):
            place = store() / one.digest
            if not (place / one.file).exists():
                place.mkdir(exist_ok=True)
                sources = {name: store() / each.digest / each.file for name, each in one.needs}
                artefacts.make(one.as_json(), sources, files or {}, place)
    return artefacts.make(recipe.as_json(), needs, files or {}, folder), folder / recipe.file


@pytest.mark.parametrize(
    ("precision", "error"),
    [
        ("fp16", 0.003), ("bf16", 0.03), ("int8", 0.03), ("int8+fp16", 0.03), ("int8+bf16", 0.05),
        ("fp8", 0.06), ("fp8+fp16", 0.06), ("fp8+bf16", 0.08),
    ],
)  # fmt: skip
def test_every_precision_is_made_audited_and_compared(precision: str, error: float, tmp_path: Path) -> None:
    result, path = made(DIGITS.with_factors(precision=precision), tmp_path)
    onnx.checker.check_model(str(path), full_check=True)
    assert result.valid["precision"].value is True
    assert audit_onnx(path, precision).valid
    assert 0 < result.labels["against_fp32_relative_error"] < error
    assert result.labels["against_fp32_top1_agreement_ratio"] > 0.9
    assert result.labels["kept"] == read_notes(path).kept
    expected = 2 if precision.startswith("fp8") else 0
    assert len(result.labels["kept"]) == expected
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.parametrize("precision", ["fp16", "int8+fp16"])
def test_equal_recipes_give_equal_files(precision: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    case = DIGITS.with_factors(precision=precision)
    assert made(case, tmp_path / "a")[1].read_bytes() == made(case, tmp_path / "b")[1].read_bytes()


@pytest.mark.parametrize("calibration", ["minmax", "entropy", "percentile", "moving-average"])
def test_a_calibration_says_how_and_on_what(calibration: str) -> None:
    case = DIGITS.with_factors(precision="int8", calibration=calibration)
    recipe = dict(recipes_of(case)["model"].needs)["calibration"]
    artefacts_of(case)
    stored: dict[str, Any] = json.loads((store() / recipe.digest / recipe.file).read_text())
    assert stored["calibration"] | {"sha256": ""} == {
        "method": calibration, "samples": 100, "source": "digits", "identity": "digits", "held_out": True, "sha256": "",
    }  # fmt: skip
    assert len(stored["calibration"]["sha256"]) == 64
    assert all(value > 0 for value in stored["amax"].values())
    assert len(stored["amax"]) == 4
    assert stored["rule"]


def test_int8_and_fp8_share_one_calibration() -> None:
    cases = [DIGITS.with_factors(precision=precision) for precision in ("int8", "fp8+fp16", "int8+bf16")]
    assert len({dict(recipes_of(case)["model"].needs)["calibration"].digest for case in cases}) == 1


def test_the_keep_list_reaches_the_file(tmp_path: Path) -> None:
    case = DIGITS.with_factors(precision="int8+fp16", keep_fp32="fc/.*|conv1/Conv")
    result, path = made(case, tmp_path)
    assert read_notes(path).kept == {"conv1/Conv": "keep_fp32", "fc/Gemm": "keep_fp32"}
    assert result.labels["precision_facts"]["multiplying_types"] == {"fp32": 2, "int8": 2}
    assert result.valid["precision"].value is True


@pytest.mark.parametrize("precision", ["int8", "int8+fp16"])
def test_the_keep_list_reaches_what_onnxruntimes_quantiser_fuses(precision: str, tmp_path: Path) -> None:
    """`product` of a user's model with a bias becomes another node, which is kept in FP32 in its place."""
    files = {"model": graphs.saved(graphs.two_products(), tmp_path / "mine.onnx")}
    case = DIGITS.with_factors(
        model="mine.onnx",
        quantiser="onnxruntime",
        precision=precision,
        keep_fp32="product",
        sources=(("model", "8" * 64),),
    )
    (tmp_path / "out").mkdir()
    result, _ = made(case, tmp_path / "out", files)
    assert result.labels["kept"] == {"product/MatMulAddFusion": "keep_fp32"}
    assert result.labels["precision_facts"]["multiplying_types"] == {"fp32": 1, "int8": 1}


def test_a_keep_list_that_matches_nothing_is_an_input_error(tmp_path: Path) -> None:
    for precision in ("fp16", "int8"):
        with pytest.raises(InputError, match="keep_fp32"):
            made(DIGITS.with_factors(precision=precision, keep_fp32="no_such_node"), tmp_path)


def test_onnxruntimes_quantiser_is_symmetric_for_tensorrt(tmp_path: Path) -> None:
    """The recipe says which scheme, by who executes the file."""
    ours = DIGITS.with_factors(quantiser="onnxruntime", precision="int8")
    assert dict(recipes_of(ours)["model"].parameters)["scheme"] == "asymmetric"
    engine = recipes_of(ours.with_factors(runtime="tensorrt"), platform="TensorRT on nothing")["engine"]
    recipe = dict(engine.needs)["onnx"]
    assert dict(recipe.parameters)["scheme"] == "symmetric"
    needs = {role: artefacts_of(DIGITS.with_factors(quantiser=None))["model"] for role, _ in recipe.needs}
    result = artefacts.make(recipe.as_json(), needs, {}, tmp_path)
    graph = onnx.load(tmp_path / "model.onnx").graph
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    pairs = [node for node in graph.node if node.op_type in ("QuantizeLinear", "DequantizeLinear")]
    assert pairs
    assert all(arrays[node.input[2]].dtype.name == "int8" and not arrays[node.input[2]].any() for node in pairs)
    assert (result.labels["scheme"], result.valid["precision"].value) == ("symmetric", True)


@pytest.mark.parametrize(
    "factors", [{"quantiser": "onnxruntime", "granularity": "tensor"}, {"quantiser": "pybench", "range": "full"}]
)
def test_a_file_says_how_its_weights_and_codes_were_chosen_and_how_far_it_is_from_fp32(
    factors: dict[str, str], tmp_path: Path
) -> None:
    result, path = made(DIGITS.with_factors(precision="int8", **factors), tmp_path)
    assert {name: result.labels[name] for name in factors} == factors
    stored = agreement(read_notes(path).metadata)
    assert stored["relative_error_ratio"].value == result.labels["against_fp32_relative_error"]
    assert set(stored) == set(AGREEMENT)
    assert stored["signal_error_ratio"].value == pytest.approx(
        result.labels["against_fp32_relative_error"] / result.labels["against_fp32_varied_ratio"]
    )
    assert result.labels["outputs_hardly_vary"] is None


@pytest.mark.parametrize(
    ("factors", "code"),
    [({"precision": "fp8"}, "no_quantiser"), ({"calibration": "moving-average"}, "no_calibration")],
)
def test_what_onnxruntimes_quantiser_does_not_know_is_refused(
    factors: dict[str, str], code: str, tmp_path: Path
) -> None:
    case = DIGITS.with_factors(**{"quantiser": "onnxruntime", "precision": "int8", **factors})
    with pytest.raises(UnsupportedError) as refusal:
        made(case, tmp_path)
    assert refusal.value.reason.stored_code == code


@pytest.mark.parametrize("quantiser", ["pybench", "onnxruntime"])
@pytest.mark.parametrize("precision", ["int8", "fp8+fp16", "bf16", "fp16"])
def test_a_users_model_in_half_precision_is_no_origin_of_others(precision: str, quantiser: str, tmp_path: Path) -> None:
    network = open_network(write_classifier(tmp_path / "mine.onnx"))
    convert(network, "fp16")
    network.save(tmp_path / "half.onnx", {})
    case = DIGITS.with_factors(model="half.onnx", precision=precision, quantiser=quantiser)
    case = case.with_factors(sources=(("model", f"5{quantiser}".ljust(64, "0")),))
    (tmp_path / "out").mkdir()
    if precision == "fp16":
        assert made(case, tmp_path / "out", {"model": tmp_path / "half.onnx"})[0].valid["precision"].value is True
        return
    with pytest.raises(InputError, match=r"half\.onnx multiplies in fp16, and lower precisions are made of FP32"):
        made(case, tmp_path / "out", {"model": tmp_path / "half.onnx"})


def test_a_users_model_is_calibrated_on_random_samples_and_says_so(tmp_path: Path) -> None:
    files = {"model": write_classifier(tmp_path / "mine.onnx")}
    case = DIGITS.with_factors(model="mine.onnx", precision="int8+fp16", sources=(("model", "6" * 64),))
    (tmp_path / "out").mkdir()
    result, path = made(case, tmp_path / "out", files)
    assert result.labels["calibration"]["source"] == "random"
    assert codes(result) == {"small_calibration"}
    assert audit_onnx(path, "int8+fp16").valid


@pytest.mark.parametrize(("factor", "why"), [(1e-5, "are 0"), (1e3, "NaN or infinite")], ids=["vanish", "overflow"])
@pytest.mark.parametrize("precision", ["fp16", "int8+fp16"])
def test_outputs_that_a_precision_loses_are_a_doubt_that_goes_with_the_file(
    precision: str, factor: float, why: str, tmp_path: Path
) -> None:
    """Three products by 1e-5 end below FP16's smallest number, three by 1e3 beyond its largest."""
    weight = (factor * np.random.default_rng(0).standard_normal((8, 8))).astype(np.float32)
    nodes = [helper.make_node("MatMul", [source, "w"], [target], target) for source, target in ("xa", "ab", "by")]
    model = graphs.model(nodes, {"x": ["n", 8]}, {"y": ["n", 8]}, {"w": weight})
    files = {"model": graphs.saved(model, tmp_path / "m")}
    case = DIGITS.with_factors(model="m", precision=precision, sources=(("model", f"{factor}".ljust(64, "0")),))
    (tmp_path / "out").mkdir()
    result, path = made(case, tmp_path / "out", files)
    assert "outputs_lost" in codes(result)
    assert why in read_notes(path).metadata[LOST_KEY]
    (tmp_path / "bf16").mkdir()
    result, path = made(case.with_factors(precision="bf16"), tmp_path / "bf16", files)
    assert "outputs_lost" not in codes(result)
    assert LOST_KEY not in read_notes(path).metadata


@pytest.mark.parametrize(
    ("offset", "why"),
    [
        ((1e4, 0), r"the inputs change 0\.0\d+ % of the FP32 outputs"),
        ((50, 0), "all 40 samples have one class in FP32"),
    ],
    ids=["norm", "class"],
)
def test_outputs_that_hardly_vary_are_a_doubt_that_goes_with_the_file(
    offset: tuple[float, float], why: str, tmp_path: Path
) -> None:
    weight = np.random.default_rng(0).standard_normal((8, 2)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "product"),
        helper.make_node("Add", ["a", "b"], ["y"], "sum"),
    ]
    weights = {"w": weight, "b": np.array(offset, np.float32)}
    files = {"model": graphs.saved(graphs.model(nodes, {"x": ["n", 8]}, {"y": ["n", 2]}, weights), tmp_path / "m")}
    case = DIGITS.with_factors(model="m", sources=(("model", f"{offset[0]}".ljust(64, "0")),))
    result, path = made(case.with_factors(precision="int8"), tmp_path, files)
    assert result.labels["against_fp32_top1_agreement_ratio"] == 1
    assert re.fullmatch(why, result.labels["outputs_hardly_vary"])
    assert "outputs_hardly_vary" in codes(result)
    assert [one.detail for one in output_cautions(read_notes(path).metadata)] == [result.labels["outputs_hardly_vary"]]


def test_a_run_of_a_file_that_lost_its_outputs_carries_the_doubt(tmp_path: Path) -> None:
    path = write_classifier(tmp_path / "mine.onnx")
    stamp(path, {LOST_KEY: "all outputs are 0"})
    case = DIGITS.with_factors(model="mine.onnx", quantiser=None, iterations=2, idle_window_s=0.0)
    assert "outputs_lost" in codes(run(case.with_factors(sources=(("model", "9" * 64),)), {"model": path}))


def test_a_file_that_is_quantised_already_has_no_ranges_to_find(tmp_path: Path) -> None:
    source = artefacts_of(DIGITS.with_factors(precision="int8"))["model"]
    case = DIGITS.with_factors(model="mine.onnx", precision="int8", sources=(("model", "7" * 64),))
    result, path = made(case, tmp_path, {"model": source})
    assert path.read_bytes() == source.read_bytes()
    assert result.labels["calibration"] == "in the file"


@pytest.mark.slow
def test_resnet50_is_placed_as_it_was_measured(tmp_path: Path) -> None:
    """54 multiplying nodes; pairs: 55 activations (16 block inputs, 32 inside, 4 down-sampling, images, mean, head)."""
    case = DIGITS.with_factors(model="resnet50", precision="int8+fp16", calibration_images=2)
    result, path = made(case, tmp_path)
    assert result.labels["precision_facts"]["multiplying_types"] == {"int8": 54}
    assert result.labels["activations_quantised"] == 55
    assert result.labels["precision_facts"]["quantize_linear_nodes"] == 54 + 55
    assert result.labels["against_fp32_relative_error"] < 0.05
    assert path.stat().st_size < 60e6


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [None, "synthetic-100"])
@pytest.mark.parametrize("precision", ["int8", "int8+fp16"])
def test_weights_that_were_trained_on_with_rounding_keep_their_accuracy(
    checkpoint: str | None, precision: str, tmp_path: Path
) -> None:
    case = DIGITS.with_factors(precision=precision, quantiser="qat", checkpoint=checkpoint)
    result, path = made(case, tmp_path)
    onnx.checker.check_model(str(path), full_check=True)
    assert result.valid["precision"].value is True
    assert audit_onnx(path, precision).facts["quantised_nodes"] == 4
    assert result.labels["calibration"]["source"] == (checkpoint or "digits")
    assert result.labels["against_fp32_top1_agreement_ratio"] > 0.9
    assert not codes(result)
    accuracy = case.with_factors(workload="accuracy", precision="int8", images=checkpoint or "digits", image_limit=200)
    floating = accuracy.with_factors(precision="fp32", quantiser=None)
    top1 = [run(each).metrics["top1_percent"].value for each in (accuracy, floating)]
    assert None not in top1
    assert top1[0] >= top1[1] - 4  # type: ignore[operator]


def test_a_naive_placement_makes_another_file_with_fewer_pairs(tmp_path: Path) -> None:
    """The residual block has a summand and the input of a mean more with a pair: two nodes each."""
    files = {"model": graphs.saved(graphs.residual_block(), tmp_path / "block.onnx")}
    case = DIGITS.with_factors(model="block.onnx", precision="int8+fp16", sources=(("model", "b10c" * 16),))
    counts = {}
    for placement in ("fused", "naive"):
        (tmp_path / placement).mkdir()
        result, path = made(case.with_factors(placement=placement), tmp_path / placement, files)
        counts[placement] = result.metrics["qdq_nodes_count"].value
        nodes = onnx.load(path).graph.node
        assert counts[placement] == sum(node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in nodes)
        assert result.valid["precision"].value is True
    assert counts == {"fused": 2 * (8 + 7), "naive": 2 * (6 + 7)}


def test_the_usual_placement_is_no_part_of_a_recipe() -> None:
    """So files that were made before there was a choice stay what they are."""
    case = DIGITS.with_factors(precision="int8")
    assert "placement" not in dict(recipes_of(case)["model"].parameters)
    naive = recipes_of(case.with_factors(placement="naive"))["model"]
    assert dict(naive.parameters)["placement"] == "naive"


def test_a_dynamic_file_multiplies_codes_and_has_no_range_from_samples(tmp_path: Path) -> None:
    """Products with weights become integers; the two products of attention and the norms stay, and the file says so."""
    case = DIGITS.with_factors(model="tinylm-tiny", precision="int8", quantiser="dynamic", seq_len=8)
    recipe = recipes_of(case)["model"]
    assert "calibration" not in dict(recipe.parameters)
    result, path = made(case, tmp_path)
    nodes = [node.op_type for node in onnx.load(path).graph.node]
    assert "MatMulInteger" in nodes
    assert "QuantizeLinear" not in nodes
    assert result.valid["precision"].value is True
    assert result.labels["calibration"] is None
    assert set(result.labels["kept"].values()) <= {"not_a_product_with_a_weight"}
    assert 0 < result.labels["against_fp32_relative_error"] < 0.1
    ran = run(case.with_factors(device="cpu", threads=1, iterations=2, batch=1, idle_window_s=0.0))
    assert ran.valid["precision"].value is True


@pytest.mark.parametrize(("precision", "error"), [("int8", 0.01), ("int4", 0.2)])
def test_weights_alone_make_a_smaller_file_that_every_workload_runs(
    precision: str, error: float, tmp_path: Path
) -> None:
    """The products of attention have no weights, and the file says so."""
    plain = DIGITS.with_factors(model="tinylm-tiny", seq_len=8, device="cpu", threads=1, iterations=2, batch=1)
    case = plain.with_factors(precision=precision, quantiser="weight-only", idle_window_s=0.0)
    recipe = recipes_of(case)["model"]
    assert "calibration" not in dict(recipe.parameters)
    assert dict(recipe.parameters)["block_size"] == 32
    result, path = made(case, tmp_path)
    assert path.stat().st_size < artefacts_of(plain)["model"].stat().st_size
    assert result.valid["precision"].value is True
    assert result.metrics["qdq_nodes_count"].value == 0
    assert set(result.labels["kept"].values()) == {"not_a_product_with_a_weight"}
    assert (result.labels["block_size"], result.labels["accuracy_level"]) == (32, 4)
    assert 0 < result.labels["against_fp32_relative_error"] < error
    generate = {"workload": "generate", "new_tokens": 3}
    for ran in (run(case), run(case.with_factors(**generate))):
        assert ran.valid["precision"].value is True
        facts = ran.labels["precision_facts"]
        assert facts["executed_stored_products"] == facts["stored_weights"][precision] == 5
        assert ran.labels["precision_realised"].startswith(f"weights alone in {precision}: 5 of 7 products, 100%")
        assert facts["stored_products_compute_in"] in (["int8"], ["fp32"])


def test_a_smaller_block_has_a_smaller_error_and_a_file_of_its_own(tmp_path: Path) -> None:
    case = DIGITS.with_factors(model="tinylm-tiny", precision="int4", quantiser="weight-only", seq_len=8)
    errors = {}
    for size in (16, 128):
        (tmp_path / str(size)).mkdir()
        result, _ = made(case.with_factors(block_size=size), tmp_path / str(size))
        errors[size] = result.labels["against_fp32_relative_error"]
    assert errors[16] < errors[128]


def test_a_file_with_stored_weights_is_taken_as_it_is(tmp_path: Path) -> None:
    case = DIGITS.with_factors(model="tinylm-tiny", precision="int4", quantiser="weight-only", seq_len=8)
    _, path = made(case, tmp_path)
    (tmp_path / "own").mkdir()
    own = case.with_factors(model="own.onnx", sources=(("model", "d2" * 32),))
    result, kept = made(own, tmp_path / "own", {"model": path})
    assert kept.read_bytes() == path.read_bytes()
    assert result.valid["precision"].value is True


def test_a_dynamic_file_keeps_what_it_is_told_to(tmp_path: Path) -> None:
    files = {"model": graphs.saved(graphs.residual_block(), tmp_path / "block.onnx")}
    case = DIGITS.with_factors(
        model="block.onnx", precision="int8", quantiser="dynamic", keep_fp32="head", sources=(("model", "d1" * 32),)
    )
    with pytest.raises(InputError, match="no matrix product with a weight"):
        made(case, tmp_path, files)
    (tmp_path / "all").mkdir()
    result, path = made(case.with_factors(keep_fp32=None), tmp_path / "all", files)
    assert sum(node.op_type == "MatMulInteger" for node in onnx.load(path).graph.node) == 1
    assert set(result.labels["kept"]) == {"stem", "d", "a1", "a2", "b1", "b2"}
