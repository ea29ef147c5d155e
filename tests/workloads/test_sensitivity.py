# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from pybench.campaign.recipe import recipes_of
from pybench.case import Case
from pybench.errors import InputError
from pybench.precision.execution import compare
from pybench.precision.sensitivity import OTHERS, QuantisedUnit
from pybench.workloads.sensitivity import Loss, worst_of
from tests.precision import graphs
from tests.support.making import codes, run

DIGITS = Case(
    workload="sensitivity", model="digits-cnn", runtime="onnxruntime", precision="int8", batch=50, threads=1,
    calibration_images=20,
)  # fmt: skip
FRAGILE = Case(
    workload="sensitivity", model="fragile.onnx", runtime="onnxruntime", precision="int8", batch=8, threads=1,
    calibration_images=20,
)  # fmt: skip


def fragile(path: Path, layer: str = "a1") -> Path:
    """A residual block, one of whose layers has a channel of huge weights that a Relu always cuts off.

    Its outputs are those of a channel of zeros, and one scale for the whole weight rounds all other channels to 0."""
    model = graphs.residual_block()
    for tensor in model.graph.initializer:
        value = numpy_helper.to_array(tensor).copy()
        if tensor.name == f"{layer}.weight":
            value[0] *= 3000
        elif tensor.name == f"{layer}.bias":
            value[0] = -1e5
        tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("quantiser", ["pybench", "onnxruntime"])
@pytest.mark.parametrize("layer", ["a1", "b1"])
def test_a_layer_made_fragile_ranks_first_and_one_scale_a_channel_mends_it(
    quantiser: str, layer: str, tmp_path: Path
) -> None:
    files = {"model": fragile(tmp_path / "fragile.onnx", layer)}
    sources = (("model", f"{layer}{quantiser}".ljust(64, "0")),)
    case = FRAGILE.with_factors(quantiser=quantiser, granularity="tensor", sources=sources)
    result = run(case, files)
    table = result.tables["sensitivity"]
    only = dict(zip(table["node"], table["only_relative_error"], strict=True))
    without = dict(zip(table["node"], table["all_but_relative_error"], strict=True))
    others = [name for name in only if name not in (layer, OTHERS)]
    assert only[layer] > 10 * max(only[name] for name in others)
    assert without[layer] < 0.3 * min(without[name] for name in others)
    assert result.metrics["worst_node_error_ratio"].value == only[layer]
    assert layer in str(result.metrics["worst_node_error_ratio"].method)
    mended = run(case.with_factors(granularity="channel"), files)
    assert mended.metrics["worst_node_error_ratio"].value < 0.1 * only[layer]


@pytest.mark.slow
def test_it_takes_a_model_apart_at_another_size_of_images() -> None:
    result = run(DIGITS.with_factors(images="synthetic-100", image_size=12, image_limit=20, batch=10))
    assert list(result.tables["sensitivity"]["node"]) == ["conv1/Conv", "conv2/Conv", "conv3/Conv", "fc/Gemm", OTHERS]
    assert result.labels["sensitivity"]["samples"] == 20


def test_on_labelled_images_it_tells_what_each_node_costs_in_accuracy() -> None:
    result = run(DIGITS)
    table, whole = result.tables["sensitivity"], result.labels["sensitivity"]
    assert list(table["node"]) == ["conv1/Conv", "conv2/Conv", "conv3/Conv", "fc/Gemm", OTHERS]
    assert list(table["operator"]) == ["Conv", "Conv", "Conv", "Gemm", ""]
    assert whole["samples"] == 450
    assert (
        whole["fp32_top1_percent"]
        == run(DIGITS.with_factors(workload="accuracy", precision="fp32")).metrics["top1_percent"].value
    )
    assert (table["only_relative_error"] < whole["relative_error"]).all()
    assert (np.abs(table["only_top1_percent"] - whole["fp32_top1_percent"]) < 2).all()
    assert result.valid["precision"].value is True
    assert result.valid["timing"].value is None
    assert not codes(result) - {"small_calibration", "int8_saturates"}  # the latter by the CPU


