# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pybench.kernels.engine_layers import element_type, kernel_types, launched_layer, read_layers
from pybench.precision.audit import Audit
from pybench.precision.engine_audit import audit_engine, audit_launched
from tests.support.reasons import codes_of

DATA = Path(__file__).parent / "data" / "inspector"

# ResNet-50's 53 convolutions and its classifier, in every recorded engine.
PRODUCTS = 54
STEM, CLASSIFIER = "/stem/Conv", "/fc/Gemm"


def recorded(name: str) -> str:
    return gzip.decompress((DATA / f"resnet50-b32-{name}.json.gz").read_bytes()).decode()


def audited(name: str, precision: str, **given: Any) -> Audit:
    return audit_engine(recorded(name), precision, **given)


def engine(*layers: dict[str, Any]) -> str:
    """An inspector's text with layers written by hand, in the form of 11.x."""
    return json.dumps({"Layers": list(layers), "I/O Tensors": [{"Name": "x", "IOMode": "Input", "DataType": "Float"}]})


def layer(name: str, kind: str, tactic: str, reads: str, *nodes: str, writes: str | None = None) -> dict[str, Any]:
    tensors = [{"Name": name, "Dimensions": [8, 64], "Datatype": kind, "Format": "kLINEAR"} for kind in (reads, writes)]
    metadata = "\x1e".join(f"[ONNX Layer: {node}]" for node in nodes)
    return {
        "Name": name,
        "LayerType": kind,
        "Inputs": tensors[:1],
        "Outputs": tensors[1:] if writes else tensors[:1],
        "TacticName": tactic,
        "Metadata": metadata,
    }


GEMM = "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64"


@pytest.mark.parametrize(
    ("name", "precision", "kernel_type"),
    [
        ("fp32", "fp32", "fp32"),
        ("tf32", "tf32", "tf32"),
        ("fp16", "fp16", "fp16"),
        ("bf16", "bf16", "bf16"),
        ("int8", "int8", "int8"),
        ("int8+fp16-residual", "int8+fp16", "int8"),
    ],
)
def test_an_engine_that_is_what_it_claims_is_valid(name: str, precision: str, kernel_type: str) -> None:
    found = audited(name, precision)
    assert (found.valid, codes_of(found.reasons)) == (True, ())
    assert found.facts["multiplying_layers"] == {kernel_type: PRODUCTS}
    assert found.realised.startswith(f"{kernel_type}: 54 of 54 convolutions and matrix products")


def test_a_tf32_engine_that_claims_fp32_is_caught_though_all_its_tensors_are_float() -> None:
    found = audited("tf32", "fp32")
    assert codes_of(found.reasons) == ("not_in_claimed_type", "tf32_kernels")
    assert len(found.facts["refused"]) == PRODUCTS


def test_an_fp32_engine_that_claims_tf32_has_no_tf32_kernels() -> None:
    assert codes_of(audited("fp32", "tf32").reasons) == ("no_tf32_kernels",)


@pytest.mark.parametrize(("name", "precision"), [("fp16", "bf16"), ("bf16", "fp16"), ("fp16", "int8+fp16")])
def test_an_engine_in_another_type_is_invalid(name: str, precision: str) -> None:
    assert codes_of(audited(name, precision).reasons) == ("not_in_claimed_type",)


def test_a_refused_convolution_is_named_with_its_node_and_its_kernel() -> None:
    found = audited("fp8-residual", "fp8")
    assert codes_of(found.reasons) == ("not_in_claimed_type", "tf32_kernels")
    assert found.facts["multiplying_layers"] == {"fp8": 53, "tf32": 1}
    (refused,) = found.facts["refused"]
    assert (refused["nodes"][0], refused["type"], refused["layer"]) == (STEM, "tf32", "/stem/Conv_myl0_1")
    assert "f32f32_tf32f32_f32" in refused["kernel"]
    assert found.realised.startswith("fp8: 53 of 54 convolutions and matrix products, tf32: 1 of 54;")


def test_a_node_on_the_keep_list_may_compute_in_another_type_but_not_in_tf32() -> None:
    kept = audited("fp8-residual", "fp8", keep=[STEM])
    assert codes_of(kept.reasons) == ("tf32_kernels",)
    assert [each["nodes"][0] for each in kept.facts["kept"]] == [STEM]
    assert kept.facts["refused"] == []
    mixed = engine(layer("a", "gemm", GEMM, "Half", "a"), layer("b", "gemm", GEMM.replace("f16", "f32"), "Float", "b"))
    assert codes_of(audit_engine(mixed, "fp16").reasons) == ("not_in_claimed_type",)
    assert audit_engine(mixed, "fp16", keep=["b"]).valid
    assert audit_engine(mixed, "fp16", keep=["b"], node_flops={"a": 1, "b": 1}).valid


