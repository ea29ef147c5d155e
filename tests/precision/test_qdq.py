# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pybench.errors import InputError
from pybench.precision.audit import audit_onnx
from pybench.precision.execution import compare, compare_files, open_model
from pybench.precision.network import Network, as_network
from pybench.precision.notes import KEPT_KEY
from pybench.precision.placement import Placement, Quantisation, calibrated_tensors
from pybench.precision.qdq import insert_qdq, quantise
from pybench.precision.scales import Codes, magnitudes
from tests.precision import graphs

BATCH = (4, 3, 8, 8)


def quantised(made: onnx.ModelProto, quantisation: Quantisation, shape: tuple[int, ...]) -> tuple[Network, Placement]:
    network = as_network(made)
    placement, _ = quantise(network, graphs.ranges_of(made, graphs.images(shape)), quantisation)
    onnx.checker.check_model(network.model, full_check=True)
    return network, placement


def origin(network: Network, tensor: str) -> str | None:
    """The tensor that a pair in front of a consumer quantises; None: it is not quantised."""
    node = network.producer(tensor)
    if node is None or node.op_type != "DequantizeLinear":
        return None
    before = network.producer(node.input[0])
    assert before is not None
    return before.input[0]


def test_a_residual_block_is_placed_as_tensorrt_fuses_it() -> None:
    network, placement = quantised(graphs.residual_block(), Quantisation("int8"), BATCH)
    assert set(placement.quantised) == {"stem", "d", "a1", "a2", "b1", "b2", "head"}
    assert set(placement.readers) == {"x", "s", "a", "d_out", "r1", "b", "r2", "flat"}
    nodes = {node.name: node for node in network.nodes}
    # One pair at the block's input, shared by both convolutions; one on the down-sampling output; the main branch bare.
    assert nodes["a1"].input[0] == nodes["d"].input[0]
    assert [origin(network, name) for name in nodes["node_sum1"].input] == [None, "d_out"]
    assert nodes["b1"].input[0] == nodes["node_sum2"].input[1]
    assert [origin(network, name) for name in nodes["node_sum2"].input] == [None, "r1"]
    assert origin(network, nodes["node_mean"].input[0]) == "r2"
    for node in network.nodes:  # every pair is one of its own: no tensor is quantised twice
        readers = [one for one in network.consumers(node.output[0]) if one.op_type == "QuantizeLinear"]
        assert len(readers) <= 1
    assert sum(node.op_type == "QuantizeLinear" for node in network.nodes) == 8 + 7


def test_a_naive_placement_has_pairs_in_front_of_convolutions_and_products_alone() -> None:
    """The shortcut, the summand and the mean of the block stay in FP32; the same weights and factors are quantised."""
    network, placement = quantised(graphs.residual_block(), Quantisation("int8", is_naive=True), BATCH)
    assert set(placement.quantised) == {"stem", "d", "a1", "a2", "b1", "b2", "head"}
    assert set(placement.readers) == {"x", "s", "a", "r1", "b", "flat"}
    nodes = {node.name: node for node in network.nodes}
    for name in placement.quantised:
        assert origin(network, nodes[name].input[0]) is not None
        assert origin(network, nodes[name].input[1]) == f"{name}.weight"
    for name in ("node_sum1", "node_sum2", "node_mean"):
        assert [origin(network, tensor) for tensor in nodes[name].input] == [None, None]
    assert sum(node.op_type == "QuantizeLinear" for node in network.nodes) == 6 + 7


def test_fp8_quantises_both_summands_and_gives_a_convolution_one_scale() -> None:
    network, placement = quantised(graphs.residual_block(), Quantisation("fp8"), BATCH)
    assert set(placement.readers) == {"s", "a", "d_out", "a2_out", "r1", "b", "b2_out", "r2", "flat"}
    nodes = {node.name: node for node in network.nodes}
    assert [origin(network, name) for name in nodes["node_sum1"].input] == ["a2_out", "d_out"]
    assert [origin(network, name) for name in nodes["node_sum2"].input] == ["b2_out", "r1"]
    for name in placement.quantised:
        weight = network.producer(nodes[name].input[1])
        assert weight is not None
        outputs = network.constant(f"{name}.weight").shape[0]
        assert network.constant(weight.input[1]).size == (1 if nodes[name].op_type == "Conv" else outputs)


