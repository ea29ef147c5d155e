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
    model: Model | str, *, seed: int = 0, checkpoint: Path | None = None, outputs: int | None = None
) -> nn.Module:
    """The model in evaluation mode, FP32, on the CPU. The global random state is left as it was.

    `model`: its row, or the name of a built-in one.
    `outputs`: classes of a classifier, or ids that a language model embeds; None: as the catalogue says. A checkpoint
    decides a classifier's number of classes. Raises UsageError for a name that is not built in, InputError for a
    checkpoint that is not one or does not fit.
    """
    row = _built_in(model) if isinstance(model, str) else model
    state = None if checkpoint is None else read_state(checkpoint, row)
    if state is not None and not row.takes_text:
        outputs = _classes(state, row)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = (row.shape[-1],) if row.sized else ()
        module: nn.Module = named_code(row.build)(outputs or row.outputs, *sizes, **row.arguments)
        _draw_statistics(module)
    if state is not None:
        try:
            module.load_state_dict(state)
        except RuntimeError as error:
            raise InputError(
                f"{checkpoint} does not fit {row.name}: {difference(module, state)}",
                hint="give weights of this model, at this `image_size`",
            ) from error
    return module.eval()


def _built_in(name: str) -> Model:
    if name not in MODELS:
        raise UsageError(f"`{name}` is not a built-in model", hint=f"built in: {', '.join(MODELS)}")
    return MODELS[name]


def parameter_count(model: nn.Module) -> int:
    """Trainable numbers of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


def _draw_statistics(model: nn.Module) -> None:
    """Running statistics as if the model had seen something. At their initial 0 and 1 an exporter folds normalisation
    away, and no convolution has a bias: a network that is faster than any trained one. Training overwrites them.
    """
    for module in model.modules():
        if not isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d):
            continue
        if module.running_mean is not None and module.running_var is not None:  # for the type checker
            module.running_mean.normal_(0.0, 0.1)
            module.running_var.uniform_(0.5, 1.5)


def _classes(state: State, row: Model) -> int | None:
    """How many classes a checkpoint tells apart; None: it has no head, which `difference` will say."""
    head = state.get(row.head)
    return int(head.shape[0]) if head is not None and head.dim() > 0 else None