@pytest.mark.parametrize("name", ["fp32", "tf32", "fp16", "bf16", "int8", "int8+fp16-residual", "fp8-residual"])
def test_the_form_of_11_is_read_as_that_of_10(name: str) -> None:
    document = json.loads(recorded(name))
    document["I/O Tensors"] = [{"Name": each} for each in document.pop("Bindings")]
    for each in document["Layers"]:
        for tensor in each["Inputs"] + each["Outputs"]:
            tensor["Datatype"] = tensor.pop("Format/Datatype")
            tensor["Format"] = "Row major linear (kLINEAR)"
    assert read_layers(json.dumps(document)) == read_layers(recorded(name))


def test_what_only_moves_is_counted_and_constants_are_no_kernels() -> None:
    facts = audited("int8+fp16-residual", "int8+fp16").facts
    # 106 kernels: 54 that multiply, 47 `__myl_Mov` and 4 reformats, 1 that adds, averages and quantises.
    assert (facts["layers"], facts["kernels"], facts["moving_kernels"]) == (153, 106, 51)
    naive = audited("int8", "int8").facts
    # 41 `__myl_Mov`, 24 reformats (16 of them from FP32 to INT8), 1 that only quantises.
    assert (naive["layers"], naive["kernels"], naive["moving_kernels"]) == (185, 137, 66)
    kinds = {each.tactic[:29]: each.kind for each in read_layers(recorded("fp8-residual"))}
    assert kinds["__myl_CasMulAddRelMulMinMaxCa"] == "other"  # it adds the residual and rectifies
    assert kinds["__myl_MulMinMaxCas_0x35bf8c13"] == "moving"  # it quantises, and nothing else


def test_accumulators_are_told_apart() -> None:
    assert audited("fp16", "fp16").facts["accumulators"] == {"fp16": 53, "fp32": 1}
    assert audited("bf16", "bf16").facts["accumulators"] == {"fp32": 54}


def test_shares_of_time_worked_by_hand() -> None:
    text = engine(
        layer("a", "gemm", GEMM, "Half", "a"),
        layer("b", "gemm", GEMM.replace("f16", "f32"), "Float", "b"),
        layer("move", "kgen", "__myl_Mov_0x1", "Half"),
        layer("norm", "kgen", "__myl_MeaSubMulMea_0x2", "Half"),
    )
    times = {"a": 4.0, "b": 2.0, "move": 1.0, "norm": 2.0, "a copy that the inspector does not list": 1.0}
    found = audit_engine(text, "fp16", layer_times_ms=times)
    assert found.facts["time_share_ratio"] == pytest.approx({"fp16": 0.4, "other": 0.3, "fp32": 0.2, "moving": 0.1})
    assert found.facts["layer_share_ratio"] == {"fp16": 0.5, "fp32": 0.5}
    assert found.realised == (
        "fp16: 1 of 2 convolutions and matrix products (40 % of time), fp32: 1 of 2 (20 % of time); "
        "1 of 4 kernels only move data (10 % of time)"
    )


def test_shares_of_flops_worked_by_hand() -> None:
    text = engine(
        layer("joined", "gemm", GEMM, "Half", "query", "key", "value", "bias"),
        layer("cut in two, 0", "gemm", GEMM, "Half", "head"),
        layer("cut in two, 1", "gemm", GEMM.replace("f16", "f32"), "Float", "head"),
    )
    flops = {"query": 100, "key": 100, "value": 100, "head": 200}
    found = audit_engine(text, "fp16", node_flops=flops)
    assert found.facts["flop_share_ratio"] == pytest.approx({"fp16": 0.8, "fp32": 0.2})
    assert found.facts["refused"][0]["nodes"] == ["head"]
    found = audit_engine(text, "fp16", node_flops=flops, counts_all=False)  # the graph has an LSTM, too
    assert found.facts["flop_share_ratio"] is None
    assert "FLOPs" not in found.realised


