# SPDX-License-Identifier: Apache-2.0
"""A torch model by name or row: seeded random weights, or those of a checkpoint.

Does not decide the precision or the device: runtimes do.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from pybench.catalogue.code import named_code
from pybench.catalogue.models import MODELS, Model
from pybench.errors import InputError, UsageError
from pybench.models.checkpoint import State, difference, read_state


def build(
    model: Model | str,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    outputs: int | None = None,
    vocabulary: int | None = None,
) -> nn.Module:
    """The model in evaluation mode, FP32, on the CPU. The global random state is left as it was.

    `model`: its row, or the name of a built-in one.
    `outputs`: classes of a classifier, or ids that a language model embeds; None: as the catalogue says. A checkpoint
    decides a classifier's number of classes, and its number of ids.
    `vocabulary`: ids that a classifier of text embeds; None: as the catalogue says.
    Raises UsageError for a name that is not built in, InputError for a checkpoint that is not one or does not fit.
    """
    row = _built_in(model) if isinstance(model, str) else model
    state = None if checkpoint is None else read_state(checkpoint, row)
    return _with_state(row, state, checkpoint, seed, outputs, vocabulary)


def check_weights(row: Model, checkpoint: Path) -> None:
    """Raises InputError for a checkpoint that is not one or does not fit, by names and shapes: no value is computed.

    As many ids as a language model's weights embed are taken for right: its tokenizer decides them.
    """
    state = read_state(checkpoint, row, shapes_alone=True)
    with torch.device("meta"):
        _with_state(row, state, checkpoint, 0, _rows_of(state, row.head) if row.takes_text else None, None)


def _with_state(
    row: Model, state: State | None, checkpoint: Path | None, seed: int, outputs: int | None, vocabulary: int | None
) -> nn.Module:
    if state is not None and not row.takes_text:
        outputs = _rows_of(state, row.head)
        vocabulary = None if row.embedding is None else _rows_of(state, row.embedding)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = [outputs or row.outputs, *([row.shape[-1]] if row.sized else [])]
        if row.embedding is not None:
            sizes.append(vocabulary or row.vocabulary or 0)
        module: nn.Module = named_code(row.build)(*sizes, **row.arguments)
        draw_statistics(module)
    if state is not None:
        try:
            module.load_state_dict(state)
        except RuntimeError as error:
            raise InputError(
                f"{checkpoint} does not fit {row.name}: {difference(module, state)}",
                hint="give weights of this model" + (", at this `image_size`" if row.sized else ""),
            ) from error
    return module.eval()


def _built_in(name: str) -> Model:
    if name not in MODELS:
        raise UsageError(f"`{name}` is not a built-in model", hint=f"built in: {', '.join(MODELS)}")
    return MODELS[name]


def draw_statistics(model: nn.Module) -> None:
    """Running statistics as if the model had seen something. At their initial 0 and 1 an exporter folds normalisation
    away, and no convolution has a bias: a network that is faster than any trained one. Training overwrites them.
    """
    for module in model.modules():
        if not isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d):
            continue
        if module.running_mean is not None and module.running_var is not None:  # for the type checker
            module.running_mean.normal_(0.0, 0.1)
            module.running_var.uniform_(0.5, 1.5)


def _rows_of(state: State, name: str) -> int | None:
    """The first dimension of a checkpoint's parameter: how many classes it tells apart, or how many ids it embeds.
    None: it has no such parameter, which `difference` will say."""
    parameter = state.get(name)
    return int(parameter.shape[0]) if parameter is not None and parameter.dim() > 0 else None
