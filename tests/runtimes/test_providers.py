# SPDX-License-Identifier: Apache-2.0
"""The options that onnxruntime's providers are given: what they are told, for none of the GPU's runs here."""

from __future__ import annotations

import os
from pathlib import Path

import onnxruntime
import pytest

from pybench.runtimes import providers
from pybench.runtimes.providers import CPU, CUDA, TENSORRT
from tests.support.making import write_classifier


@pytest.mark.parametrize(("precision", "allowed"), [("fp32", "0"), ("fp16", "0"), ("bf16", "0"), ("tf32", "1")])
def test_cuda_computes_in_tf32_where_the_case_says_so_and_nowhere_else(precision: str, allowed: str) -> None:
    (name, options), (fallback, _) = providers.options_of("cuda", precision, graph=True)
    assert (name, fallback) == (CUDA, CPU)
    assert options["use_tf32"] == allowed
    assert options["cudnn_conv_algo_search"] == "EXHAUSTIVE"
    assert options["prefer_nhwc"] == ("1" if precision in ("tf32", "fp16") else "0")


@pytest.mark.parametrize("precision", list(providers.backend("tensorrt").precisions))
def test_tensorrt_is_allowed_the_types_in_the_precisions_name_and_no_other(precision: str) -> None:
    chain = providers.options_of("tensorrt", precision, graph=True)
    assert [name for name, _ in chain] == [TENSORRT, CUDA, CPU]
    options = chain[0][1]
    allowed = {kind for kind in ("fp16", "bf16", "int8") if options[f"trt_{kind}_enable"] == "True"}
    assert allowed == set(precision.split("+")) - {"fp32", "tf32"}
    assert options["trt_engine_cache_enable"] == options["trt_timing_cache_enable"] == "False"
    assert options["trt_auxiliary_streams"] == "0"
    assert chain[1][1]["enable_cuda_graph"] == "0"  # what falls to CUDA there is never captured


def test_runs_are_captured_only_where_asked_for() -> None:
    captured, plain = (providers.options_of("cuda", "fp32", graph=graph)[0][1] for graph in (True, False))
    assert (captured["enable_cuda_graph"], plain["enable_cuda_graph"]) == ("1", "0")
    assert providers.options_of("cpu", "fp32", graph=True) == [(CPU, {})]


def test_tf32_is_switched_for_the_libraries_that_have_no_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(providers.TF32_OVERRIDE, "1")
    for precision in ("fp32", "fp16", "int8"):
        providers.set_tf32(precision)
        assert os.environ[providers.TF32_OVERRIDE] == "0"
    providers.set_tf32("tf32")
    assert providers.TF32_OVERRIDE not in os.environ


def test_a_real_session_says_where_its_nodes_went(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = onnxruntime.InferenceSession(write_classifier(tmp_path / "mine.onnx"), options, providers=[CPU])
    partitions = providers.partitions_of(session.get_provider_graph_assignment_info())
    assert partitions == {CPU: 2}  # Flatten, MatMul
    assert providers.is_whole("cpu", partitions)
    assert not providers.is_whole("cuda", partitions)


def test_tensorrt_is_whole_as_one_engine_only() -> None:
    assert providers.is_whole("tensorrt", {TENSORRT: 1})
    assert not providers.is_whole("tensorrt", {TENSORRT: 2})
    assert not providers.is_whole("tensorrt", {TENSORRT: 1, CUDA: 1})
    assert providers.is_whole("cuda", {CUDA: 53})
    assert not providers.is_whole("cuda", {CUDA: 53, CPU: 1})