def test_each_product_of_the_graph_has_to_be_found() -> None:
    text = engine(layer("a", "gemm", GEMM, "Half", "a"))
    found = audit_engine(text, "fp16", node_flops={"a": 3, "lost": 1})
    assert codes_of(found.reasons) == ("nodes_without_layer",)
    assert found.facts["nodes_without_layer"] == ["lost"]
    assert found.facts["flop_share_ratio"] == {"fp16": 0.75, "not_found": 0.25}


def test_a_product_in_generated_code_is_found_by_its_node() -> None:
    """`__myl_MulSum`: how TensorRT multiplies a matrix with one row. Known to multiply only from the graph."""
    row = layer("row", "kgen", "__myl_MulSum_0xfa6c1858", "Float", "head")
    text = engine(layer("a", "gemm", GEMM, "Half", "a"), row)
    assert audit_engine(text, "fp16").valid
    found = audit_engine(text, "fp16", node_flops={"a": 3, "head": 1})
    assert (codes_of(found.reasons), found.facts["refused"][0]["type"]) == (("not_in_claimed_type",), "fp32")


def test_a_kernel_before_a_product_is_not_taken_for_it() -> None:
    """The recorded `__myl_MovCon` before ResNet-50's first convolution carries that convolution's name."""
    first = next(each for each in read_layers(recorded("bf16")) if each.tactic.startswith("__myl_MovCon"))
    assert (first.kind, first.nodes[0]) == ("moving", "/conv1/Conv")
    assert audited("bf16", "bf16", node_flops={"/conv1/Conv": 1, CLASSIFIER: 1}).valid


def test_fused_attention_multiplies_in_the_type_of_what_it_reads() -> None:
    attention = layer(
        "mha", "kgen", "_gemm_mha_v2_0x957a2fe283f77dcf35c142c1390a3e6a", "Half", "/qk/MatMul", "/Softmax"
    )
    assert audit_engine(engine(attention), "fp16").valid


def test_a_kernel_on_fp32_that_does_not_name_its_type_needs_the_builds_flag() -> None:
    generated = layer("fc", "kgen", "__myl_FcMulAdd_0x1", "Float", "fc")
    assert codes_of(audit_engine(engine(generated), "fp32").reasons) == ("type_not_told",)
    assert codes_of(audit_engine(engine(generated), "fp32", tf32=True).reasons) == ("type_not_told",)
    assert audit_engine(engine(generated), "fp32", tf32=False).valid
    assert codes_of(audit_engine(engine(generated), "fp16", tf32=True).reasons) == ("not_in_claimed_type",)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"Layers": ["conv1 + relu", "fc"], "Bindings": ["x", "y"]}'])
def test_an_engine_built_without_detail_is_invalid(text: str) -> None:
    assert codes_of(audit_engine(text, "fp16").reasons) == ("no_layer_information",)


def test_an_engine_without_products_proves_nothing() -> None:
    assert codes_of(audit_engine(engine(layer("p", "CaskPooling", "", "Half")), "fp16").reasons) == (
        "no_multiplying_layers",
    )


