# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of others as plain tensors under the names that the built-in models use.

Reads torch's files as tensors alone (`weights_only`), never as pickled objects, and .safetensors with its own package.
Names are those of torchvision (resnet50, vgg16, mobilenet-v2), timm (mobilenet-v1) and transformers (distilbert). So
little is left to translate: wrappings of a trainer, and the parts that a model has in addition to the one used here.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn

from pybench.catalogue.causes import Cause
from pybench.catalogue.code import named_code
from pybench.catalogue.models import Model
from pybench.errors import InputError, UnsupportedError

State = dict[str, Tensor]

_WRAPPINGS = ("state_dict", "model_state_dict", "model")  # keys beside an optimiser's state
_PREFIXES = ("module.", "_orig_mod.", "model.")  # of DataParallel, of torch.compile, of a Lightning module
_LISTED = 5  # names in a message


def read_state(path: Path, model: Model, *, shapes_alone: bool = False) -> State:
    """The tensors of a file under this model's names. Raises InputError for a file that holds no tensors.

    `shapes_alone`: without their values, on the device `meta`; of a .safetensors only the header is read then.
    """
    state = unwrapped(read_shapes(path) if shapes_alone else read_tensors(path))
    if model.translate is not None:
        state = named_code(model.translate)(state)
    return state


def read_tensors(path: Path) -> State:
    """The tensors of a file under the names that they have there."""
    return _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)


def read_shapes(path: Path) -> State:
    """The same tensors without values."""
    return _read_safetensors_header(path) if path.suffix == ".safetensors" else _read_torch(path, "meta")


def unwrapped(state: State) -> State:
    """Without what trainers and compilers write before the names of all tensors."""
    while prefix := next((each for each in _PREFIXES if all(name.startswith(each) for name in state)), ""):
        state = {name.removeprefix(prefix): value for name, value in state.items()}
    return state


def difference(model: nn.Module, state: State) -> str:
    """What keeps tensors from fitting a model: names that are missing or unknown, and shapes that differ."""
    own = model.state_dict()
    missing, unknown = sorted(set(own) - set(state)), sorted(set(state) - set(own))
    shapes = [
        f"{name} is {list(state[name].shape)}, not {list(value.shape)}"
        for name, value in own.items()
        if name in state and value.shape != state[name].shape
    ]
    parts = [_listed(names, word) for word, names in (("missing", missing), ("unknown", unknown)) if names]
    return "; ".join([*parts, *shapes[:_LISTED]])


def _listed(names: list[str], word: str) -> str:
    rest = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{len(names)} {word} ({', '.join(names[:_LISTED])}{rest})"


def _read_torch(path: Path, device: str = "cpu") -> State:
    try:
        state: Any = torch.load(path, map_location=device, weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, UnpicklingError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} is not a readable torch checkpoint ({_first_line(error)})",
            hint="save it with torch.save(model.state_dict(), path)",
        ) from error
    for key in _WRAPPINGS:
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
            break
    if not isinstance(state, dict) or not state or not all(isinstance(value, Tensor) for value in state.values()):
        raise InputError(f"{path} contains no state_dict", hint="save it with torch.save(model.state_dict(), path)")
    return dict(state)  # without torch's note of versions, under which a count of batches may not be missing


def _read_safetensors(path: Path) -> State:
    with _reading_safetensors(path):
        from safetensors.torch import load_file

        state: State = load_file(path)
    return _not_empty(state, path)


def _read_safetensors_header(path: Path) -> State:
    with _reading_safetensors(path):
        from safetensors import safe_open

        with safe_open(path, "pt") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118, it is no mapping
    return _not_empty({name: torch.empty(shape, device="meta") for name, shape in shapes.items()}, path)


@contextmanager
def _reading_safetensors(path: Path) -> Iterator[None]:
    """Says what is wrong with the file, or that the package is missing."""
    try:
        from safetensors import SafetensorError
    except ImportError as error:
        raise UnsupportedError(
            f"{path} needs the package safetensors",
            code=Cause.NO_SAFETENSORS,
            hint="install pybench-campaign[safetensors]",
        ) from error
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{path} is not a readable safetensors file ({_first_line(error)})",
            hint="save the weights again with safetensors",
        ) from error


def _not_empty(state: State, path: Path) -> State:
    if not state:
        raise InputError(f"{path} contains no tensors", hint="save the weights again with safetensors")
    return state


def _first_line(error: Exception) -> str:
    if isinstance(error, UnpicklingError):
        return "it contains values that are not tensors"  # torch's own text goes on to advise running the file's code
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
