# SPDX-License-Identifier: Apache-2.0
"""Models of transformers: a type in its default configuration, or a user's config.json.

The class is the one that a config.json names; else that of a decoder with its head, and for other types the one
without a head. Code that comes with a folder is never executed: only classes of the installed library are built.
Models of text are fed with ids and a mask of ones, as no token is padding; models of images with images. They keep no
cache, and give the first tensor of their outputs. What continues text is fed with ids alone, and is given its cache
(`transformers_decoder`).

The library itself puts a user's tensors into a model, as their names change between its versions. The head of another
task is left out, as is a pooler that does not count for the output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from types import MethodType
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, AutoModel, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_MAPPING_NAMES,
)

from pybench.catalogue.zoo import OF_CONFIG
from pybench.errors import InputError
from pybench.measure import available_bytes
from pybench.models.zoo.build import Built, ModelRequest
from pybench.models.zoo.feeds import LONGEST, ModelInput, ModelInputs, image_feeds
from pybench.models.zoo.transformers_decoder import FUSED, TransformersDecoder
from pybench.models.zoo.weights import misfit, other_shape

BYTES_OF_FP32 = 4
COPIES = 2  # the model, and what is exported of it
_POOLER = re.compile(r"(^|\.)pooler\.")  # a head for sentences inside of what all tasks share

# What it says of tensors is said by errors here.
transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def names() -> list[str]:
    return sorted(name for name in CONFIG_MAPPING if name in MODEL_MAPPING_NAMES)


def inputs(request: ModelRequest) -> ModelInputs:
    config = _config(request)
    return _fed(request, _empty(config), config)


def build(request: ModelRequest) -> Built:
    config = _config(request)
    config.use_cache = request.cached
    empty = _empty(config)
    feeds, made = _fed(request, empty, config), type(empty)
    _refuse_beyond_memory(request, empty)
    module = _with_attention(request, made, config)
    if request.cached:
        return Built(TransformersDecoder(module, request.model), feeds)
    return Built(_only(module, tuple(feed.name for feed in feeds.inputs)), feeds)


def _fed(request: ModelRequest, empty: Any, config: Any) -> ModelInputs:
    """What the model is fed with, by its class. `empty`: the model without weights."""
    main = empty.main_input_name
    if request.cached:
        return _prompts(request, empty, config)
    if main == "input_ids" and not config.is_encoder_decoder:
        return _ids(empty, config)
    if main == "pixel_values":
        return image_feeds(main, _image(config))
    what = "an encoder and a decoder" if config.is_encoder_decoder else f"`{main}` as its input"
    hint = "take a type that is fed with ids and a mask, or with images"
    raise InputError(f"{request.model} has {what}, which pybench cannot feed", hint=hint)


def _config(request: ModelRequest) -> Any:
    if request.config is None:
        return CONFIG_MAPPING[request.name]()
    stored = json.loads(request.config.read_bytes())
    if stored["model_type"] not in CONFIG_MAPPING:
        what = f"{request.model}: transformers {transformers.__version__} has no type {stored['model_type']}"
        raise InputError(what, hint="install a transformers that has it")
    return CONFIG_MAPPING[stored["model_type"]].from_dict(stored)


def _class_of(config: Any) -> Any:
    """The class that a config.json names; else what builds the type, with a head where it is a decoder."""
    for name in config.architectures or ():
        if hasattr(transformers, name):
            return getattr(transformers, name)
    kind = config.model_type
    is_pair = config.is_encoder_decoder  # its decoder alone would be another model
    decodes = (
        not is_pair and kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )
    return AutoModelForCausalLM if decodes else AutoModel


def _built(request: ModelRequest, made: Any, config: Any, attention: str) -> Any:
    if request.state is None:
        return made._from_config(config, attn_implementation=attention)
    module, found = made.from_pretrained(
        None,
        config=config,
        state_dict=dict(request.state),
        dtype=torch.float32,
        attn_implementation=attention,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    _check_fit(request, module, found)
    return module


def _check_fit(request: ModelRequest, module: Any, found: Mapping[str, Any]) -> None:
    """Raises InputError that names the first tensor that does not fit. `found`: what the library says of loading."""
    is_body = module.base_model is module  # gives what comes before its pooler
    missing = sorted(name for name in found["missing_keys"] if not (is_body and _POOLER.search(name)))
    other = sorted(found["mismatched_keys"])
    start = f"{module.base_model_prefix}."  # before the names of what all tasks share, where there is a head
    has_heads = any(name.startswith(start) for name in request.state or ())
    unknown = sorted(
        name
        for name in found["unexpected_keys"]
        if not _POOLER.search(name) and (name.startswith(start) or not has_heads)
    )
    if missing:
        what = f"{missing[0]} is missing"
    elif other:
        what = other_shape(*other[0])
    elif unknown:
        what = f"the model has no {unknown[0]}"
    else:
        return
    hint = "give the weights of this very model, or give the model as the folder with their config.json"
    raise misfit(request.file, request.model, what, hint)


def _empty(config: Any) -> Any:
    """The model without memory for its weights: it tells its class, its size and its inputs."""
    made = _class_of(config)
    build_it = made.from_config if made in (AutoModel, AutoModelForCausalLM) else made._from_config
    with torch.device("meta"):
        return build_it(config, attn_implementation="eager")


def _refuse_beyond_memory(request: ModelRequest, empty: Any) -> None:
    """Some default configurations are of billions of parameters: more than a machine may have room for."""
    parameters = sum(one.numel() for one in empty.parameters())
    needed, available = COPIES * parameters * BYTES_OF_FP32, available_bytes()
    if available is not None and needed > available:
        raise InputError(
            f"{request.model} has {parameters / 1e9:.1f} billion parameters: its export needs {needed / 1e9:.1f} GB of "
            f"memory, and {available / 1e9:.1f} GB are available",
            hint="give a folder with the config.json of a smaller model of the type",
        )


def _only(module: Any, names: tuple[str, ...]) -> Any:
    """The module called with these inputs in this order. It stays itself, so that names of weights stay, too."""
    called = module.forward

    def of_one(self: nn.Module, first: Tensor) -> Any:
        return called(**{names[0]: first})[0]

    def of_two(self: nn.Module, first: Tensor, second: Tensor) -> Any:
        return called(**{names[0]: first, names[1]: second})[0]

    module.forward = MethodType(of_one if len(names) == 1 else of_two, module)
    return module


def _prompts(request: ModelRequest, empty: Any, config: Any) -> ModelInputs:
    """What continues text is fed with. Raises InputError for a model that does not."""
    if not empty.can_generate() or config.is_encoder_decoder:
        ends = " or ".join(f"...{end}" for end in OF_CONFIG.decoders)
        raise InputError(
            f"{request.model} is built as {type(empty).__name__}, which does not continue text",
            hint=f"take a decoder such as hf/gpt2; a config.json names it in `architectures`, as a class of {ends}",
        )
    TransformersDecoder(_empty(deepcopy(config)), request.model)  # whether it keeps what can be given to it
    feeds = _ids(empty, config)
    return replace(feeds, inputs=feeds.inputs[:1])


def _with_attention(request: ModelRequest, made: Any, config: Any) -> Any:
    """The model with the most fused attention that its type has. Random weights do not depend on which it is."""
    has_own_masks = request.cached and getattr(made, "_supports_sdpa", False)
    fused = (FUSED, "sdpa") if has_own_masks else ("sdpa",)
    before = torch.get_rng_state()
    for attention in fused if request.fused else ():
        try:
            return _built(request, made, config, attention)
        except (ValueError, KeyError):  # what a type raises that does not have this form
            torch.set_rng_state(before)
    return _built(request, made, config, "eager")


def _ids(module: nn.Module, config: Any) -> ModelInputs:
    text = config.get_text_config()
    longest = (getattr(text, "max_position_embeddings", None) or LONGEST) - _unused_positions(module)
    ids = ModelInput(name="input_ids", shape=(None, None), below=text.vocab_size, about="the vocabulary")
    mask = ModelInput(name="attention_mask", shape=(None, None), least=1, below=2, about="a mask without padding")
    return ModelInputs(inputs=(ids, mask), longest=longest)


def _unused_positions(module: nn.Module) -> int:
    """Types such as RoBERTa count positions from behind the one of padding, so the first of their table are unused."""
    tables = [table for name, table in module.named_modules() if name.endswith("embeddings.position_embeddings")]
    behind = [table.padding_idx for table in tables if getattr(table, "padding_idx", None) is not None]
    return max(behind) + 1 if behind else 0


def _image(config: Any) -> tuple[int, ...]:
    size = getattr(config, "image_size", None) or 224
    height, width = (size, size) if isinstance(size, int) else tuple(size)
    return getattr(config, "num_channels", 3), height, width