@pytest.mark.parametrize(
    ("tactic", "types"),
    [
        ("sm90_xmma_gemm_i8f32_i8i32_f32_tn_n_tilesize64x64x128_beta0", ("int8", "int32")),
        ("sm90_xmma_fprop_implicit_gemm_e4m3f32_e4m3f32_f32_nhwckrsc_nhwc", ("fp8", "fp32")),
        ("sm80_xmma_fprop_implicit_gemm_indexed_wo_smem_f32f32_tf32f32_f32_nhwckrsc_nhwc", ("tf32", "fp32")),
        ("sm90_xmma_fprop_image_first_layer_f16f16_f32_f16_nhwckrsc_nhwc_hmma_k64c4r7s7", ("fp16", "fp32")),
        ("sm80_xmma_fprop_wngd_f32f32_f32_f32_nchwkcrs_nchw", ("fp32", "fp32")),
        ("sm80_xmma_fprop_avdt_dense_int8int8_tilesize64x256x32_tapsperload3", ("int8", None)),
        ("cutlass3x_sm100_tensorop_s128x128x32gemm_f8_f8_f32_f16_f16", ("fp8", None)),
        ("cutlass_80_tensorop_s1688tf32gemm_f32_128x128_16x4_nn_align4", ("tf32", None)),
        ("sm50_xmma_conv_fprop_fused_conv_act_fp32_NCHW_fp32_NCHW_KCRS_fp32_fp32_fp32_Accfloat_1_1", ("fp32", None)),
        ("ampere_sgemm_128x64_nn", ("fp32", None)),
        ("cutlass_80_simt_sgemm_128x64_8x5_nn_align1", ("fp32", None)),
        ("volta_scudnn_128x64_relu_interior_nn_v1", ("fp32", None)),
        ("turing_h1688gemm_128x128_ldg8_stages_32x1_nn", ("fp16", None)),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn", ("fp16", None)),
        ("cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_nn_align8", ("bf16", None)),
        ("volta_fp32_icudnn_int8x4_128x64_relu_small_nn_v1", ("int8", None)),  # writes FP32
        ("cutlass_80_tensorop_f32_i16864gemm_s4_128x128_128x4_tn_align32", (None, None)),
        ("ampere_s1688gemm_128x128_nn", (None, None)),  # single precision is what it adds in
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", ("fp16", None)),
        ("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNN", ("bf16", None)),
        ("_gemm_mha_v2_0x957a2fe283f77dcf35c142c1390a3e6a", (None, None)),
        ("", (None, None)),
    ],
)
def test_a_kernels_name_tells_what_it_multiplies_and_accumulates_in(
    tactic: str, types: tuple[str | None, str | None]
) -> None:
    assert kernel_types(tactic) == types


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Half", "fp16"),
        ("BFloat16", "bf16"),
        ("Float", "fp32"),
        ("FP8", "fp8"),
        ("Channel major INT8 format where channel % 16 == 0", "int8"),
        ("Thirty-two wide channel vectorized row major Int8 format", "int8"),
        ("Row major linear FP16 format", "fp16"),
        ("N/A due to dynamic shapes", None),
    ],
)
def test_a_datatype_is_found_in_a_formats_name(text: str, kind: str | None) -> None:
    assert element_type(text) == kind


def launched(name: str) -> list[tuple[str, float]]:
    """The kernels of a recorded engine, by name alone, as a profiler would see them."""
    layers = read_layers(recorded(name))
    return [(each.tactic, 0.01) for each in layers if each.kind != "nothing" and each.tactic]


@pytest.mark.parametrize("name", ["fp32", "tf32", "fp16", "bf16", "int8"])
def test_kernels_tell_by_their_names_alone_what_the_engine_tells(name: str) -> None:
    found = audit_launched(launched(name), name)
    assert (found.valid, codes_of(found.reasons)) == (True, ())
    # The classifier of the INT8 engine is generated code, whose name has no type: it is not seen to multiply.
    assert found.facts["multiplying_layers"] == {name: PRODUCTS - (name == "int8")}
    assert found.facts["time_share_ratio"].keys() >= {name}


@pytest.mark.parametrize(
    ("name", "precision", "reason"),
    [
        ("fp32", "fp16", "not_in_claimed_type"),  # an FP16 file that the provider runs in FP32
        ("tf32", "fp32", "tf32_kernels"),
        ("fp32", "tf32", "no_tf32_kernels"),
        ("fp16", "int8+fp16", "not_in_claimed_type"),
    ],
)
def test_kernels_of_another_type_are_caught(name: str, precision: str, reason: str) -> None:
    assert reason in codes_of(audit_launched(launched(name), precision).reasons)


def ran(precision: str) -> list[tuple[str, float]]:
    """What onnxruntime's TensorRT provider launched, recorded."""
    text = gzip.decompress((DATA.parent / "launched" / f"onnxruntime-tensorrt-{precision}.json.gz").read_bytes())
    return [(name, time_ms) for name, time_ms in json.loads(text)]


def test_recorded_kernels_are_of_the_precision_that_was_asked_for() -> None:
    half = audit_launched(ran("fp16"), "fp16")
    assert half.realised == (
        "fp16: 54 of 54 convolutions and matrix products (94.8 % of time); "
        "2 of 58 kernels only move data (1.58 % of time)"
    )
    assert half.valid
    assert audit_launched(ran("tf32"), "tf32").valid


def test_recorded_kernels_show_that_a_bf16_file_ran_in_fp32() -> None:
    found = audit_launched(ran("bf16"), "bf16")
    assert (found.valid, codes_of(found.reasons)) == (False, ("not_in_claimed_type",))
    assert found.realised.startswith(f"fp32: {PRODUCTS} of {PRODUCTS} convolutions and matrix products")


