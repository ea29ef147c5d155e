# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from pybench.case import Case
from pybench.errors import InputError
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.products import multiplied
from pybench.precision import int8
from pybench.precision.audit import (
    FUSED,
    MULTIPLYING,
    audit_executed,
    audit_kernels,
    audit_onnx,
    audit_parameters,
    left_higher,
    quantised_nodes,
)
from pybench.precision.conversion import convert
from pybench.precision.execution import Agreement, compare, open_model
from pybench.precision.network import open_network
from pybench.precision.notes import KEPT_KEY
from pybench.runtimes import onnxruntime
from tests.precision import graphs
from tests.support import onnx_models
from tests.support.cpu import HAS_VNNI
from tests.support.making import artefacts_of, write_classifier
from tests.support.onnx_files import write
from tests.support.reasons import codes_of

INT8 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8")
IEEE = {"matmul_fp32_precision": "ieee", "conv_fp32_precision": "ieee"}


@pytest.fixture(scope="module")
def quantised() -> Path:
    return artefacts_of(INT8)["model"]


@pytest.fixture(scope="module")
def exported() -> Path:
    return artefacts_of(INT8.with_factors(precision="fp32"))["model"]


def test_weights_are_symmetric_and_have_a_scale_for_each_channel(quantised: Path) -> None:
    graph = onnx.load(quantised).graph
    arrays = {weight.name: numpy_helper.to_array(weight) for weight in graph.initializer}
    kernels = 0
    for node in graph.node:
        if node.op_type != "DequantizeLinear" or node.input[0] not in arrays:
            continue
        weight, scale, zero = (arrays[name] for name in node.input)
        assert (scale > 0).all()
        assert not zero.any()
        if weight.dtype == np.int8:
            axis = next(attribute.i for attribute in node.attribute if attribute.name == "axis")
            assert scale.shape == (weight.shape[axis],)
            kernels += 1
    assert kernels == 4  # three convolutions and the head


@pytest.mark.parametrize("calibration", ["minmax", "percentile"])
def test_int8_outputs_stay_close_to_fp32s(exported: Path, calibration: str) -> None:
    path = artefacts_of(INT8.with_factors(calibration=calibration))["model"]
    pixels = np.random.default_rng(0).integers(0, 17, (64, 1, 8, 8)).astype(np.float32) / 16
    before = onnxruntime.open_session(exported, precision="fp32", threads=1, device="cpu").run({"images": pixels})[0]
    after = onnxruntime.open_session(path, precision="int8", threads=1, device="cpu").run({"images": pixels})[0]
    agreement = compare(before, after)
    assert 0.98 < agreement.cosine < 1
    assert 0.001 < agreement.relative_error < 0.2
    assert path.stat().st_size < exported.stat().st_size / 2


@pytest.mark.parametrize("method", sorted(set(int8.METHODS) - {"minmax"}))
def test_every_method_but_minmax_cuts_an_outlier(method: str, tmp_path: Path) -> None:
    """One value of 400000 is 100 times the rest."""
    constants = {"w": np.ones((4, 3, 1, 1), np.float32)}
    made = graphs.model(
        [helper.make_node("Conv", ["x", "w"], ["y"], "conv")],
        {"x": ["n", 3, 32, 32]},
        {"y": ["n", 4, 32, 32]},
        constants,
    )
    source = graphs.saved(made, tmp_path / "fp32.onnx")
    feeds = [{"x": graphs.images((64, 3, 32, 32), seed)["x"].clip(-1, 1)} for seed in range(2)]
    feeds[0]["x"][0, 0, 0, 0] = 100
    for name in (method, "minmax"):
        int8.quantise(source, tmp_path / f"{name}.onnx", name, feeds, {})
    cut, whole = (_scale_of(tmp_path / f"{name}.onnx", "x") for name in (method, "minmax"))
    assert whole == pytest.approx(101 / 255, rel=1e-3)
    assert cut < whole / 10


def _scale_of(path: Path, tensor: str) -> float:
    graph = onnx.load(path).graph
    scale = next(node.input[1] for node in graph.node if node.op_type == "QuantizeLinear" and node.input[0] == tensor)
    return float(numpy_helper.to_array(next(weight for weight in graph.initializer if weight.name == scale)))


