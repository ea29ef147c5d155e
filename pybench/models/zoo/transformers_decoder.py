# SPDX-License-Identifier: Apache-2.0
"""A decoder of transformers that continues sequences from keys and values that it is given.

The library's own classes run, with caches of two kinds in place of the library's. One writes new keys and values into
tensors of fixed capacity, as its `StaticCache` does. The other gives them back longer, as its `DynamicCache` does,
which is the form of an ONNX file. Both keep every token, also those that a sliding window hides by its mask.

The library masks attention in whatever it exports. Here no mask is made where nothing is to be hidden: a prompt is
causal by itself, and a token that comes last reads all before it. So torch can take its fastest kernels, as it does in
the library's `generate`. With a sliding window the mask stays.
N: sequences of a batch, T: new tokens, S: tokens of the cache, P: of the past, L: layers, H: heads of keys, V:
vocabulary.
"""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers.cache_utils import Cache, CacheLayerMixin
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

from pybench.errors import InputError, in_short
from pybench.models.zoo.decoder_program import CacheShape

NEEDED = "5.14"  # the first release whose masks ask a cache where a query is
FUSED = "pybench-sdpa"  # the library's fused attention, and masks as above
TOLERANCE = 1e-3  # of the largest logit: FP32 in another order of summands stays far below
_PROMPT, _STEPS = 5, 3  # tokens of what is tried
_SPARE, _WINDOW = 8, 4  # entries of a cache behind these, and the longest window it is tried with
_WINDOWS = ("sliding_window", "sliding_window_size", "window_size", "attention_chunk_size")  # keys of a configuration