@pytest.mark.parametrize("precision", ["fp16", "bf16", "tf32"])
def test_a_product_that_is_cut_along_its_sum_is_counted_once(precision: str) -> None:
    """The second kernel of such a product adds the parts, and has the name of the first."""
    cut = sum("execute_split_k_kernel" in name for name, _ in ran(precision))
    assert cut == {"fp16": 0, "bf16": 9, "tf32": 1}[precision]
    assert sum(audit_launched(ran(precision), precision).facts["multiplying_layers"].values()) == PRODUCTS


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        (
            "void cuInt8::nchwToNhwcKernel<float>(int, int, int, int, int, int, int, int, bool, float const*, float*)",
            "moving",
        ),
        (
            "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false, (cudnnKernelDataType_t)0>(int)",
            "moving",
        ),
        (  # symbols of torch 2.15's libtorch_cuda.so
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)",
            "moving",
        ),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<at::native::OpaqueType<4u>>", "moving"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "other"),
        ("void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float, cudnnTensorStruct)", "other"),
        ("void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, __half>(float)", "multiplying"),
        (
            "void cuDepthwise::depthwiseConvHMMAPrefetchKernel<2, 1, 5, 4, 3, 2, 96>(cuDepthwise::HmmaParams)",
            "multiplying",
        ),
        ("fmha_v2_flash_attention_fp16_64_128_S_64_sm90_kernel_nl", "multiplying"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "multiplying"),
        ("sm50_xmma_pooling_coalescedC_NHWC_kMAX_3_False_execute_kernel_trt", "other"),
    ],
)
def test_what_a_kernel_does_is_told_by_its_name(kernel: str, kind: str) -> None:
    assert launched_layer("a layer", kernel).kind == kind


def test_as_many_kernels_may_be_in_a_higher_type_as_the_graph_keeps_there() -> None:
    kernels = [("sm90_xmma_fprop_i8i8_i8i32_f32_a", 1.0), ("sm90_xmma_fprop_f16f16_f16f32_f16_b", 1.0)]
    assert codes_of(audit_launched(kernels, "int8+fp16").reasons) == ("not_in_claimed_type",)
    kept = audit_launched(kernels, "int8+fp16", kept=1)
    assert kept.valid
    assert [each["type"] for each in kept.facts["kept"]] == ["fp16"]
    assert not audit_launched([*kernels, kernels[1]], "int8+fp16", kept=1).valid


def test_products_that_no_kernel_shows_are_told_and_most_of_them_must_be_shown() -> None:
    kernels = launched("int8")
    whole = audit_launched(kernels, "int8", written=PRODUCTS - 1)
    assert (whole.valid, whole.facts["unseen_products"]) == (True, 0)
    assert whole.realised == audit_launched(kernels, "int8").realised
    one = audit_launched(kernels, "int8", written=PRODUCTS)  # the classifier is in generated code
    assert (one.valid, one.facts["unseen_products"]) == (True, 1)
    assert one.realised.endswith("; not seen to multiply: 1 of the graph's 54 products")
    assert audit_launched(kernels, "int8", written=2 * (PRODUCTS - 1)).valid
    assert codes_of(audit_launched(kernels, "int8", written=2 * PRODUCTS).reasons) == ("products_not_seen",)
    assert "unseen_products" not in audit_launched(kernels, "int8").facts


def test_no_kernels_prove_nothing() -> None:
    assert codes_of(audit_launched([], "fp16").reasons) == ("no_kernels_recorded",)
    assert codes_of(audit_launched([("nchwToNhwcKernel", 1.0)], "fp16").reasons) == ("no_multiplying_layers",)


@pytest.mark.parametrize(
    ("kernel", "multiplies"),
    [
        ("sm50_xmma_convolution_depthwiseHMMA_FP16NHWCx8_TR3_TS3_STRIDEH1_STRIDEW1", "fp16"),
        ("sm50_xmma_convolution_trt_depthwiseFP32NHWC4_fp32nhwcx4_fp32nhwcx4_fp32kcrs", "fp32"),
        ("_gemm_mha_v2_0x3f8e07092222be2e44f8cb7b8278e8c2", None),  # a hash may spell a type
    ],
)
def test_a_kernels_name_tells_its_type_or_does_not(kernel: str, multiplies: str | None) -> None:
    assert launched_layer("a layer", kernel).kind == "multiplying"
    assert kernel_types(kernel)[0] == multiplies