@pytest.mark.parametrize(("named", "kept"), [("Conv_0", "Conv_0"), ("product", "product/MatMulAddFusion")])
@pytest.mark.parametrize("scheme", ["asymmetric", "symmetric"])
def test_a_node_that_onnxruntime_renames_is_left_alone(scheme: str, named: str, kept: str, tmp_path: Path) -> None:
    source = graphs.saved(graphs.two_products(), tmp_path / "fp32.onnx")
    feeds = [graphs.images((4, 3, 4, 4))]
    path = tmp_path / "q.onnx"
    assert int8.quantise(source, path, "minmax", feeds, {}, scheme=scheme, excluded={named}) == {kept: "keep_fp32"}
    names = {node.name for node in read_graph(path).nodes if node.op in MULTIPLYING}
    assert names - quantised_nodes(read_graph(path)) == {kept}
    with pytest.raises(InputError, match="changed nodes that stay in FP32"):
        int8.require_unquantised(path, names)
    with pytest.raises(InputError, match="gone"):
        int8.require_unquantised(path, ["gone"])


def test_agreement_worked_by_hand() -> None:
    reference = np.array([[3.0, 4.0], [0.0, 0.0]])
    equal = compare(reference, reference)
    assert equal.varied_ratio == pytest.approx(2**-0.5)  # both are 2.5 from their mean, [1.5, 2]
    assert replace(equal, varied_ratio=None) == Agreement(1.0, 0.0, 1.0, None, 0.0, 2, 2)
    swapped = compare(reference, np.array([[4.0, 3.0], [0.0, 0.0]]))
    assert swapped.cosine == pytest.approx(24 / 25)
    assert swapped.relative_error == pytest.approx(2**0.5 / 5)
    assert swapped.signal_error == pytest.approx(2**0.5 / (5 * 2**-0.5))
    assert swapped.top1_agreement_ratio == 0.5


def test_the_audit_finds_integer_kernels_and_fp32(quantised: Path, exported: Path, tmp_path: Path) -> None:
    assert audit_onnx(exported, "fp32").valid
    found = audit_onnx(quantised, "int8")
    assert (found.valid, found.facts["int8_share_ratio"]) == (True, 1.0)
    onnxruntime.write_optimised(quantised, tmp_path / "kernels.onnx", threads=1)
    kernels = audit_kernels(tmp_path / "kernels.onnx")
    assert (kernels.valid, kernels.facts["floating_kernels"]) == (True, 0)


def test_an_fp32_graph_that_claims_int8_is_invalid(exported: Path, tmp_path: Path) -> None:
    found = audit_onnx(exported, "int8")
    assert (found.valid, codes_of(found.reasons)) == (False, ("not_quantised",))
    onnxruntime.write_optimised(exported, tmp_path / "kernels.onnx", threads=1)
    assert codes_of(audit_kernels(tmp_path / "kernels.onnx").reasons) == ("no_integer_kernels",)


def test_an_int8_graph_that_claims_fp32_is_invalid(quantised: Path) -> None:
    assert codes_of(audit_onnx(quantised, "fp32").reasons) == ("quantised_nodes",)


def test_half_precision_that_a_provider_executes_in_fp32_is_caught(exported: Path, tmp_path: Path) -> None:
    """onnxruntime's CPU provider has no FP16 kernels: it puts Casts around them. CUDA's does so with some of BF16."""
    half, executed = tmp_path / "half.onnx", tmp_path / "executed.onnx"
    network = open_network(exported)
    convert(network, "fp16")
    network.save(half, {})
    assert audit_executed(half, half, "fp16").valid
    onnxruntime.write_optimised(half, executed, threads=1)
    found = audit_executed(half, executed, "fp16")
    assert (found.valid, codes_of(found.reasons)) == (False, ("kernels_in_another_type",))
    products = found.facts["multiplying_nodes"]
    assert (found.facts["multiplying_types"], found.facts["executed_types"]) == ({"fp16": products}, {"fp32": products})
    assert found.realised == f"fp16 in the graph, in kernels fp32: {products}"


