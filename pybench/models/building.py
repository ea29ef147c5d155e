# SPDX-License-Identifier: Apache-2.0
"""A built-in model by name: seeded random weights, or those of a checkpoint.

Does not decide the precision or the device: runtimes do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from pybench.errors import InputError, UsageError
from pybench.models.catalogue import BUILT_IN, VOCABULARY
from pybench.models.checkpoint import State, difference, read_state
from pybench.models.digits_cnn import DigitsCnn
from pybench.models.distilbert import DistilBert
from pybench.models.mlp import Mlp
from pybench.models.mobilenet import MobileNetV1, MobileNetV2
from pybench.models.resnet50 import ResNet50
from pybench.models.tinylm import SIZES, TinyLm
from pybench.models.unet3d import Unet3d
from pybench.models.vgg import Vgg16, Vgg16Cifar10

_CLASSIFIERS: dict[str, Callable[[int], nn.Module]] = {
    "resnet50": ResNet50,
    "vgg16": Vgg16,
    "vgg16-cifar10": Vgg16Cifar10,
    "mobilenet-v1": MobileNetV1,
    "mobilenet-v2": MobileNetV2,
    "digits-cnn": DigitsCnn,
    "distilbert": DistilBert,
    "unet3d": Unet3d,
    "mlp": Mlp,
}


def build(
    name: str,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    vocabulary: int = VOCABULARY,
    classes: int | None = None,
) -> nn.Module:
    """The model in evaluation mode, FP32, on the CPU. The global random state is left as it was.

    `vocabulary`: ids that a language model embeds; `classes`: of a classifier, None: as published. A checkpoint decides
    the number of classes by itself. Raises UsageError for a name that is not built in, InputError for a checkpoint that
    is not one or does not fit.
    """
    if name not in BUILT_IN:
        raise UsageError(f"`{name}` is not a built-in model", hint=f"built in: {', '.join(BUILT_IN)}")
    state = None if checkpoint is None else read_state(checkpoint, name)
    if state is not None:
        classes = _classes(state, name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _new(name, vocabulary, classes)
        _draw_statistics(model)
    if state is not None:
        try:
            model.load_state_dict(state)
        except RuntimeError as error:
            raise InputError(f"{checkpoint} does not fit {name}: {difference(model, state)}") from error
    return model.eval()


def parameter_count(model: nn.Module) -> int:
    """Trainable numbers of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


def _new(name: str, vocabulary: int, classes: int | None) -> nn.Module:
    if name in SIZES:
        return TinyLm(SIZES[name], vocabulary)
    return _CLASSIFIERS[name](classes or BUILT_IN[name].outputs)


def _draw_statistics(model: nn.Module) -> None:
    """Running statistics as if the model had seen something. At their initial 0 and 1 an exporter folds normalisation
    away, and no convolution has a bias: a network that is faster than any trained one. Training overwrites them.
    """
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d):
            if module.running_mean is not None and module.running_var is not None:
                module.running_mean.normal_(0.0, 0.1)
                module.running_var.uniform_(0.5, 1.5)


def _classes(state: State, name: str) -> int | None:
    """How many classes a checkpoint tells apart; None: it has no head, which `difference` will say."""
    head = state.get(BUILT_IN[name].head)
    return int(head.shape[0]) if head is not None and head.dim() > 0 else None
