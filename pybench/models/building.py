# SPDX-License-Identifier: Apache-2.0
"""A built-in model by name: seeded random weights, or those of a checkpoint.

Reads checkpoints only as plain tensors (`weights_only`), never as pickled objects. Does not decide the precision or the
device: runtimes do.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import nn

from pybench.errors import InputError, UsageError
from pybench.models.catalogue import BUILT_IN, VOCABULARY
from pybench.models.digits_cnn import DigitsCnn
from pybench.models.resnet50 import ResNet50
from pybench.models.tinylm import SIZES, TinyLm


def build(name: str, *, seed: int = 0, checkpoint: Path | None = None, vocabulary: int = VOCABULARY) -> nn.Module:
    """The model in evaluation mode, FP32, on the CPU. The global random state is left as it was.

    `vocabulary`: ids that a language model embeds. Raises UsageError for a name that is not built in, InputError for a
    checkpoint that is not one or does not fit.
    """
    if name not in BUILT_IN:
        raise UsageError(f"`{name}` is not a built-in model", hint=f"built in: {', '.join(BUILT_IN)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _new(name, vocabulary)
    if checkpoint is not None:
        _load(model, name, checkpoint)
    return model.eval()


def parameter_count(model: nn.Module) -> int:
    """Trainable numbers of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


def _new(name: str, vocabulary: int) -> nn.Module:
    if name == "resnet50":
        return ResNet50()
    if name == "digits-cnn":
        return DigitsCnn()
    return TinyLm(SIZES[name], vocabulary)


def _load(model: nn.Module, name: str, checkpoint: Path) -> None:
    try:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, UnpicklingError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{checkpoint} is not a readable torch checkpoint ({_first_line(error)})",
            hint="save it with torch.save(model.state_dict(), path)",
        ) from error
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]  # the usual wrapping beside an optimiser's state
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise InputError(f"{checkpoint} holds no state_dict", hint="save it with torch.save(model.state_dict(), path)")
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"{checkpoint} does not fit {name}: {_difference(model, state)}") from error


def _difference(model: nn.Module, state: dict[str, torch.Tensor]) -> str:
    own = model.state_dict()
    missing, unknown = sorted(set(own) - set(state)), sorted(set(state) - set(own))
    if missing or unknown:
        return "; ".join(
            f"{len(names)} {word} (first: {names[0]})"
            for word, names in (("missing", missing), ("unknown", unknown))
            if names
        )
    name = next(name for name, value in own.items() if value.shape != state[name].shape)
    return f"{name} is {list(state[name].shape)}, not {list(own[name].shape)}"


def _first_line(error: Exception) -> str:
    if isinstance(error, UnpicklingError):
        return "it holds other things than tensors"  # torch's own text goes on to advise running the file's code
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
