# SPDX-License-Identifier: Apache-2.0
"""Decoders of transformers: what they generate here, against the library's own `generate`.

Weights are wide random ones, so that tokens vary and a wrong mask or position shows. Without the extra `zoo` the tests
are skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers", reason="the extra `zoo` is not installed")

from pybench.errors import InputError
from pybench.models.export import export_decoder
from pybench.models.zoo.build import Built, build, inputs_of
from pybench.models.zoo.decoder_program import DecoderProgram, write_decoder
from pybench.models.zoo.program import read_program
from pybench.models.zoo.weights import read_weights
from pybench.runtimes import onnxruntime
from pybench.runtimes import torch as torch_runtime
from pybench.runtimes.generation import Decoder, GenerationTask, Ids
from pybench.runtimes.onnxruntime_generation import OnnxRuntimeGeneration
from pybench.runtimes.session import module_spec
from pybench.runtimes.torch_generation import FixedStepGeneration, TorchGeneration
from tests.models.zoo.small import TINY, config
from tests.support.generation import check_logits

pytestmark = pytest.mark.slow  # the library is imported, and models exported

IDS, NEW_TOKENS, POSITIONS = 99, 10, 64
SHARED = {"num_key_value_heads": 1, "max_position_embeddings": POSITIONS, "initializer_range": 0.3}
TYPES: dict[str, dict[str, Any]] = {
    "gpt2": {
        "n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": POSITIONS, "vocab_size": IDS,
        "initializer_range": 0.3, "pad_token_id": 0,
    },
    "opt": {
        **TINY, "ffn_dim": 32, "word_embed_proj_dim": 16, "max_position_embeddings": POSITIONS, "init_std": 0.5,
        "tie_word_embeddings": False,
    },
    "llama": {**TINY, **SHARED},
    "qwen2": {**TINY, **SHARED},
    "mistral": {**TINY, **SHARED, "sliding_window": 4},
}  # fmt: skip


def of_type(name: str, folder: Path, **given: Any) -> Built:
    path = config(folder, {"model_type": name, **TYPES[name]})
    return build("./config.json", config=path, fused=given.pop("fused", True), cached=True, **given)


def prompt_of(samples: int, tokens: int = 7) -> Ids:
    return np.random.default_rng(samples).integers(3, IDS, (samples, tokens))


def task_of(prompt: Ids) -> GenerationTask:
    return GenerationTask(prompt, NEW_TOKENS, 0.0, 0)


def expected_of(folder: Path, prompt: Ids) -> Ids:
    """The tokens that the library's `generate` gives with another copy of the model, of equal seed."""
    import transformers

    weights = build("./config.json", config=folder / "config.json", cached=True).module.state_dict()
    settings = transformers.AutoConfig.from_pretrained(folder)
    judge: Any = transformers.AutoModelForCausalLM.from_config(settings)
    judge.load_state_dict({name.removeprefix("inner."): weight for name, weight in weights.items()})
    judge.generation_config.eos_token_id = None  # no token ends a sequence
    ids = torch.from_numpy(prompt)
    found: Ids = judge.eval().generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0
    ).numpy()  # fmt: skip
    return found[:, prompt.shape[1] :]


def session_of(built: Built, folder: Path, *, one_step: bool, precision: str = "fp32") -> torch_runtime.TorchSession:
    path = folder / "model.pt2"
    write_decoder(built, torch_runtime.DTYPES[precision], path, {}, one_step=one_step)
    kind = torch_runtime.set_up(precision, threads=1, device="cpu")
    spec = module_spec("input_ids", (None, None), takes_ids=True)
    return torch_runtime.open_session(read_program(path, "cpu"), spec, precision=precision, kind=kind)


def generated(generation: Any) -> Ids:
    generation.prefill()
    generation.decode()
    ids: Ids = generation.ids()
    return ids


@pytest.mark.parametrize("name", TYPES)
def test_tokens_are_those_of_the_librarys_generate(name: str, tmp_path: Path) -> None:
    grown = session_of(of_type(name, tmp_path), tmp_path, one_step=False)
    prompts = [prompt_of(1), prompt_of(2), prompt_of(2, tokens=1)]
    expected = [expected_of(tmp_path, prompt) for prompt in prompts]
    assert len(np.unique(expected[1])) > 3  # a model that repeats one token would show nothing
    for prompt, tokens in zip(prompts, expected, strict=True):
        assert np.array_equal(generated(TorchGeneration(grown, task_of(prompt))), tokens)

    placed = session_of(of_type(name, tmp_path, one_step=True), tmp_path, one_step=True)
    for prompt, tokens in zip(prompts, expected, strict=True):
        assert np.array_equal(generated(FixedStepGeneration(placed, task_of(prompt))), tokens)

    products = of_type(name, tmp_path, fused=False)
    export_decoder(products.module, "input_ids", products.feeds.longest, tmp_path / "model.onnx", {})
    opened = onnxruntime.open_session(tmp_path / "model.onnx", precision="fp32", threads=1, device="cpu")
    for prompt, tokens in zip(prompts, expected, strict=True):
        assert np.array_equal(generated(OnnxRuntimeGeneration(opened, task_of(prompt))), tokens)