@pytest.mark.parametrize(
    ("op", "axes", "opset", "pooled"),
    [
        ("ReduceMean", [2, 3], 20, True), ("ReduceMean", [-1, -2], 20, True), ("ReduceMean", [2, 3], 17, True),
        ("GlobalAveragePool", None, 20, True), ("ReduceMean", [1], 20, False), ("ReduceMean", [2], 20, False),
        ("ReduceMean", [1, 2, 3], 17, False), ("ReduceMean", None, 20, False),
    ],
)  # fmt: skip
def test_a_mean_is_quantised_where_it_is_over_all_positions(
    op: str, axes: list[int] | None, opset: int, pooled: bool
) -> None:
    """Opset 17 has the axes as an attribute; without any, the mean is over samples and channels, too."""
    constants = {"w": np.ones((4, 3, 1, 1), np.float32)}
    inputs, attributes = ["r"], {}
    if axes is not None and opset < 18:
        attributes["axes"] = axes
    elif axes is not None:
        constants["axes"] = np.array(axes)
        inputs.append("axes")
    nodes = [helper.make_node("Conv", ["x", "w"], ["r"], "conv"), helper.make_node(op, inputs, ["y"], **attributes)]
    made = graphs.model(nodes, {"x": [2, 3, 8, 8]}, {"y": ["a", "b", "c", "d"]}, constants, opset)
    assert calibrated_tensors(as_network(made)) == (["x", "r"] if pooled else ["x"])
    placement = quantised(made, Quantisation("int8"), (2, 3, 8, 8))[1]
    assert set(placement.readers) == ({"x", "r"} if pooled else {"x"})


def test_weights_have_a_scale_a_channel_and_activations_one() -> None:
    network, placement = quantised(graphs.residual_block(), Quantisation("int8"), BATCH)
    nodes = {node.name: node for node in network.nodes}
    for name in placement.quantised:
        weight = network.producer(nodes[name].input[1])
        assert weight is not None
        scale = network.constant(weight.input[1])
        value = network.constant(f"{name}.weight")
        assert np.allclose(scale, np.abs(value).max(axis=tuple(range(1, value.ndim))) / 127)
        assert [entry.i for entry in weight.attribute if entry.name == "axis"] == [0]
    pairs = [node for node in network.nodes if node.op_type == "DequantizeLinear"]
    assert all(not network.constant(node.input[2]).any() for node in pairs)
    assert all(network.constant(node.input[2]).dtype == np.int8 for node in pairs)
    assert all(network.constant(node.input[1]).shape == network.constant(node.input[2]).shape for node in pairs)


@pytest.mark.parametrize("floating", ["fp32", "fp16"])
def test_the_scale_of_a_whole_tensor_is_a_scalar_that_both_halves_of_a_pair_share(floating: str) -> None:
    """ONNX reads one with a dimension as scales along an axis, of which there is one."""
    network, placement = quantised(graphs.residual_block(), Quantisation("int8", floating), BATCH)
    halves = [node for node in network.nodes if node.op_type in ("QuantizeLinear", "DequantizeLinear")]
    whole = [node for node in halves if not node.attribute]
    assert len(whole) == 2 * len(placement.readers)
    assert all(network.constant(name).shape == () for node in whole for name in node.input[1:])
    assert len({node.input[1] for node in halves}) == len(halves) / 2


@pytest.mark.parametrize("kind", ["int8", "fp8"])
@pytest.mark.parametrize("floating", ["fp32", "fp16", "bf16"])
def test_outputs_stay_close_and_the_file_is_what_it_claims(kind: str, floating: str, tmp_path: Path) -> None:
    made = graphs.residual_block()
    network, placement = quantised(made, Quantisation(kind, floating), BATCH)
    precision = kind if floating == "fp32" else f"{kind}+{floating}"
    network.save(tmp_path / "q.onnx", {KEPT_KEY: json.dumps(placement.kept)})
    before = graphs.saved(made, tmp_path / "fp32.onnx")
    labels = compare_files(before, tmp_path / "q.onnx", precision, [graphs.images(BATCH)])
    assert 0.002 < labels["against_fp32_relative_error"] < (0.05 if kind == "int8" else 0.15)
    found = audit_onnx(tmp_path / "q.onnx", precision)
    assert found.valid, found.reasons
    assert found.facts["quantised_nodes"] == (7 if kind == "int8" else 6)
    assert placement.kept == ({} if kind == "int8" else {"stem": "no_fp8_kernel_channels"})
    other = {"int8": "fp8", "fp8": "int8"}[kind]
    assert not audit_onnx(tmp_path / "q.onnx", other).valid
    assert not audit_onnx(tmp_path / "q.onnx", f"{kind}+{'fp16' if floating != 'fp16' else 'bf16'}").valid


