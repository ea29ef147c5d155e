# SPDX-License-Identifier: Apache-2.0
"""A user's tensors in a library's model: of one file of safetensors or torch, or of the .safetensors of a folder.

Every tensor of the model has to be there in its shape. Every tensor of the file has to have its place, too: a deeper
network has all tensors of a shallower one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

from pybench.errors import InputError
from pybench.models.checkpoint import State, read_tensors, unwrapped

_ONE_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"  # what save_pretrained writes
_COUNT = ".num_batches_tracked"  # of a running mean, of use to training alone


def read_weights(path: Path) -> State:
    """The tensors of a file, or of a folder. Raises InputError where there are none, or not all values are finite."""
    if not path.is_dir():
        return unwrapped(_read_finite(path))
    state: State = {}
    for file in _files_in(path):
        found = _read_finite(file)
        twice = next((name for name in found if name in state), None)
        if twice is not None:
            raise InputError(f"{path} contains {twice} in two files", hint="give the one file that counts")
        state |= found
    return unwrapped(state)


def _read_finite(path: Path) -> State:
    state = read_tensors(path)
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{path}: {name} has NaN or infinite values", hint="take an earlier checkpoint")
    return state


def _files_in(folder: Path) -> list[Path]:
    """A folder may have the same weights in another form next to those that save_pretrained wrote."""
    if (folder / _INDEX).is_file():
        try:
            names = sorted(set(json.loads((folder / _INDEX).read_bytes())["weight_map"].values()))
            if not all(Path(name).name == name for name in names):  # a case is identified by what is in the folder
                raise ValueError("a file is outside of the folder")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{folder / _INDEX} lists no files of weights in its folder", hint="copy it again"
            ) from error
        return [folder / name for name in names]
    if (folder / _ONE_FILE).is_file():
        return [folder / _ONE_FILE]
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        hint = "give a folder that save_pretrained wrote, or a file"
        raise InputError(f"{folder} contains no .safetensors", hint=hint)
    return files


def load(module: nn.Module, state: State, file: str, model: str, unused: Iterable[str] = ()) -> None:
    """Puts the tensors into a module. `unused`: patterns of names that the module has no use for.

    Raises InputError that names the first tensor that does not fit.
    """
    own = module.state_dict()
    for name, tensor in own.items():
        if name not in state and not name.endswith(_COUNT):
            raise misfit(file, model, f"{name} is missing")
        if name in state and state[name].shape != tensor.shape:
            raise misfit(file, model, other_shape(name, state[name].shape, tensor.shape))
        if name in state and tensor.is_floating_point() and not state[name].is_floating_point():
            raise misfit(file, model, f"{name} has whole numbers in the file")
    patterns = [re.compile(pattern) for pattern in unused]
    for name in state:
        if name not in own and not any(pattern.search(name) for pattern in patterns):
            raise misfit(file, model, f"the model has no {name}")
    module.load_state_dict({name: tensor for name, tensor in state.items() if name in own}, strict=False)


def other_shape(name: str, given: Iterable[int], own: Iterable[int]) -> str:
    return f"{name} is {list(given)} in the file, and {list(own)} in the model"


def misfit(file: str, model: str, what: str, hint: str = "give the weights of this very model") -> InputError:
    return InputError(f"{file} does not fit {model}: {what}", hint=hint)