@pytest.mark.parametrize("one_step", [False, True])
def test_logits_from_the_cache_are_those_of_the_whole_sequence(one_step: bool, tmp_path: Path) -> None:
    built = of_type("mistral", tmp_path)
    inner: Any = built.module.inner
    session = session_of(built, tmp_path, one_step=one_step)
    generation = (FixedStepGeneration if one_step else TorchGeneration)(session, task_of(prompt_of(2)))
    check_logits(generation, lambda ids: inner(input_ids=ids, use_cache=False).logits[:, -1], prompt_of(2))


@pytest.mark.parametrize("name", ["gpt2", "llama"])  # GPT-2's head is its embedding
def test_weights_are_in_memory_once(name: str, tmp_path: Path) -> None:
    built = of_type(name, tmp_path)
    parameters = sum(one.numel() for one in built.module.parameters())
    module = session_of(built, tmp_path, one_step=False).module
    assert isinstance(module, Decoder)
    assert isinstance(module, DecoderProgram)
    assert sum(one.numel() for one in module.parameters()) == parameters
    first, second = dict(module.prefill.named_parameters()), dict(module.step.named_parameters())
    assert {name: one.data_ptr() for name, one in first.items()} == {
        name: one.data_ptr() for name, one in second.items()
    }


def test_the_cache_has_the_heads_of_keys(tmp_path: Path) -> None:
    session = session_of(of_type("llama", tmp_path), tmp_path, one_step=False)
    cache_bytes = TorchGeneration(session, task_of(prompt_of(2))).cache_bytes
    assert cache_bytes == 2 * 2 * 2 * 1 * (7 + NEW_TOKENS - 1) * 8 * 4  # K and V, L, N, H, S, D/H, FP32


def test_a_step_with_its_position_on_the_device_asks_the_host_for_nothing(tmp_path: Path) -> None:
    """A CUDA graph cannot be captured otherwise."""
    write_decoder(of_type("opt", tmp_path), torch.float32, tmp_path / "model.pt2", {}, one_step=True)
    nodes = torch.export.load(tmp_path / "step.pt2").graph.nodes
    called = {str(node.target) for node in nodes if node.op == "call_function"}
    assert "aten.index_copy_.default" in called
    assert not [name for name in called if name.startswith(("aten.item", "aten._local_scalar_dense", "aten.nonzero"))]


def test_attention_has_no_mask_where_nothing_is_hidden(tmp_path: Path) -> None:
    """A mask would keep torch from its fastest kernels; a sliding window needs one."""
    for name, has_mask in (("llama", False), ("mistral", True)):
        write_decoder(of_type(name, tmp_path), torch.float32, tmp_path / "model.pt2", {}, one_step=False)
        for file in ("model.pt2", "step.pt2"):
            nodes = torch.export.load(tmp_path / file).graph.nodes
            attentions = [node for node in nodes if "scaled_dot_product_attention" in str(node.target)]
            masks = [node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask") for node in attentions]
            assert [mask is not None for mask in masks] == [has_mask] * 2


def test_frequencies_of_positions_stay_in_fp32(tmp_path: Path) -> None:
    """As they do where transformers loads weights in BF16: eight bits would blur positions beyond a few hundred."""
    session = session_of(of_type("llama", tmp_path), tmp_path, one_step=False, precision="bf16")
    module: Any = session.module
    assert {one.dtype for one in module.parameters()} == {torch.bfloat16}
    kept = {name: one for name, one in module.named_buffers() if name.endswith("inv_freq")}
    assert {one.dtype for one in kept.values()} == {torch.float32}
    task = task_of(prompt_of(2))
    assert generated(TorchGeneration(session, task)).shape == (2, NEW_TOKENS)


def test_weights_of_a_folder_are_those_of_the_library(tmp_path: Path) -> None:
    built = of_type("gpt2", tmp_path, seed=5)
    inner: Any = built.module.inner
    inner.save_pretrained(tmp_path / "saved")
    again = build("saved/config.json", config=tmp_path / "saved/config.json", weights=tmp_path / "saved", cached=True)
    assert read_weights(tmp_path / "saved")
    ids = torch.from_numpy(prompt_of(2))
    with torch.inference_mode():
        same: Any = again.module.inner
        torch.testing.assert_close(same(input_ids=ids).logits, inner(input_ids=ids).logits)


@pytest.mark.parametrize("asked", [inputs_of, build])
@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"model_type": "bert", **TINY}, "is built as BertModel, which does not continue text"),
        ({"model_type": "t5"}, "is built as T5Model, which does not continue text"),
        ({"model_type": "vit", **TINY}, "is built as ViTModel, which does not continue text"),
        ({**TYPES["gpt2"], "model_type": "gpt2", "architectures": ["GPT2Model"]}, "is built as GPT2Model"),
        (
            {**TINY, "model_type": "mamba"},
            "cannot be generated with: its layers do not all keep keys and values of one shape",
        ),
        (
            {
                **TYPES["llama"],
                "model_type": "llama",
                "rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4},
            },
            "cannot be generated with: a pass over two tokens ends with RuntimeError: Tensor.item",
        ),
    ],
)
def test_what_cannot_be_continued_says_why(asked: Any, content: dict[str, Any], what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"\./config\.json {what}") as raised:
        asked("./config.json", config=config(tmp_path, content), cached=True)
    assert raised.value.hint is not None