def test_nodes_that_a_file_keeps_in_fp32_may_be_executed_so(exported: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.onnx"
    network = open_network(exported)
    (first, *_) = (node.name for node in network.nodes if node.op_type == "Conv")
    kept = convert(network, "fp16", first).kept
    network.save(half, {KEPT_KEY: json.dumps(kept)})
    found = audit_executed(half, half, "fp16")
    assert found.valid
    assert found.facts["executed_types"]["fp32"] == 1 == left_higher(found, "fp16")
    assert not audit_executed(half, exported, "fp16").valid
    assert audit_executed(exported, exported, "fp32").valid


@pytest.mark.parametrize(("to", "kind"), [("FLOAT", "fp32"), ("FLOAT16", "fp16"), ("BFLOAT16", "bf16")])
def test_a_product_between_casts_is_in_the_type_that_they_state(tmp_path: Path, to: str, kind: str) -> None:
    """As onnxruntime writes attention whose operators have no kernel: the file states no type of what lies between."""
    pair = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT16, [2, 2]) for name in ("a", "b")]
    nodes = [
        helper.make_node("Cast", ["a"], ["wide_a"], to=getattr(onnx.TensorProto, to)),
        helper.make_node("Cast", ["b"], ["wide_b"], to=getattr(onnx.TensorProto, to)),
        helper.make_node("MatMul", ["wide_a", "wide_b"], ["wide"], name="product"),
        helper.make_node("Cast", ["wide"], ["out"], to=onnx.TensorProto.FLOAT16),
    ]
    outputs = [helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT16, [2, 2])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "pair", pair, outputs)), tmp_path / "pair.onnx")
    assert audit_onnx(tmp_path / "pair.onnx", "fp16").facts["multiplying_types"] == {kind: 1}


def test_a_castlike_writes_the_type_of_its_second_input(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("CastLike", ["x", "w"], ["half"]),
        helper.make_node("MatMul", ["half", "w"], ["product"]),
        helper.make_node("CastLike", ["product", "x"], ["y"]),
    ]
    weights = {"w": np.ones((4, 2), np.float16)}
    onnx.save(onnx_models.model(nodes, [("x", 1, [1, 4])], [("y", 1, [1, 2])], weights), tmp_path / "castlike.onnx")
    assert audit_onnx(tmp_path / "castlike.onnx", "fp16").facts["multiplying_types"] == {"fp16": 1}


@pytest.mark.parametrize(("code", "kind"), [("INT8", "int8"), ("FLOAT8E4M3FN", "fp8"), ("INT16", "fp32")])
def test_without_a_zero_point_an_attribute_states_the_type_of_codes(tmp_path: Path, code: str, kind: str) -> None:
    written = getattr(onnx.TensorProto, code)
    nodes = [
        node
        for name in ("x", "w")
        for node in (
            helper.make_node("QuantizeLinear", [name, "scale"], [f"{name}_codes"], output_dtype=written),
            helper.make_node("DequantizeLinear", [f"{name}_codes", "scale"], [f"{name}_back"]),
        )
    ]
    nodes.append(helper.make_node("MatMul", ["x_back", "w_back"], ["y"]))
    weights = {"w": np.ones((4, 2), np.float32), "scale": np.array(0.1, np.float32)}
    onnx.save(onnx_models.model(nodes, [("x", 1, [1, 4])], [("y", 1, [1, 2])], weights), tmp_path / "codes.onnx")
    assert {found for found, _ in multiplied(read_graph(tmp_path / "codes.onnx")).values()} == {kind}


def test_a_file_that_multiplies_in_fp64_is_not_fp32(tmp_path: Path) -> None:
    """OpenVINO computes it in FP32 without a word, onnxruntime in FP64: two precisions under one name."""
    double = onnx.TensorProto.DOUBLE
    made = onnx_models.model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("x", double, [1, 4])],
        [("y", double, [1, 2])],
        {"w": np.ones((4, 2))},
    )
    onnx.save(made, tmp_path / "double.onnx")
    found = audit_onnx(tmp_path / "double.onnx", "fp32")
    assert codes_of(found.reasons) == ("floating_type_differs",)
    assert found.facts["multiplying_types"] == {"fp64": 1}


