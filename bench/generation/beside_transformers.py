#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of a generated token: pybench's loop beside that of transformers, on the same architecture and weights.

    uv run --with transformers python bench/generation/beside_transformers.py [--batch 1 4] [--blocks 15]

TinyLM's weights go into a GPT-2 of transformers: same width, layers, heads, positions and GELU, heads of embedding and
output not tied. GPT-2 has biases, which are zero here and are added all the same. Greedy, no token ends a sample.

Four loops:

- pybench in torch (cache of fixed capacity, ids stay on the device)
- pybench in onnxruntime (the exported decoder, its cache copied in each step)
- `generate` of transformers
- its model in a bare loop of forward passes with its cache, which leaves out what `generate` does around each pass

All must give the same tokens. A block runs each loop once, in random order; ratios are of the same block. TTFT of
`generate` is a `generate` of one token, so its TPOT is a difference of two calls.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from pybench.catalogue.models import MODELS, TINYLM_POSITIONS
from pybench.models.building import build
from pybench.models.export import export_decoder
from pybench.models.tinylm import TinyLm
from pybench.runtimes import torch as runtime
from pybench.runtimes.generation import GenerationTask
from pybench.runtimes.onnxruntime import open_session
from pybench.runtimes.onnxruntime_generation import OnnxRuntimeGeneration
from pybench.runtimes.session import module_spec
from pybench.runtimes.torch_generation import TorchGeneration

Loop = Callable[[], tuple[float, float]]  # seconds to the first tokens, and from there to the last


def main() -> None:
    given = _arguments()
    random.seed(1)
    kind = runtime.set_up("fp32", threads=given.threads, device="cpu")
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {given.threads} threads, {kind}, FP32")
    print(f"{given.model}, prompt {given.seq_len}, {given.new_tokens} new tokens, {given.blocks} blocks, medians\n")
    print("| batch | loop | TTFT, ms | TPOT, ms | tokens/s | TPOT / pybench's [quartiles] |")
    print("| --- | --- | --- | --- | --- | --- |")
    for batch in given.batch:
        _table(given, kind, batch)


def _table(given: argparse.Namespace, kind: str, batch: int) -> None:
    module = build(given.model)
    assert isinstance(module, TinyLm)
    prompt = np.random.default_rng(batch).integers(0, 32_000, (batch, given.seq_len))
    spec = module_spec("ids", (None, None), takes_ids=True)
    session = runtime.open_session(module, spec, precision="fp32", kind=kind)
    task = GenerationTask(prompt, given.new_tokens, 0.0, 1)
    generation, in_ort = TorchGeneration(session, task), _in_onnxruntime(module, given, task)
    model, ids = twin(module), torch.from_numpy(prompt)
    loops = {
        "pybench": lambda: _timed(generation.prefill, generation.decode),
        "pybench, onnxruntime": lambda: _timed(in_ort.prefill, in_ort.decode),
        "transformers, `generate`": lambda: _generate(model, ids, given.new_tokens),
        "transformers, bare loop": lambda: _bare(model, ids, given.new_tokens)[1],
    }
    for loop in loops.values():
        loop()
    _check(generation.ids(), model, ids, given.new_tokens)
    if not np.array_equal(generation.ids(), in_ort.ids()):
        raise SystemExit("onnxruntime gives other tokens: not the same model")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in loops}
    for _ in range(given.blocks):
        for name in random.sample(list(loops), len(loops)):
            found[name].append(loops[name]())
    ours = np.array(found["pybench"])
    for name, times in found.items():
        seconds = np.array(times)
        ttft_ms, tpot_ms = np.median(seconds, axis=0) * 1e3 / (1, given.new_tokens - 1)
        rate = batch * given.new_tokens / np.median(seconds.sum(1))
        low, middle, high = np.quantile(seconds[:, 1] / ours[:, 1], (0.25, 0.5, 0.75))
        ratio = f"{middle:.2f} [{low:.2f}, {high:.2f}]" if name != "pybench" else "1"
        print(f"| {batch} | {name} | {ttft_ms:.1f} | {tpot_ms:.2f} | {rate:.0f} | {ratio} |", flush=True)


