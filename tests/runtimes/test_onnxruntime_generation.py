# SPDX-License-Identifier: Apache-2.0
"""Generation by onnxruntime: its logits against torch's forward pass over all that came before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pybench.case import Case
from pybench.catalogue.models import TINYLM_POSITIONS
from pybench.errors import UnsupportedError
from pybench.measurement.model import open_model
from pybench.models.export import export_decoder
from pybench.runtimes.generation import GenerationTask
from pybench.runtimes.onnxruntime import open_session
from pybench.runtimes.onnxruntime_generation import OnnxRuntimeGeneration
from pybench.workloads.generate import open_generation
from tests.support.generation import check_logits, small_decoder
from tests.support.making import request_of, write_classifier

IDS, PAST = 61, 6
PROMPT = np.random.default_rng(3).integers(0, IDS, (2, PAST))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decoder") / "decoder.onnx"
    export_decoder(small_decoder(IDS), "ids", TINYLM_POSITIONS, path, {})
    return path


def opened(path: Path, task: GenerationTask) -> OnnxRuntimeGeneration:
    session = open_session(path, precision="fp32", threads=1, device="cpu")
    return OnnxRuntimeGeneration(session, task)


@pytest.mark.parametrize("new_tokens", [2, 3, 20])
def test_greedy_steps_take_the_likeliest_token_of_the_whole_sequence(exported: Path, new_tokens: int) -> None:
    check_logits(opened(exported, GenerationTask(PROMPT, new_tokens, 0.0, 1)), small_decoder(IDS), PROMPT)


def test_prefill_and_decode_are_one_request_and_decode_repeats(exported: Path) -> None:
    generation = opened(exported, GenerationTask(PROMPT, 12, 0.0, 1))
    *_, _ = generation.logits()
    expected = generation.ids()
    generation.prefill()
    assert np.array_equal(generation.ids()[:, 0], expected[:, 0])
    for _ in range(2):
        generation.decode()
        assert np.array_equal(generation.ids(), expected)


def drawn(exported: Path, temperature: float, seed: int, samples: int = 2, new_tokens: int = 12) -> np.ndarray:
    task = GenerationTask(np.repeat(PROMPT[:1], samples, 0), new_tokens, temperature, seed)
    generation = opened(exported, task)
    generation.prefill()
    generation.decode()
    return generation.ids()


def test_draws_follow_the_seed_and_the_temperature(exported: Path) -> None:
    assert np.array_equal(drawn(exported, 9.0, 5), drawn(exported, 9.0, 5))
    assert not np.array_equal(drawn(exported, 9.0, 5), drawn(exported, 9.0, 6))
    assert not np.array_equal(*drawn(exported, 9.0, 5))  # two samples with the same prompt
    assert np.array_equal(drawn(exported, 1e-4, 5), drawn(exported, 0.0, 1))  # nearly greedy


def test_drawn_tokens_are_fed_back_and_as_frequent_as_their_probability_says(exported: Path) -> None:
    samples, temperature = 4000, 9.0
    ids = drawn(exported, temperature, 7, samples, new_tokens=2)
    forward = small_decoder(IDS)
    with torch.inference_mode():
        first = (forward(torch.from_numpy(PROMPT[:1])) / temperature).softmax(-1)[0]
        continued = torch.cat((torch.from_numpy(PROMPT[:1]).expand(IDS, -1), torch.arange(IDS)[:, None]), 1)
        second = first @ (forward(continued) / temperature).softmax(-1)  # over all first tokens
    for position, probabilities in enumerate((first, second)):
        expected = probabilities.numpy() * samples
        deviations = (np.bincount(ids[:, position], minlength=IDS) - expected) / np.sqrt(expected)
        assert np.abs(deviations).max() < 5  # of 61 Poisson counts: one in a million would be beyond
        assert (deviations**2).mean() < 1.8


@pytest.mark.slow
def test_a_built_in_decoder_generates_what_its_forward_pass_says() -> None:
    case = Case(
        workload="generate", model="tinylm-tiny", runtime="onnxruntime", batch=2, seq_len=5, new_tokens=6,
        device="cpu", threads=1,
    )  # fmt: skip
    model = open_model(request_of(case))
    judge = open_model(request_of(case.with_factors(runtime="torch")))
    prompt = np.random.default_rng(4).integers(0, 32_000, (2, 5))
    generation = open_generation(model, case, GenerationTask(prompt, 6, 0.0, 1))
    check_logits(generation, judge.session.module, prompt)
    assert generation.cache_bytes == 2 * 1 * 2 * 1 * (5 + 5) * 64 * 4  # K and V, L, N, H, S, D/H, FP32


def test_a_file_without_a_cache_is_unsupported_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"classifier\.onnx takes no keys and values") as caught:
        opened(write_classifier(tmp_path / "classifier.onnx"), GenerationTask(PROMPT, 4, 0.0, 1))
    assert caught.value.reason.stored_code == "no_cache"


def test_a_module_that_gives_back_no_cache_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="Linear gives back no keys and values"):
        export_decoder(torch.nn.Linear(2, 2), "ids", TINYLM_POSITIONS, tmp_path / "linear.onnx", {})