@pytest.mark.parametrize("operator", sorted(FUSED))
def test_products_are_found_under_the_names_that_a_runtime_gives_them(
    exported: Path, tmp_path: Path, operator: str
) -> None:
    """The CPU's provider fuses none of these here, so a graph that it executes in FP32 is given their names."""
    half, executed = tmp_path / "half.onnx", tmp_path / "executed.onnx"
    network = open_network(exported)
    convert(network, "fp16")
    network.save(half, {})
    onnxruntime.write_optimised(half, executed, threads=1)
    model = onnx.load(executed)
    for node in model.graph.node:
        if node.op_type in MULTIPLYING:
            node.op_type = operator
    onnx.save(model, tmp_path / "fused.onnx", save_as_external_data=True, location="fused.bin")
    found = audit_executed(half, tmp_path / "fused.onnx", "fp16")
    assert codes_of(found.reasons) == ("kernels_in_another_type",)
    assert found.facts["executed_types"] == {"fp32": found.facts["multiplying_nodes"]}


def test_an_executed_graph_without_products_proves_nothing(exported: Path, tmp_path: Path) -> None:
    model = onnx.load(exported)
    for node in model.graph.node:
        node.op_type = "Unheard" if node.op_type in MULTIPLYING else node.op_type
    onnx.save(model, tmp_path / "unheard.onnx")
    found = audit_executed(exported, tmp_path / "unheard.onnx", "fp32")
    assert (found.valid, codes_of(found.reasons)) == (False, ("no_multiplying_nodes",))


def test_half_precision_weights_that_claim_fp32_are_invalid(exported: Path, tmp_path: Path) -> None:
    model = onnx.load(exported)
    weight = model.graph.initializer[0]
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).astype(np.float16), weight.name))
    onnx.save(model, tmp_path / "half.onnx")
    assert codes_of(audit_onnx(tmp_path / "half.onnx", "fp32").reasons) == ("low_precision_weights",)


def test_parameters_and_switches_are_judged() -> None:
    assert audit_parameters(["float32"], "fp32", IEEE).valid
    assert codes_of(audit_parameters(["float16", "float32"], "fp16", IEEE).reasons) == ("parameters_differ",)
    tf32 = {**IEEE, "conv_fp32_precision": "tf32"}
    assert codes_of(audit_parameters(["float32"], "fp32", tf32).reasons) == ("tf32_switches_differ",)
    assert audit_parameters(["float32"], "amp-bf16", IEEE).realised == "parameters float32, autocast to bf16"


@pytest.mark.parametrize("opset", [7, 9, 11, 12])
def test_an_old_opset_is_raised_to_the_first_with_a_scale_for_each_channel(opset: int, tmp_path: Path) -> None:
    path = write_classifier(tmp_path / "mine.onnx")
    content = onnx.load(path)
    content.opset_import[0].version = opset
    content.ir_version = 4
    onnx.save(content, path)
    pictures = np.random.default_rng(1).normal(size=(2, 1, 8, 8)).astype(np.float32)
    int8.quantise(path, tmp_path / "int8.onnx", "minmax", [{"pictures": pictures}], {})
    assert read_graph(tmp_path / "int8.onnx").nodes
    assert compare(*outputs_of_both(path, tmp_path / "int8.onnx", {"pictures": pictures})).relative_error < 0.1