def _in_onnxruntime(module: TinyLm, given: argparse.Namespace, task: GenerationTask) -> OnnxRuntimeGeneration:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decoder.onnx"
        export_decoder(module, MODELS[given.model], path, {})
        return OnnxRuntimeGeneration(open_session(path, precision="fp32", threads=given.threads, device="cpu"), task)


def twin(module: TinyLm) -> Any:
    """A GPT-2 of transformers with the weights of a TinyLM; its linear layers are transposed and have biases of 0."""
    size, vocabulary = module.size, module.head.weight.shape[0]
    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_positions=TINYLM_POSITIONS, n_embd=size.width, n_layer=size.layers,
        n_head=size.heads, activation_function="gelu", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        tie_word_embeddings=False, bos_token_id=None, eos_token_id=None, attn_implementation="sdpa",
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).eval()
    state = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}
    own = module.state_dict()
    state["transformer.wte.weight"], state["transformer.wpe.weight"] = own["embed.weight"], own["position.weight"]
    state["lm_head.weight"] = own["head.weight"]
    names = {"norm1": "ln_1", "norm2": "ln_2", "attention.project_in": "attn.c_attn",
             "attention.project_out": "attn.c_proj", "widen": "mlp.c_fc", "narrow": "mlp.c_proj"}  # fmt: skip
    for layer in range(size.layers):
        for mine, theirs in names.items():
            for part in ("weight", "bias"):
                tensor = own.get(f"blocks.{layer}.{mine}.{part}")
                if tensor is not None:
                    turned = tensor.T if part == "weight" and "norm" not in mine else tensor
                    state[f"transformer.h.{layer}.{theirs}.{part}"] = turned
    for part in ("weight", "bias"):
        state[f"transformer.ln_f.{part}"] = own[f"norm.{part}"]
    model.load_state_dict(state)
    return model


def _timed(first: Callable[[], object], rest: Callable[[], object]) -> tuple[float, float]:
    begin = time.perf_counter()
    first()
    middle = time.perf_counter()
    rest()
    return middle - begin, time.perf_counter() - middle


@torch.inference_mode()
def _generate(model: Any, ids: torch.Tensor, new_tokens: int) -> tuple[float, float]:
    first_s, _ = _timed(lambda: _generated(model, ids, 1), lambda: None)
    whole_s, _ = _timed(lambda: _generated(model, ids, new_tokens), lambda: None)
    return first_s, whole_s - first_s


def _generated(model: Any, ids: torch.Tensor, new_tokens: int) -> torch.Tensor:
    mask = torch.ones_like(ids)
    found: torch.Tensor = model.generate(
        ids, attention_mask=mask, max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=False, use_cache=True,
        pad_token_id=0,
    )  # fmt: skip
    return found[:, ids.shape[1] :]


@torch.inference_mode()
def _bare(model: Any, ids: torch.Tensor, new_tokens: int) -> tuple[torch.Tensor, tuple[float, float]]:
    begin = time.perf_counter()
    out = model(ids, use_cache=True, logits_to_keep=1)
    chosen = [out.logits[:, -1].argmax(-1, keepdim=True)]
    middle = time.perf_counter()
    for _ in range(1, new_tokens):
        out = model(chosen[-1], past_key_values=out.past_key_values, use_cache=True)
        chosen.append(out.logits[:, -1].argmax(-1, keepdim=True))
    return torch.cat(chosen, 1), (middle - begin, time.perf_counter() - middle)


@torch.inference_mode()
def _check(ours: Any, model: Any, ids: torch.Tensor, new_tokens: int) -> None:
    bare, _ = _bare(model, ids, new_tokens)
    for name, theirs in (("generate", _generated(model, ids, new_tokens)), ("bare loop", bare)):
        if not np.array_equal(ours, theirs.numpy()):
            raise SystemExit(f"{name} of transformers gives other tokens: not the same model")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [name for name, row in MODELS.items() if row.kind == "language"]
    parser.add_argument("--model", choices=known, default="tinylm-small")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--seq-len", type=int, default=128)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
