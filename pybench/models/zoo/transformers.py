# SPDX-License-Identifier: Apache-2.0
"""Models of transformers: a type in its default configuration, or a user's config.json.

The class is the one that a config.json names; else that of a decoder with its head, and for other types the one
without a head. Code that comes with a folder is never executed: only classes of the installed library are built.
Models of text are fed with ids and a mask of ones, as no token is padding; models of images with images. They keep no
cache here, and give the first tensor of their outputs.
"""

from __future__ import annotations

import json
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

from pybench.errors import InputError
from pybench.measure import available_bytes
from pybench.models.zoo.build import Built, Wanted
from pybench.models.zoo.feeds import LONGEST, ModelInput, ModelInputs, image_feeds

BYTES_OF_FP32 = 4
COPIES = 2  # the model, and what is exported of it


def names() -> list[str]:
    return sorted(name for name in CONFIG_MAPPING if name in MODEL_MAPPING_NAMES)


def build(wanted: Wanted) -> Built:
    config = _config(wanted)
    config.use_cache = False
    attention = "sdpa" if wanted.fused else "eager"
    _refuse_size(wanted, config)
    try:
        module = _built(config, attention)
    except ValueError:  # not every type has the fused form
        module = _built(config, "eager")
    main = module.main_input_name
    of_file = module.base_model_prefix, tuple(module._keys_to_ignore_on_load_unexpected or ())
    if main == "input_ids" and not config.is_encoder_decoder:
        return Built(_only(module, ("input_ids", "attention_mask")), _ids(module, config), *of_file)
    if main == "pixel_values":
        return Built(_only(module, ("pixel_values",)), image_feeds(main, _image(config)), *of_file)
    what = "an encoder and a decoder" if config.is_encoder_decoder else f"`{main}` as its input"
    hint = "take a type that is fed with ids and a mask, or with images"
    raise InputError(f"{wanted.model} has {what}, which pybench cannot feed", hint=hint)


def _config(wanted: Wanted) -> Any:
    if wanted.config is None:
        return CONFIG_MAPPING[wanted.name]()
    stored = json.loads(wanted.config.read_bytes())
    if stored["model_type"] not in CONFIG_MAPPING:
        what = f"{wanted.model}: transformers {transformers.__version__} has no type {stored['model_type']}"
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


def _built(config: Any, attention: str) -> Any:
    made = _class_of(config)
    build_it = made.from_config if made in (AutoModel, AutoModelForCausalLM) else made._from_config
    return build_it(config, attn_implementation=attention)


def _refuse_size(wanted: Wanted, config: Any) -> None:
    """Some default configurations are of billions of parameters: more than a machine may have room for."""
    with torch.device("meta"):
        parameters = sum(one.numel() for one in _built(config, "eager").parameters())
    needed, available = COPIES * parameters * BYTES_OF_FP32, available_bytes()
    if available is not None and needed > available:
        raise InputError(
            f"{wanted.model} has {parameters / 1e9:.1f} billion parameters: its export needs {needed / 1e9:.1f} GB of "
            f"memory, and {available / 1e9:.1f} GB are available",
            hint="give a folder with the config.json of a smaller model of the type",
        )


def _only(module: Any, inputs: tuple[str, ...]) -> Any:
    """The module called with these inputs in this order. It stays itself, so that names of weights stay, too."""
    called = module.forward

    def of_one(self: nn.Module, first: Tensor) -> Any:
        return called(**{inputs[0]: first})[0]

    def of_two(self: nn.Module, first: Tensor, second: Tensor) -> Any:
        return called(**{inputs[0]: first, inputs[1]: second})[0]

    module.forward = MethodType(of_one if len(inputs) == 1 else of_two, module)
    return module


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