def test_the_errors_of_pairs_follow_the_calibration() -> None:
    """A range by a percentile cuts off what minmax keeps, and rounds what is left in smaller steps."""
    found = {}
    for calibration in ("minmax", "entropy"):
        table = run(DIGITS.with_factors(quantiser="pybench", calibration=calibration)).tables["tensor_errors"]
        is_activation = ~table["is_weight"]
        found[calibration] = {name: table[name][is_activation] for name in ("rounding_ratio", "clipping_ratio")}
    assert (found["entropy"]["rounding_ratio"] <= found["minmax"]["rounding_ratio"]).all()
    assert found["entropy"]["clipping_ratio"].sum() > found["minmax"]["clipping_ratio"].sum()


def test_it_repeats_exactly_and_whatever_the_seed() -> None:
    one, same = run(DIGITS, seed=1), run(DIGITS, seed=2)
    for name, column in one.tables["sensitivity"].items():
        assert np.array_equal(column, same.tables["sensitivity"][name]), name


@pytest.mark.slow
def test_a_language_model_is_rated_on_random_ids(tmp_path: Path) -> None:
    case = DIGITS.with_factors(model="tinylm-tiny", seq_len=8, batch=4, calibration_images=4)
    result = run(case)
    assert result.labels["samples"] == "seeded random"
    assert np.isnan(result.tables["sensitivity"]["only_top1_percent"]).all()
    assert (result.tables["sensitivity"]["only_relative_error"] > 0).all()


def test_a_second_output_is_refused(tmp_path: Path) -> None:
    """One output alone would be compared, and a node that only the other depends on would cost nothing."""
    path = fragile(tmp_path / "two.onnx")
    model = onnx.load(path)
    inner = next(node.output[0] for node in model.graph.node if node.op_type == "Conv")
    model.graph.output.append(onnx.helper.make_tensor_value_info(inner, onnx.TensorProto.FLOAT, None))
    onnx.save(model, path)
    case = FRAGILE.with_factors(model="two.onnx", sources=(("model", "2" * 64),))
    with pytest.raises(InputError, match="has 2 outputs, and sensitivity compares one"):
        run(case, {"model": path})


@pytest.mark.parametrize("limit", [3, 40])
def test_a_limit_is_the_number_of_random_samples(limit: int, tmp_path: Path) -> None:
    files = {"model": fragile(tmp_path / "fragile.onnx")}
    result = run(FRAGILE.with_factors(image_limit=limit, sources=(("model", "a1".ljust(64, "0")),)), files)
    assert result.labels["sensitivity"]["samples"] == limit


def test_a_node_without_a_finite_error_is_never_left_out_of_the_worst() -> None:
    units = [QuantisedUnit(name, "Conv", frozenset({name})) for name in ("a", "b")]
    one, same = np.ones((2, 3)), np.full((2, 3), 1.01)
    broken = np.full((2, 3), np.inf)
    losses = [Loss(compare(one, outputs), None) for outputs in (broken, same)]
    worst = worst_of(units, losses)
    assert worst.value is None
    assert "only a quantised" in str(worst.reasons[0])
    finite = worst_of(units, [losses[1], losses[1]])
    assert finite.value == pytest.approx(0.01)


def test_a_quantised_file_of_another_program_needs_its_weights(tmp_path: Path) -> None:
    """onnxruntime's quantiser, used as others do, leaves codes alone."""
    from pybench.precision import int8

    source = fragile(tmp_path / "source.onnx")
    path = tmp_path / "quantised.onnx"
    int8.quantise(source, path, "minmax", [graphs.images((4, 3, 8, 8))], {})
    case = FRAGILE.with_factors(model="quantised.onnx", sources=(("model", "f" * 64),))
    with pytest.raises(InputError, match="as codes alone"):
        run(case, {"model": path})


def test_only_the_file_of_a_quantiser_that_drops_weights_is_another_artefact() -> None:
    """So a campaign that also measures the accuracy makes one file for both wherever it can."""
    for quantiser, same in (("pybench", True), ("onnxruntime", False)):
        case = DIGITS.with_factors(quantiser=quantiser)
        files = [recipes_of(each)["model"].digest for each in (case, case.with_factors(workload="accuracy"))]
        assert (files[0] == files[1]) is same
