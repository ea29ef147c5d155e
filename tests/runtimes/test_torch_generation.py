# SPDX-License-Identifier: Apache-2.0
"""Generation in every runtime that has it: its logits against a forward pass over all that came before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from pybench.case import Case
from pybench.errors import UnsupportedError
from pybench.measurement.model import open_model
from pybench.runtimes import torch as runtime
from pybench.runtimes import torch_graph
from pybench.runtimes.generation import GenerationTask
from pybench.runtimes.session import module_spec
from pybench.runtimes.torch_generation import TorchGeneration
from pybench.runtimes.torch_graph import TorchGraphGeneration
from pybench.workloads.generate import open_generation
from tests.support.generation import check_logits, small_decoder
from tests.support.making import request_of

IDS, PAST = 61, 6
PROMPT = np.random.default_rng(3).integers(0, IDS, (2, PAST))


def opened(task: GenerationTask, module: Any = None) -> TorchGeneration:
    kind = runtime.set_up("fp32", threads=1, device="cpu")
    spec = module_spec("ids", (None, None), takes_ids=True)
    session = runtime.open_session(module or small_decoder(IDS), spec, precision="fp32", kind=kind)
    return TorchGeneration(session, task)


def test_greedy_steps_take_the_likeliest_token_of_the_whole_sequence() -> None:
    check_logits(opened(GenerationTask(PROMPT, 20, 0.0, 1)), small_decoder(IDS), PROMPT)


def test_a_built_in_decoder_generates_what_its_forward_pass_says() -> None:
    case = Case(workload="generate", model="tinylm-small", runtime="torch", batch=2, seq_len=5, device="cpu", threads=1)
    request = request_of(case)
    model = open_model(request)
    prompt = np.random.default_rng(4).integers(0, 32_000, (2, 5))
    generation = open_generation(model, case, GenerationTask(prompt, 6, 0.0, 1))
    check_logits(generation, model.session.module, prompt)


@dataclass
class Recorded:
    """Without a GPU: what would be captured is run at each replay instead."""

    work: Callable[[], torch.Tensor]
    output: torch.Tensor

    @torch.inference_mode()
    def replay(self) -> None:
        self.output.copy_(self.work())


def captured(
    work: Callable[[], torch.Tensor], _stream: object, _random: object, before: Callable[[], None] | None = None
) -> tuple[Recorded, torch.Tensor]:
    """Stands in for `capture`: what is captured runs no time, what comes before it runs as on a GPU."""
    torch_graph.call_before_capture(work, before)
    output = torch.zeros(len(PROMPT), IDS)
    return Recorded(work, output), output


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Callable[[GenerationTask], TorchGraphGeneration]:
    monkeypatch.setattr(torch_graph, "capture", captured)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    kind = runtime.set_up("fp32", threads=1, device="cpu")
    spec = module_spec("ids", (None, None), takes_ids=True)
    session = runtime.open_session(small_decoder(IDS), spec, precision="fp32", kind=kind)
    return lambda task: TorchGraphGeneration(session, task)


@pytest.mark.parametrize("new_tokens", [2, 3, 20])
def test_a_captured_step_moves_on_by_itself_and_gives_the_same_tokens(
    new_tokens: int, recorded: Callable[[GenerationTask], TorchGraphGeneration]
) -> None:
    task = GenerationTask(PROMPT, new_tokens, 0.0, 1)
    check_logits(recorded(task), small_decoder(IDS), PROMPT)
    generation, eager = recorded(task), opened(task)
    for each in (generation, eager):
        each.prefill()
        for _ in range(2):
            each.decode()
    assert np.array_equal(generation.ids(), eager.ids())


def test_prefill_and_decode_are_one_request_and_decode_repeats() -> None:
    generation = opened(GenerationTask(PROMPT, 12, 0.0, 1))
    *_, _ = generation.logits()
    expected = generation.ids()
    generation.prefill()
    assert np.array_equal(generation.ids()[:, 0], expected[:, 0])
    for _ in range(2):
        generation.decode()
        assert np.array_equal(generation.ids(), expected)


def drawn(temperature: float, seed: int, samples: int = 2) -> Any:
    task = GenerationTask(np.repeat(PROMPT[:1], samples, 0), 12, temperature, seed)
    generation = opened(task, small_decoder(IDS, 2.0))
    generation.prefill()
    generation.decode()
    return generation.ids()


def test_draws_follow_the_seed_and_the_temperature() -> None:
    assert np.array_equal(drawn(1.0, 5), drawn(1.0, 5))
    assert not np.array_equal(drawn(1.0, 5), drawn(1.0, 6))
    assert not np.array_equal(*drawn(1.0, 5))  # two samples with the same prompt
    assert np.array_equal(drawn(1e-4, 5), drawn(0.0, 1))  # nearly greedy


def test_first_tokens_are_drawn_as_often_as_their_probability_says() -> None:
    samples = 4000
    ids = drawn(1.0, 7, samples)[:, 0]
    with torch.inference_mode():
        expected = small_decoder(IDS, 2.0)(torch.from_numpy(PROMPT[:1])).softmax(-1)[0].numpy() * samples
    counts = np.bincount(ids, minlength=IDS)
    deviations = (counts - expected) / np.sqrt(expected)
    assert np.abs(deviations).max() < 5  # of 61 Poisson counts: one in a million would be beyond
    assert (deviations**2).mean() < 1.8


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_no_numbers_raise_nothing_inside_a_window(temperature: float) -> None:
    module = small_decoder(IDS)
    module.head.weight.data[7] = torch.nan
    generation = opened(GenerationTask(PROMPT, 4, temperature, 1), module)
    generation.prefill()
    generation.decode()
    assert not np.isfinite(next(iter(generation.logits()))).all()
    assert ((generation.ids() >= 0) & (generation.ids() < IDS)).all()


def test_a_module_without_a_cache_is_unsupported_by_name() -> None:
    with pytest.raises(UnsupportedError, match="Linear keeps no keys and values") as caught:
        opened(GenerationTask(PROMPT, 4, 0.0, 1), torch.nn.Linear(2, 2))
    assert caught.value.reason.stored_code == "no_cache"