def test_attention_is_quantised_and_norm_softmax_and_residual_stream_are_not() -> None:
    network, placement = quantised(graphs.attention(), Quantisation("int8", "fp16"), (2, 4, 16))
    assert len(placement.quantised) == 5
    assert set(placement.readers) == {"h", "q", "kt", "p", "v"}
    assert all(readers is not None for readers in placement.readers.values())
    nodes = {node.name: node for node in network.nodes}
    projections = [nodes[f"project_{one}"].input[0] for one in "qkv"]
    assert len(set(projections)) == 1
    for name in ("norm", "softmax", "residual", "add_mask"):
        assert all(origin(network, one) is None for one in nodes[name].input)
    axes = [entry.i for node in network.nodes for entry in node.attribute if entry.name == "axis" and "w" in node.name]
    assert set(axes) == {1}


def test_a_kept_node_is_neither_quantised_nor_lowered() -> None:
    network, placement = quantised(graphs.residual_block(), Quantisation("int8", "fp16", keep_fp32="stem|b2"), BATCH)
    assert placement.kept == {"stem": "keep_fp32", "b2": "keep_fp32"}
    nodes = {node.name: node for node in network.nodes}
    for name in placement.kept:
        assert {network.type_of(one) for one in nodes[name].input} == {TensorProto.FLOAT}
    # b2 does not fuse any more: r1 is still shared, for b1 reads it.
    assert origin(network, nodes["node_sum2"].input[1]) == "r1"


def convolution(op: str, weight: tuple[int, ...], group: int = 1) -> onnx.ModelProto:
    inputs = weight[1] * group if op == "Conv" else weight[0]
    outputs = weight[0] if op == "Conv" else weight[1] * group
    node = helper.make_node(op, ["x", "w"], ["y"], "only", group=group)
    value = np.random.default_rng(2).standard_normal(weight).astype(np.float32)
    side = 4 - weight[-1] + 1 if op == "Conv" else 4 + weight[-1] - 1
    return graphs.model([node], {"x": [1, inputs, 4, 4]}, {"y": [1, outputs, side, side]}, {"w": value})


@pytest.mark.parametrize(
    ("op", "weight", "group", "reason"),
    [
        ("Conv", (32, 1, 3, 3), 32, "no_fp8_kernel_groups"),
        ("Conv", (32, 3, 3, 3), 1, "no_fp8_kernel_channels"),
        ("Conv", (16, 32, 1, 1), 1, "no_fp8_kernel_channels"),
        ("ConvTranspose", (32, 32, 2, 2), 1, "no_fp8_kernel_transposed"),
        ("Conv", (32, 32, 3, 3), 1, None),
    ],
)
def test_what_has_no_fp8_kernel_is_left_out_of_fp8_only(
    op: str, weight: tuple[int, ...], group: int, reason: str | None
) -> None:
    made = convolution(op, weight, group)
    shape = tuple(size.dim_value for size in made.graph.input[0].type.tensor_type.shape.dim)
    assert quantised(made, Quantisation("fp8"), shape)[1].kept == ({} if reason is None else {"only": reason})
    network, placement = quantised(made, Quantisation("int8"), shape)
    assert placement.kept == {}
    feed = graphs.images(shape)
    before, after = (open_model(one.SerializeToString()).run(feed)[0] for one in (made, network.model))
    assert compare(before, after).relative_error < 0.03


def test_the_scale_of_a_transposed_convolution_lies_along_its_outputs() -> None:
    made = convolution("ConvTranspose", (8, 4, 2, 2))
    network, _ = quantised(made, Quantisation("int8"), (1, 8, 4, 4))
    weight = network.producer(network.nodes[-1].input[1])
    assert weight is not None
    assert [entry.i for entry in weight.attribute] == [1]
    assert network.constant(weight.input[1]).shape == (4,)


