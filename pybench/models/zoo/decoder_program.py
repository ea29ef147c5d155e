# SPDX-License-Identifier: Apache-2.0
"""A library's decoder as two torch programs in files, which continue sequences without the library.

One program reads a prompt, the other a token: of the first no token has a past, so attention needs no mask there. Both
write into a cache of fixed capacity. A step sees so much of it as is filled; or all of it under a mask, and is told its
position on the device. The latter step serves every position, once it is captured or compiled. The weights are in the
first file alone. N: sequences, T: tokens, S: capacity of the cache, L: layers, V: vocabulary.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pybench.models.tinylm import KeyValueCache
from pybench.models.zoo.feeds import LONGEST

if TYPE_CHECKING:
    from pybench.models.zoo.build import Built

DECODER = "pybench.decoder"  # key of what the first file says of the cache and of steps
STEP_FILE = "step.pt2"  # next to the first file
_EXAMPLE_SAMPLES, _EXAMPLE_TOKENS = 2, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheShape:
    """Sizes of the keys and values of a decoder, which all of its layers share."""

    layers: int
    heads: int
    key_width: int
    value_width: int

    def of(self, width: int, samples: int, capacity: int) -> tuple[int, ...]:
        """[L, N, heads, S, width]"""
        return self.layers, samples, self.heads, capacity, width


class DecoderProgram(nn.Module):
    """Two programs that were read from files, as the runtimes of torch generate with them (`Decoder`).

    `one_step`: whether a step is told its position on the device. It is in evaluation mode and of its types for good.
    """

    def __init__(self, prefill: nn.Module, step: nn.Module, shape: CacheShape, *, one_step: bool) -> None:
        super().__init__()
        self.prefill, self.step = prefill, step
        self.shape, self.one_step = shape, one_step

    def new_cache(self, samples: int, capacity: int) -> KeyValueCache:
        """An empty cache for `samples` sequences of up to `capacity` tokens: of the weights' type, on their device."""
        weight, shape = next(self.parameters()), self.shape
        keys, values = (
            weight.new_zeros(shape.of(width, samples, capacity)) for width in (shape.key_width, shape.value_width)
        )
        return KeyValueCache(keys, values, torch.arange(capacity, device=weight.device))

    def extend(self, ids: Tensor, cache: KeyValueCache, past: int | Tensor) -> Tensor:
        """Logits of the token after `ids` [N, T], a prompt or a token after the first `past` in `cache`: [N, V]."""
        logits: Tensor
        if self.one_step and ids.shape[1] == 1:
            position = past if isinstance(past, Tensor) else cache.positions[past : past + 1]
            logits = self.step(ids, cache.keys, cache.values, position)
            return logits
        end = past + ids.shape[1]
        program = self.step if ids.shape[1] == 1 else self.prefill
        logits = program(ids, cache.keys[:, :, :, :end], cache.values[:, :, :, :end])
        return logits

    def train(self, mode: bool = True) -> DecoderProgram:
        return self

    def to(self, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> DecoderProgram:
        """To a device. Frequencies of positions stay in FP32 whatever the type of the weights."""
        return super().to(*args, **kwargs) if args or kwargs else self


def write_decoder(built: Built, dtype: torch.dtype, path: Path, facts: Mapping[str, str], *, one_step: bool) -> None:
    """Writes both programs in this type: to `path`, with short texts, and next to it. Changes the module's type.

    Raises what torch's exporter raises.
    """
    decoder: Any = built.module
    _cast(decoder, dtype)
    shape, most = decoder.cache_shape, (built.feeds.longest or LONGEST) - 1  # the last token is not fed
    batch = torch.export.Dim("batch", min=1, max=LONGEST)
    prompt, seen = torch.export.Dim("tokens", min=2, max=most), torch.export.Dim("seen", min=1, max=most)

    def exported(tokens: int, free: dict[int, Any], size: Any, *position: Tensor) -> Any:
        held = tuple(
            torch.zeros(shape.of(width, _EXAMPLE_SAMPLES, _EXAMPLE_TOKENS), dtype=dtype)
            for width in (shape.key_width, shape.value_width)
        )
        given = (torch.zeros(_EXAMPLE_SAMPLES, tokens, dtype=torch.int64), *held, *position)
        sizes = (free, *({1: batch, 3: size} for _ in held), *(None for _ in position))
        return torch.export.export(decoder, given, dynamic_shapes=sizes, strict=False)

    position = (torch.tensor([_EXAMPLE_TOKENS // 2]),) if one_step else ()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside torch's own exporter
        prefill = exported(_EXAMPLE_TOKENS, {0: batch, 1: prompt}, prompt)
        step = exported(1, {0: batch}, seen, *position)
        for name, weight in list(step.named_parameters()):  # a number for each, as the other file has the weights
            step.state_dict[name] = nn.Parameter(weight.new_zeros(()).expand(weight.shape), requires_grad=False)
        said = {**facts, DECODER: json.dumps({**asdict(shape), "one_step": one_step}, sort_keys=True)}
        torch.export.save(prefill, path, extra_files=said)
        torch.export.save(step, path.with_name(STEP_FILE))


def joined(prefill: nn.Module, step: nn.Module, said: str) -> DecoderProgram:
    """The programs of the two files, the second of which gets the weights of the first. `said`: text of `DECODER`."""
    for name, weight in list(prefill.named_parameters(remove_duplicate=False)):
        set_weight(step, name, weight)
    shape = json.loads(said)
    one_step = shape.pop("one_step")
    return DecoderProgram(prefill, step, CacheShape(**shape), one_step=one_step)


def set_weight(module: nn.Module, name: str, weight: nn.Parameter) -> None:
    """Puts a parameter in the place of another one. `name`: of that place, with dots."""
    owner, _, own = name.rpartition(".")
    setattr(module.get_submodule(owner), own, weight)


def _cast(module: nn.Module, dtype: torch.dtype) -> None:
    """All that a file of weights has. The rest is computed, such as frequencies of positions, and stays in FP32."""
    for tensor in module.state_dict(keep_vars=True).values():
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(dtype)