def outputs_of_both(path: Path, quantised: Path, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Pairs are computed as they stand: without VNNI, onnxruntime's kernels in integers add two products in 16 bits,
    which saturates."""
    return [open_model(each, pairs_apart=True).run(feed)[0] for each in (path, quantised)]


def test_a_single_bias_for_all_outputs_is_quantised(tmp_path: Path) -> None:
    path = write("one-bias-for-all", tmp_path)
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    int8.quantise(path, tmp_path / "int8.onnx", "minmax", [{"x": x}], {})
    assert compare(*outputs_of_both(path, tmp_path / "int8.onnx", {"x": x})).relative_error < 0.1


@pytest.mark.parametrize("reader", ["Relu", "Clip"])
def test_an_output_that_another_node_reads_keeps_its_own_range(reader: str, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node(reader, ["y"] if reader == "Relu" else ["y", "zero"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["z"]),
    ]
    constants = {"w": np.eye(16, dtype=np.float32), "zero": np.float32(0)}
    made = graphs.model(nodes, {"x": ["n", 16]}, {"y": ["n", 16], "z": ["n", 16]}, constants)
    source, path = graphs.saved(made, tmp_path / "fp32.onnx"), tmp_path / "int8.onnx"
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    int8.quantise(source, path, "minmax", [{"x": x}], {})
    assert [output.name for output in read_graph(path).outputs] == ["y", "z"]
    assert compare(*outputs_of_both(source, path, {"x": x})).relative_error < 0.05


def batched_weight(tmp_path: Path, *, behind: bool) -> Path:
    """A product by a weight of two matrices; behind one by a matrix, or alone."""
    nodes = [helper.make_node("MatMul", ["x" if not behind else "p", "weights"], ["y"], "batched")]
    nodes[:0] = [helper.make_node("MatMul", ["x", "w"], ["p"], "plain")] if behind else []
    generator = np.random.default_rng(0)
    weights = {"w": generator.standard_normal((8, 8)), "weights": generator.standard_normal((2, 8, 4))}
    used = {name: value.astype(np.float32) for name, value in weights.items() if behind or name != "w"}
    made = graphs.model(nodes, {"x": ["n", 2, 3, 8]}, {"y": ["n", 2, 3, 4]}, used)
    return graphs.saved(made, tmp_path / "fp32.onnx")


@pytest.mark.parametrize("way", ["asymmetric", "symmetric", "dynamic"])
def test_a_weight_of_several_matrices_has_no_scale_by_channel(way: str, tmp_path: Path) -> None:
    path, feed = tmp_path / "int8.onnx", graphs.images((4, 2, 3, 8))

    def quantise(source: Path, *, by_channel: bool = True) -> dict[str, str]:
        if way == "dynamic":
            return int8.quantise_at_run(source, path, by_channel=by_channel)
        return int8.quantise(source, path, "minmax", [feed], {}, scheme=way, by_channel=by_channel)

    source = batched_weight(tmp_path, behind=True)
    for by_channel in (True, False):
        assert quantise(source, by_channel=by_channel) == ({"batched": "batched_weight"} if by_channel else {})
        if way != "dynamic" or HAS_VNNI:  # its products are in integers, also where pairs are computed as they stand
            assert compare(*outputs_of_both(source, path, feed)).relative_error < 0.05
    with pytest.raises(InputError, match="cannot scale weights of more than two dimensions by channel") as raised:
        quantise(batched_weight(tmp_path, behind=False))
    assert str(raised.value.hint).startswith("use granularity: tensor")


def test_a_file_that_cannot_be_quantised_is_named(tmp_path: Path) -> None:
    path = write_classifier(tmp_path / "mine.onnx")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"mine\.onnx"):
        int8.quantise(path, tmp_path / "out.onnx", "minmax", [], {})


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, inside the quantiser
@pytest.mark.parametrize("method", int8.METHODS)
@pytest.mark.parametrize("sample", [0.0, -1.0], ids=["infinite", "NaN"])
def test_an_activation_that_is_not_finite_has_no_scale(method: str, sample: float, tmp_path: Path) -> None:
    """The logarithm of 0, and of -3. onnxruntime raises an AssertionError for the one, and writes inf for the other."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "first"),
        helper.make_node("Log", ["c"], ["l"], "log"),
        helper.make_node("Conv", ["l", "w"], ["y"], "second"),
    ]
    weights = {"w": np.ones((3, 3, 1, 1), np.float32)}
    made = graphs.model(nodes, {"x": ["n", 3, 4, 4]}, {"y": ["n", 3, 4, 4]}, weights)
    source = graphs.saved(made, tmp_path / "fp32.onnx")
    with pytest.raises(InputError, match=r"not finite|is NaN on the calibration samples"):
        int8.quantise(source, tmp_path / "q.onnx", method, [{"x": np.full((2, 3, 4, 4), sample, np.float32)}], {})