def test_a_tied_weight_is_quantised_behind_its_transposition() -> None:
    nodes = [
        helper.make_node("Transpose", ["w"], ["wt"], "turn", perm=[1, 0]),
        helper.make_node("MatMul", ["x", "wt"], ["y"], "head"),
    ]
    made = graphs.model(nodes, {"x": ["n", 8]}, {"y": ["n", 5]}, {"w": np.ones((5, 8), np.float32)})
    network, placement = quantised(made, Quantisation("int8"), (3, 8))
    assert placement.quantised == ["head"]
    weight = network.producer(network.nodes[-1].input[1])
    assert weight is not None
    assert (weight.op_type, network.constant(weight.input[1]).shape) == ("DequantizeLinear", (5,))


@pytest.mark.parametrize(("window", "size"), [(2, 8), (2, 9), (3, 9), (3, 11)])
def test_fp8_pools_by_slices_and_its_numbers_are_those_of_the_pooling(
    window: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, shape = graphs.pooled(window, size), (2, graphs.CHANNELS, size, size)
    network, placement = quantised(made, Quantisation("fp8", "fp16"), shape)
    kinds = [node.op_type for node in network.nodes]
    assert (kinds.count("MaxPool"), kinds.count("Slice"), kinds.count("Max")) == (0, window**2, 1)
    assert placement.readers["a"] is None
    monkeypatch.setattr(Quantisation, "slices_pool", lambda *_: False)
    plain, _ = quantised(made, Quantisation("fp8", "fp16"), shape)
    assert [node.op_type for node in plain.nodes].count("MaxPool") == 1
    feed = graphs.images(shape)
    ours, theirs = (open_model(each.model.SerializeToString(), passes=False).run(feed)[0] for each in (network, plain))
    assert np.array_equal(ours, theirs)
    assert np.abs(ours).max() > 0.1


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [("int8", {}), ("fp8", {"strides": [1, 1]}), ("fp8", {"pads": [1] * 4}), ("fp8", {"ceil_mode": 1})],
)
def test_pooling_that_is_not_side_by_side_and_all_of_int8_stays(kind: str, attributes: dict[str, Any]) -> None:
    network, _ = quantised(graphs.pooled(2, 9, **attributes), Quantisation(kind), (2, graphs.CHANNELS, 9, 9))
    kinds = [node.op_type for node in network.nodes]
    assert (kinds.count("MaxPool"), kinds.count("Slice")) == (1, 0)


@pytest.mark.parametrize("kind", ["int8", "fp8"])
def test_pooling_over_three_dimensions_is_sliced_in_both(kind: str) -> None:
    network, _ = quantised(graphs.pooled(2, 4, dimensions=3), Quantisation(kind), (2, graphs.CHANNELS, 4, 4, 4))
    kinds = [node.op_type for node in network.nodes]
    assert (kinds.count("MaxPool"), kinds.count("Slice")) == (0, 8)


@pytest.mark.parametrize(("dimensions", "kept"), [(2, set()), (3, {"down2", "head"})])
def test_int8_over_three_dimensions_needs_a_pair_behind_a_convolution(
    dimensions: int, kept: set[str], tmp_path: Path
) -> None:
    made, shape = graphs.skipped(dimensions), (2, graphs.CHANNELS, *[4] * dimensions)
    network, placement = quantised(made, Quantisation("int8", "fp16"), shape)
    assert placement.kept == dict.fromkeys(kept, "no_int8_kernel_volume")
    nodes = {node.name: node for node in network.nodes}
    # What is kept still reads 8 bits: else the convolution before it would write FP16, and be kept, too.
    assert origin(network, nodes["down2"].input[0]) == "d"
    assert (origin(network, nodes["down2"].input[1]) is None) == ("down2" in kept)
    network.save(tmp_path / "q.onnx", {KEPT_KEY: json.dumps(placement.kept)})
    assert audit_onnx(tmp_path / "q.onnx", "int8+fp16").valid


def test_a_tensor_that_is_also_read_unpooled_is_not_rounded_before_its_pooling() -> None:
    read_twice = graphs.pooled(2, 8, outputs=("y", "a"))
    network, placement = quantised(read_twice, Quantisation("fp8"), (2, graphs.CHANNELS, 8, 8))
    assert "Slice" in [node.op_type for node in network.nodes]
    assert "a" not in placement.readers


CLIPPED = (2, graphs.CHANNELS, 4, 4)


