# SPDX-License-Identifier: Apache-2.0
"""A library's model by name, or by its config.json: with seeded random weights, or a user's own.

Raises InputError for a name that the library does not have, for weights that do not fit, and where the library cannot
build the model.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from pybench.catalogue.zoo import Library, library_of, name_in
from pybench.errors import InputError, in_short
from pybench.models.building import draw_statistics
from pybench.models.checkpoint import State
from pybench.models.zoo.feeds import ModelInputs
from pybench.models.zoo.offline import offline
from pybench.models.zoo.weights import read_weights

CLOSE_NAMES = 3
AnswerT = TypeVar("AnswerT")
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What a library is to build.

    model: as the plan names it, for messages
    name: as the library calls it; empty where `config` says it
    config: the user's config.json
    state: the user's tensors, which may say how many classes there are; None: random weights
    file: where they come from, for messages
    fused: attention as one operator, which runtimes of torch have; else as products that a quantiser sees
    cached: whether it has to continue text from a cache of keys and values
    """

    model: str
    name: str = ""
    config: Path | None = None
    state: State | None = None
    file: str = ""
    fused: bool = False
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """A module, with the user's tensors where there are any, and what it is fed with."""

    module: nn.Module
    feeds: ModelInputs


def build(
    model: str,
    *,
    config: Path | None = None,
    weights: Path | None = None,
    seed: int = 0,
    fused: bool = False,
    cached: bool = False,
    one_step: bool = False,
) -> Built:
    """The model in evaluation mode, FP32, on the CPU. The global random state is left as it was.

    `cached`: it continues text from a cache of keys and values, and is not called otherwise. `one_step`: by a step that
    serves every position of the cache.
    """
    row = _library(model)
    state = None if weights is None else read_weights(weights)
    file = "" if weights is None else weights.name
    with offline(model):
        library = importlib.import_module(row.module)
        request = _request(row, library, model, config, state=state, file=file, fused=fused, cached=cached)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            built: Built = _asked(library.build, request)
            built.module.float()  # a config.json may name another type
            if state is None:
                draw_statistics(built.module)
                draw_scales(built.module)
            built.module.eval()
            if cached:
                _asked(partial(_check_steps, built, one_step), request)
    return built


def draw_scales(module: nn.Module) -> None:
    """Ones where every scale of a layer is zero: training begins there with residual branches that give nothing. With
    random weights the whole branch would be multiplied by zero, and no output would depend on it."""
    for part in module.modules():
        for name, scale in part.named_parameters(recurse=False):
            is_scale = name == "gain" or (name == "weight" and isinstance(part, _NORMS))
            if is_scale and not scale.any():
                nn.init.ones_(scale)


def inputs_of(model: str, config: Path | None = None, *, cached: bool = False) -> ModelInputs:
    """What a model is fed with, without weights and without memory for them. Raises InputError like `build`."""
    row = _library(model)
    with offline(model):
        library = importlib.import_module(row.module)
        feeds: ModelInputs = _asked(library.inputs, _request(row, library, model, config, cached=cached))
    return feeds


def _request(row: Library, library: Any, model: str, config: Path | None, **given: Any) -> ModelRequest:
    """Raises InputError for a name that the library does not have, with the nearest ones."""
    if config is not None:
        return ModelRequest(model=model, config=config, **given)
    name, known = name_in(model), library.names()
    if name not in known:
        near = difflib.get_close_matches(name, known, CLOSE_NAMES, cutoff=0.5)
        close = ", ".join(f"{row.name}/{each}" for each in near)
        hint = f"did you mean {close}?" if close else f"it has {len(known)}, such as {row.name}/{known[0]}"
        raise InputError(f"{model}: {row.package} has no {row.kind} {name!r}", hint=hint)
    return ModelRequest(model=model, name=name, **given)


def _asked(of_library: Callable[[ModelRequest], AnswerT], request: ModelRequest) -> AnswerT:
    try:
        return of_library(request)
    except InputError:
        raise
    except Exception as error:  # whatever a library raises for a configuration that it does not build
        what = f"{type(error).__name__}: {in_short(error, 300)}"
        raise InputError(f"{request.model} cannot be built: {what}") from error


def _check_steps(built: Built, one_step: bool, request: ModelRequest) -> None:
    decoder: Any = built.module
    decoder.check_steps(request.model, built.feeds.inputs[0].below, one_step=one_step)


def _library(model: str) -> Library:
    row = library_of(model)
    if row is None:
        raise InputError(f"{model} is no model of a library", hint="as in timm/NAME or ./folder/config.json")
    return row