class TransformersDecoder(nn.Module):
    """`inner`: a causal language model of transformers. Raises InputError where it keeps something else than keys and
    values of one shape in each layer, and for a library that is too old."""

    def __init__(self, inner: Any, model: str) -> None:
        super().__init__()
        if not hasattr(Cache, "get_query_offset"):
            why = f"transformers {transformers.__version__} makes masks without asking the cache"
            raise _not_plain(model, why, hint=f"install transformers >= {NEEDED}")
        self.inner = inner
        inner.config.pad_token_id = None  # no token is padding: the library need not look for it in each step
        taken = inspect.signature(inner.forward).parameters
        self._takes_positions = "position_ids" in taken
        self._usual = {"use_cache": True} | ({"logits_to_keep": 1} if "logits_to_keep" in taken else {})
        self.cache_shape = self._find_shape(model)

    def forward(self, ids: Tensor, keys: Tensor, values: Tensor, position: Tensor | None = None) -> Tensor:
        """Logits of the token after `ids` [N, T]: [N, V]. Writes into keys [L, N, H, S, width], and values alike.

        `position`: int64 [1], where the one token of `ids` is; entries behind it are not read. None: these are the
        last T of S tokens.
        """
        tokens, capacity = ids.shape[1], keys.shape[3]
        layers = [_WrittenLayer(keys[i], values[i], tokens, position) for i in range(self.cache_shape.layers)]
        at = torch.arange(capacity - tokens, capacity, device=ids.device) if position is None else position
        return self._logits(ids, _WrittenCache(layers, position), at)

    def past_shapes(self) -> list[tuple[int, int]]:
        """(heads, width) of each tensor of a past, which is [N, heads, P, width]: key and value by layer."""
        shape = self.cache_shape
        return [(shape.heads, shape.key_width), (shape.heads, shape.value_width)] * shape.layers

    def continued(self, ids: Tensor, past: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Logits of the token after `ids` [N, T], [N, V], and the past with these: each [N, H, P + T, width]."""
        layers = [_GrowingLayer(pair) for pair in zip(past[::2], past[1::2], strict=True)]
        at = torch.arange(ids.shape[1], device=ids.device) + past[0].shape[2]
        logits = self._logits(ids, Cache(layers=list(layers)), at)
        return logits, [tensor for layer in layers for tensor in layer.held]

    def check_steps(self, model: str, vocabulary: int, *, one_step: bool) -> None:
        """Raises InputError where the token after a few others depends on whether they were read from a cache.

        A model with windows is tried with short ones, too, as a few tokens show nothing of long ones. `one_step`: its
        step also has to serve every position of a longer cache.
        """
        short = self._with_short_windows(model)
        for tried in (self,) if short is None else (self, short):
            tried._compare(model, vocabulary, one_step=one_step)

    def _with_short_windows(self, model: str) -> TransformersDecoder | None:
        """The model of the same weights with windows of a few tokens; None: it has none that are longer."""
        config = deepcopy(self.inner.config)
        text = config.get_text_config()
        found = {name: getattr(text, name, None) for name in _WINDOWS}
        long = [name for name, size in found.items() if isinstance(size, int) and size > _WINDOW]
        if not long:
            return None
        for name in long:
            setattr(text, name, _WINDOW)
        inner = type(self.inner)._from_config(config, attn_implementation=config._attn_implementation)
        inner.load_state_dict(self.inner.state_dict(), assign=True)
        return TransformersDecoder(inner.float().eval(), model)

    def _compare(self, model: str, vocabulary: int, *, one_step: bool) -> None:
        generator = torch.Generator().manual_seed(0)
        total, shape = _PROMPT + _STEPS, self.cache_shape
        ids = torch.randint(vocabulary, (2, total), generator=generator)
        keys, values = (
            torch.ones(shape.of(width, 2, total + _SPARE)) for width in (shape.key_width, shape.value_width)
        )
        past = [torch.zeros(2, heads, 0, width) for heads, width in self.past_shapes()]
        with torch.inference_mode():
            whole = self._judge(ids)
            for begin, end in ((0, _PROMPT), *((at, at + 1) for at in range(_PROMPT, total))):
                grown, past = self.continued(ids[:, begin:end], past)
                written = self(ids[:, begin:end], keys[:, :, :, :end], values[:, :, :, :end])
            placed = self(ids[:, -1:], keys, values, torch.tensor([total - 1])) if one_step else whole
        bound = TOLERANCE * float(whole.abs().max())
        what = f"{model} gives other logits from a cache of keys and values than from the whole sequence"
        if not all(torch.allclose(logits, whole, rtol=0.0, atol=bound) for logits in (grown, written)):
            raise InputError(what, hint="take a decoder whose tokens depend on nothing else that it keeps")
        if not torch.allclose(placed, whole, rtol=0.0, atol=bound):
            raise InputError(
                f"{what}, if a step reads the whole cache under a mask",
                hint="take runtime torch or onnxruntime, whose steps read what is filled",
            )

    def _logits(self, ids: Tensor, cache: Cache, positions: Tensor) -> Tensor:
        at = {"position_ids": positions[None]} if self._takes_positions else {}
        logits: Tensor = self.inner(input_ids=ids, past_key_values=cache, **at, **self._usual).logits[:, -1]
        return logits

    def _judge(self, ids: Tensor) -> Tensor:
        """Logits after whole sequences, with the library's own masks: [N, V]."""
        usual = self.inner.config._attn_implementation
        self.inner.set_attn_implementation("eager")
        logits: Tensor = self.inner(input_ids=ids, use_cache=False).logits[:, -1]
        self.inner.set_attn_implementation(usual)
        return logits

    def _find_shape(self, model: str) -> CacheShape:
        """What a pass over two tokens leaves."""
        layers = [_GrowingLayer(()) for _ in range(self.inner.config.get_text_config().num_hidden_layers)]
        ids = torch.zeros(1, 2, dtype=torch.int64, device=self.inner.device)
        try:
            with torch.no_grad():
                self._logits(ids, Cache(layers=list(layers)), torch.arange(2, device=ids.device))
        except Exception as error:  # whatever a type raises that asks more of its cache, or looks at values
            what = f"{type(error).__name__}: {in_short(error, 200)}"
            hint = "change what its config.json sets, such as a dynamic rope_type; or take another type, such as gpt2"
            raise _not_plain(model, f"a pass over two tokens ends with {what}", hint) from error
        shapes = {tuple(tensor.shape for tensor in layer.held) for layer in layers}
        if len(shapes) != 1 or not (found := shapes.pop()):
            raise _not_plain(model, "its layers do not all keep keys and values of one shape")
        key, value = found
        return CacheShape(layers=len(layers), heads=key[1], key_width=key[3], value_width=value[3])


def _not_plain(model: str, why: str, hint: str = "take a type such as gpt2, llama or qwen2") -> InputError:
    return InputError(f"{model} cannot be generated with: {why}", hint=hint)


class _GrowingLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """Keys and values [N, H, P, width] that are given back with the new ones. `held`: both; empty: nothing was seen."""

    is_sliding = False

    def __init__(self, held: tuple[()] | tuple[Tensor, Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held = held

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None: ...

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        new = key_states, value_states
        self.held = (torch.cat((self.held[0], new[0]), 2), torch.cat((self.held[1], new[1]), 2)) if self.held else new
        return self.held

    def get_seq_length(self) -> int:
        return self.held[0].shape[2] if self.held else 0

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1


class _WrittenLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """Keys and values [N, H, S, width] that new ones are written into: at a position, or as the last `tokens` of S."""

    is_sliding = False

    def __init__(self, keys: Tensor, values: Tensor, tokens: int, position: Tensor | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._held = keys, values
        self._capacity, self._begin, self._position = keys.shape[2], keys.shape[2] - tokens, position

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None: ...

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        for held, new in zip(self._held, (key_states, value_states), strict=True):
            if self._position is None:
                held[:, :, self._begin :].copy_(new)
            else:
                held.index_copy_(2, self._position, new)
        return self._held

    def get_seq_length(self) -> int:
        return self._begin

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._capacity, 0

    def get_max_length(self) -> int:
        return self._capacity


class _WrittenCache(Cache):
    """Sizes follow from the capacity, and what is hidden from the position: it is known on the device alone."""

    def __init__(self, layers: list[_WrittenLayer], position: Tensor | None) -> None:
        super().__init__(layers=list(layers))
        self._position = position

    def get_query_offset(self, layer_idx: int = 0) -> Any:
        return self.get_seq_length(layer_idx) if self._position is None else self._position[0]


def _mask(*, q_offset: Any, local_size: int | None = None, **given: Any) -> Tensor | None:
    """None where nothing is hidden but what comes later in the same prompt."""
    is_causal = local_size is None and not isinstance(q_offset, Tensor)
    if is_causal and given.pop("allow_is_causal_skip", True):
        return None
    given["allow_is_causal_skip"] = False  # the library would make one in whatever it exports
    mask: Tensor | None = sdpa_mask(q_offset=q_offset, local_size=local_size, **given)
    return mask


AttentionInterface.register(FUSED, sdpa_attention_forward)
AttentionMaskInterface.register(FUSED, _mask)