@pytest.mark.parametrize(
    ("made", "keep_fp32", "kept"),
    [
        (graphs.clipped_depthwise(), None, {"depthwise": "no_fp8_kernel_groups"}),
        (graphs.clipped_summand(), "first", {"first": "keep_fp32"}),
    ],
)
def test_fp8_clips_in_fp32_between_casts_what_no_fp8_convolution_computes(
    made: onnx.ModelProto, keep_fp32: str | None, kept: dict[str, str]
) -> None:
    network, placement = quantised(made, Quantisation("fp8", "fp16", keep_fp32), CLIPPED)
    assert placement.kept == kept
    assert placement.in_fp32 == {"clip": "fp8_kernel_loses_bound"}
    clip = next(node for node in network.nodes if node.name == "clip")
    assert {network.type_of(name) for name in [*clip.input, *clip.output]} == {onnx.TensorProto.FLOAT}
    (cast,) = network.consumers(clip.output[0])
    assert (cast.op_type, network.type_of(cast.output[0])) == ("Cast", onnx.TensorProto.FLOAT16)
    (pair,) = network.consumers(cast.output[0])
    assert pair.op_type == "QuantizeLinear"


@pytest.mark.parametrize("kind", ["int8", "fp8"])
def test_convolutions_that_clip_what_they_write_are_quantised_and_so_is_their_mean(kind: str) -> None:
    network, placement = quantised(graphs.clipped(3), Quantisation(kind, "fp16"), CLIPPED)
    assert (len(placement.quantised), placement.kept, placement.in_fp32) == (4, {}, {})
    assert set(placement.readers) == {"x", "c1", "c2", "c3", "flat"}
    clips = [node for node in network.nodes if node.op_type == "Clip"]
    assert {network.type_of(node.output[0]) for node in clips} == {onnx.TensorProto.FLOAT16}


def test_int8_clips_in_the_type_around() -> None:
    _, placement = quantised(graphs.clipped_summand(), Quantisation("int8", "fp16", "first"), CLIPPED)
    assert placement.in_fp32 == {}


def test_a_missing_range_is_named() -> None:
    with pytest.raises(InputError, match="no range for"):
        insert_qdq(as_network(graphs.residual_block()), {"x": 1.0}, Quantisation("int8"))


def test_scales_worked_by_hand() -> None:
    assert Codes("int8").scales(np.array([127, 0.0], np.float32)).tolist() == [1, 1]
    assert float(Codes("fp8").scales(np.array(896, np.float32))) == 2
    # 1 / 127 = 0.0078740157: FP16's neighbours are 0.00787354 and 0.00788116, and the upper one is taken.
    assert float(Codes("int8", "fp16").scales(np.array(1, np.float32))) == np.float16(0.00788116)
    assert float(Codes("int8", "bf16").scales(np.array(1, np.float32))) == ml_dtypes.bfloat16(0.0079345703125)


@pytest.mark.parametrize(
    ("largest", "scale"), [(448.0, 1.0), (448.1, 2.0), (1.0, 2.0**-8), (0.0, 1.0), (1e-9, 2.0**-24)]
)
def test_scales_of_fp8_are_powers_of_two(largest: float, scale: float) -> None:
    assert float(Codes("fp8", "fp16").scales(np.array(largest, np.float32))) == scale


def test_two_scales_of_fp8_have_a_product_that_fp16_holds_whatever_it_cuts_off() -> None:
    codes = Codes("fp8", "fp16")
    largest = np.float32(10.0) ** np.linspace(-2, 2, 50, dtype=np.float32)
    for activation in codes.scales(largest):
        weights = codes.scales(largest, float(activation))
        products = activation * weights
        assert (products.astype(np.float16) == products).all()
        assert (products >= 2.0**-24).all()
        assert (weights * 448 >= largest).all()


def test_a_scale_is_not_raised_beyond_what_leaves_codes_to_tell_weights_apart() -> None:
    codes = Codes("fp8", "fp16")
    own, raised = (float(codes.scales(np.array(1e-3, np.float32), other)) for other in (None, 2.0**-22))
    assert raised == own * 2.0**10  # 2^-2 would have been asked
    assert 1e-3 / raised >= 2.0**-9  # E4M3's smallest number


@pytest.mark.parametrize("floating", ["fp32", "fp16", "bf16"])
def test_the_largest_magnitude_never_saturates(floating: str) -> None:
    values = np.float32(10.0) ** np.linspace(-12, 4, 200, dtype=np.float32)
    for kind, largest in (("int8", 127), ("fp8", 448)):
        scales = Codes(kind, floating).scales(values)
        assert (scales > 0).all()
        assert (scales * np.float32(largest) >= values * (1 - 1e-6)).all()


