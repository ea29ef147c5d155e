# SPDX-License-Identifier: Apache-2.0
"""Generation with a decoder of transformers, from a config.json to the numbers of a run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.recipe import recipes_of
from pybench.case import Case
from tests.models.zoo.small import DECODER, config
from tests.support.making import codes, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("transformers") is None, reason="the extra `zoo` is not installed"),
]

CASE = Case(
    workload="generate", model="mine/config.json", sources=(("model", "5" * 64),), runtime="torch", batch=2,
    seq_len=12, new_tokens=5, threads=1, iterations=3, warmup_iterations=1, idle_window_s=0.0, device="cpu",
)  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {"model": config(tmp_path, {**DECODER, "initializer_range": 0.3})}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_request_has_the_numbers_of_a_built_in_model(precision: str, files: dict[str, Path]) -> None:
    result = run(CASE.with_factors(precision=precision), files)
    value: dict[str, Any] = {name: metric.value for name, metric in result.metrics.items()}
    width = 4 if precision == "fp32" else 2
    assert value["kv_cache_bytes"] == 2 * 1 * 2 * 2 * (12 + 4) * 8 * width  # K and V, L, N, H, S, D/H
    assert value["latency_mean_ms"] == pytest.approx(value["ttft_ms"] + 4 * value["tpot_ms"])
    agreement = value["fp32_token_agreement_ratio"]
    assert agreement == 1.0 if precision == "fp32" else 0 < agreement <= 1
    assert result.valid["precision"].value is True
    assert "untrained_weights" in codes(result)


def test_the_file_of_onnxruntime_gives_the_same_tokens(files: dict[str, Path]) -> None:
    found = {
        runtime: run(CASE.with_factors(runtime=runtime), files).labels["output_ids_sha256"]
        for runtime in ("torch", "onnxruntime")
    }
    assert found["torch"] == found["onnxruntime"]


def test_weights_alone_are_stored_in_8_bits(files: dict[str, Path]) -> None:
    result = run(CASE.with_factors(runtime="onnxruntime", precision="int8", quantiser="weight-only"), files)
    assert result.valid["precision"].value is True
    error = result.metrics["relative_error_ratio"].value
    assert error is not None
    assert 0 < error < 0.2


def test_tokens_are_compared_with_a_program_in_fp32_whose_steps_grow() -> None:
    roles = {
        (runtime, precision): recipes_of(CASE.with_factors(runtime=runtime, precision=precision))
        for runtime in ("torch", "torch-compile")
        for precision in ("fp32", "bf16")
    }
    usual = roles["torch", "fp32"]["program"]
    assert dict(usual.parameters)["cached"] is True
    assert list(roles.pop(("torch", "fp32"))) == ["program"]
    for (runtime, precision), recipes in roles.items():
        assert recipes["reference"] == usual
        of_program = dict(recipes["program"].parameters)
        assert of_program["precision"] == precision
        assert ("one_step" in of_program) == (runtime == "torch-compile")
    drawn = CASE.with_factors(precision="bf16", temperature=0.5)
    assert list(recipes_of(drawn)) == ["program"]


def test_one_forward_pass_is_another_artefact_as_before() -> None:
    inferred = CASE.with_factors(workload="infer")
    for runtime in ("torch", "onnxruntime"):
        (recipe,) = recipes_of(inferred.with_factors(runtime=runtime)).values()
        assert {"cached", "one_step"}.isdisjoint(dict(recipe.parameters))