def test_a_prompt_is_of_ids_below_the_vocabulary(tmp_path: Path) -> None:
    path = config(tmp_path, {"model_type": "opt", **TYPES["opt"]})
    feeds = inputs_of("./config.json", path, cached=True)
    assert feeds == of_type("opt", tmp_path).feeds
    assert [(feed.name, feed.below) for feed in feeds.inputs] == [("input_ids", IDS)]
    assert feeds.longest == POSITIONS


def test_a_model_whose_tokens_depend_on_more_than_its_cache_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.models.llama.modeling_llama import LlamaModel

    forward: Any = LlamaModel.forward

    def shifted(self: Any, *given: Any, past_key_values: Any = None, **named: Any) -> Any:
        answer = forward(self, *given, past_key_values=past_key_values, **named)
        if past_key_values is not None:
            answer.last_hidden_state = answer.last_hidden_state * 1.5 + 0.1
        return answer

    monkeypatch.setattr(LlamaModel, "forward", shifted)
    with pytest.raises(InputError, match="gives other logits from a cache of keys and values than from the whole"):
        of_type("llama", tmp_path)


def test_a_step_whose_mask_follows_the_capacity_is_refused(tmp_path: Path) -> None:
    """GPT-Neo cuts its local mask by the length of the keys: right for what is filled, wrong for a whole cache."""
    content = {
        "model_type": "gpt_neo", "attention_types": [[["global", "local"], 1]], "num_layers": 2, "num_heads": 2,
        "hidden_size": 16, "window_size": 32, "vocab_size": IDS, "max_position_embeddings": POSITIONS,
    }  # fmt: skip
    path = config(tmp_path, content)
    build("./config.json", config=path, fused=True, cached=True)
    with pytest.raises(InputError, match="if a step reads the whole cache under a mask") as raised:
        build("./config.json", config=path, fused=True, cached=True, one_step=True)
    assert raised.value.hint is not None


def test_a_window_that_is_longer_than_the_trial_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.masking_utils import AttentionMaskInterface, causal_mask_function

    from pybench.models.zoo.transformers_decoder import FUSED, _mask

    path = config(tmp_path, {"model_type": "mistral", **TYPES["mistral"], "sliding_window": 32})
    inner: Any = build("./config.json", config=path, fused=True, cached=True).module.inner
    assert inner.config.sliding_window == 32

    def without_window(*, local_size: int | None = None, mask_function: Any, **given: Any) -> Any:
        return _mask(mask_function=causal_mask_function, **given)

    known: Any = AttentionMaskInterface._global_mapping
    monkeypatch.setitem(known, FUSED, without_window)
    with pytest.raises(InputError, match="gives other logits from a cache of keys and values than from the whole"):
        build("./config.json", config=path, fused=True, cached=True)


FALCON = {
    **TINY,
    "model_type": "falcon",
    "multi_query": False,
    "initializer_range": 0.3,
    "max_position_embeddings": POSITIONS,
}


def test_a_type_takes_the_fused_attention_that_it_has(tmp_path: Path) -> None:
    """Falcon knows attention by names of its own, and lacks pybench's. Its random weights are those of any other."""
    path = config(tmp_path, FALCON)
    fused: Any = build("./config.json", config=path, fused=True, cached=True, one_step=True).module
    products: Any = build("./config.json", config=path, cached=True).module
    assert fused.inner.config._attn_implementation == "sdpa"
    assert products.inner.config._attn_implementation == "eager"
    for name, weight in products.state_dict().items():
        assert torch.equal(weight, fused.state_dict()[name]), name


@pytest.mark.parametrize("asked", [inputs_of, build])
def test_a_library_that_is_too_old_is_named(asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.cache_utils import Cache

    monkeypatch.delattr(Cache, "get_query_offset")  # as before 5.14
    path = config(tmp_path, {"model_type": "gpt2", **TYPES["gpt2"]})
    with pytest.raises(InputError, match="makes masks without asking the cache") as raised:
        asked("./config.json", config=path, cached=True)
    assert raised.value.hint == "install transformers >= 5.14"