def test_a_scale_of_int8_is_raised_until_fp16_cuts_nothing_off_its_product() -> None:
    codes = Codes("int8", "fp16")
    largest = np.float32(10.0) ** np.linspace(-2, 1, 60, dtype=np.float32)  # scales that are no subnormal numbers
    plain = codes.scales(largest)
    for activation in codes.scales(np.float32(10.0) ** np.linspace(-1, 2, 9, dtype=np.float32)):
        raised = codes.scales(largest, float(activation))
        products, before = (scale.astype(np.float64) * activation for scale in (raised, plain))
        rounded = products.astype(np.float16)
        below = np.where(rounded > products, np.nextafter(rounded, np.float16(0)), rounded).astype(np.float64)
        assert (raised >= plain).all()
        assert (below[before < 2.0**-14] >= products[before < 2.0**-14] * (1 - 2.0**-9)).all()
        assert (raised[before >= 2.0**-14] == plain[before >= 2.0**-14]).all()
        assert (products <= before * (1 + 2.0**-9) + 2.0**-24).all()
    assert (Codes("int8", "bf16").scales(largest, 1e-3) == Codes("int8", "bf16").scales(largest)).all()
    assert (codes.scales(largest, 1e-9) <= plain * 8 * (1 + 2.0**-10)).all()  # not without end


def test_scales_of_weights_are_raised_in_products_with_fp16_around_and_nowhere_else() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], "conv"), helper.make_node("Flatten", ["c"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"], "product"),
    ]  # fmt: skip
    weights = {name: np.full(shape, 1e-3, np.float32) for name, shape in (("k", (3, 3, 1, 1)), ("w", (12, 4)))}
    made = graphs.model(nodes, {"x": [1, 3, 2, 2]}, {"y": [1, 4]}, weights)
    found = {}
    for floating in ("fp32", "fp16"):
        network = as_network(made)
        insert_qdq(network, {"x": 0.1, "f": 0.1}, Quantisation("int8", floating))
        found[floating] = {name: network.constant(f"{name}_scale").max() for name in ("k", "w")}
    assert found["fp32"]["k"] == pytest.approx(1e-3 / 127)
    assert found["fp16"]["k"] == pytest.approx(1e-3 / 127, rel=0.01)  # rounded upwards
    assert found["fp32"]["w"] == pytest.approx(1e-3 / 127)
    assert found["fp16"]["w"] == pytest.approx(8e-3 / 127, rel=0.01)  # 6.2e-9 is below FP16's numbers


@pytest.mark.parametrize(("kind", "largest"), [("int8", 65504), ("fp8", 2.0**15)])
def test_a_scale_beyond_the_floating_type_is_its_largest(kind: str, largest: float) -> None:
    assert float(Codes(kind, "fp16").scales(np.array(3e38, np.float32))) == largest
    assert np.isfinite(Codes(kind, "bf16").scales(np.array(3.4e38, np.float32)))


def test_magnitudes_lie_along_their_axis() -> None:
    value = np.array([[1, -4], [2, 3]], np.float32)
    assert magnitudes(value, None) == 4
    assert magnitudes(value, 0).tolist() == [4, 3]
    assert magnitudes(value, 1).tolist() == [2, 4]


def test_a_weight_can_have_one_scale_for_all_its_channels() -> None:
    counts = {}
    for whole in (False, True):
        network, _ = quantised(graphs.residual_block(), Quantisation("int8", scales_weights_whole=whole), BATCH)
        halves = [
            node for node in network.nodes if node.op_type == "QuantizeLinear" and network.is_constant(node.input[0])
        ]
        counts[whole] = {network.constant(node.input[1]).size for node in halves}
    assert counts[True] == {1}
    assert counts[False] != {1}


def test_a_full_range_divides_by_half_a_code_more() -> None:
    scales = {}
    for full in (False, True):
        network, _ = quantised(graphs.residual_block(), Quantisation("int8", has_full_range=full), BATCH)
        first = next(node for node in network.nodes if node.op_type == "QuantizeLinear")
        scales[full] = float(network.constant(first.input[1]))
    assert scales[False] / scales[True] == pytest.approx(127.5 / 127)
