# SPDX-License-Identifier: Apache-2.0
"""A user's tensors in a library's model: of one file of safetensors or torch, or of the .safetensors of a folder.

Every tensor of the model has to be there in its shape, and every tensor of the file has to have its place: a deeper
network has all tensors of a shallower one. Left out are what does not count for the outputs, and the head of another
task, which checkpoints of transformers contain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from torch import Tensor, nn

from pybench.errors import InputError
from pybench.models.checkpoint import State, read_tensors, unwrapped

_ONE_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"  # what save_pretrained writes
_COUNT = ".num_batches_tracked"  # of a running mean, of use to training alone
_POOLER = re.compile(r"(^|\.)pooler\.")  # a head for sentences inside the part that all tasks share
_OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}  # of normalisation, in checkpoints that began in TensorFlow


def read_weights(path: Path) -> State:
    """The tensors of a file, or of a folder. Raises InputError where there are none."""
    if not path.is_dir():
        return unwrapped(read_tensors(path))
    state: State = {}
    for file in _files_in(path):
        found = read_tensors(file)
        twice = next((name for name in found if name in state), None)
        if twice is not None:
            raise InputError(f"{path} contains {twice} in two files", hint="give the one file that counts")
        state |= found
    return unwrapped(state)


def _files_in(folder: Path) -> list[Path]:
    """A folder may have the same weights in another form next to those that save_pretrained wrote."""
    if (folder / _INDEX).is_file():
        try:
            names = sorted(set(json.loads((folder / _INDEX).read_bytes())["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{folder / _INDEX} lists no files of weights", hint="copy it again") from error
        return [folder / name for name in names]
    if (folder / _ONE_FILE).is_file():
        return [folder / _ONE_FILE]
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        hint = "give a folder that save_pretrained wrote, or a file"
        raise InputError(f"{folder} contains no .safetensors", hint=hint)
    return files


def load(module: nn.Module, state: State, path: Path, model: str, prefix: str = "", unused: Iterable[str] = ()) -> None:
    """Puts the tensors into a module. `prefix`: what the library may write before names, or leave out; `unused`:
    patterns of names that the module has no use for.

    Raises InputError that names the first tensor that does not fit.
    """
    own = module.state_dict()
    start = f"{prefix}." if prefix else ""
    fitted, heads = _renamed(state, own, start)
    shared = _shared(own)
    hint = "give the weights of this very model"
    if prefix:
        hint += ", or give the model as the folder with their config.json"
    for name, tensor in own.items():
        if name not in fitted and not _may_miss(name, own, start) and not shared[tensor.data_ptr()] & fitted.keys():
            raise InputError(f"{path.name} does not fit {model}: {name} is missing", hint=hint)
        if name in fitted and fitted[name].shape != tensor.shape:
            has = f"{list(fitted[name].shape)} in the file, and {list(tensor.shape)} in the model"
            raise InputError(f"{path.name} does not fit {model}: {name} is {has}", hint=hint)
    buffers = {name for name, _ in module.named_buffers()}  # some that are computed were stored by earlier versions
    patterns = [re.compile(pattern) for pattern in unused]
    for name in fitted:
        known = name in own or name in buffers or any(pattern.search(name) for pattern in patterns)
        if not known and name not in heads and not (prefix and _POOLER.search(name)):
            raise InputError(f"{path.name} does not fit {model}: the model has no {name}", hint=hint)
    module.load_state_dict({name: tensor for name, tensor in fitted.items() if name in own}, strict=False)


def _may_miss(name: str, own: Mapping[str, Tensor], start: str) -> bool:
    """Whether a tensor is of no use here: a model without a head gives what comes before its pooler."""
    is_body = bool(start) and not any(each.startswith(start) for each in own)
    return name.endswith(_COUNT) or (is_body and _POOLER.match(name) is not None)


def _renamed(state: State, own: Mapping[str, Tensor], start: str) -> tuple[State, set[str]]:
    """The tensors under the model's names, and those of heads: in the file, they are outside of what all tasks share.

    A library writes `start` before the names of a body that has a head, and leaves it out without one.
    """
    current = {name if name in own else _today(name): tensor for name, tensor in state.items()}
    if not start:
        return current, set()
    with_start = {name for name in current if name.startswith(start)}
    if any(name.startswith(start) for name in own):
        if with_start:
            return current, current.keys() - with_start
        return {name if name in own else f"{start}{name}": tensor for name, tensor in current.items()}, set()
    bare = {name.removeprefix(start): tensor for name, tensor in current.items()}
    return bare, current.keys() - with_start if with_start else set()


def _today(name: str) -> str:
    """The name that the library gives a tensor now."""
    old = next((end for end in _OLD_NAMES if name.endswith(f"LayerNorm{end}")), "")
    return name.removesuffix(old) + _OLD_NAMES[old] if old else name


def _shared(own: Mapping[str, Tensor]) -> dict[int, set[str]]:
    """Address -> names of the tensors there: tied weights have several, and a file contains one of them."""
    found: dict[int, set[str]] = {}
    for name, tensor in own.items():
        found.setdefault(tensor.data_ptr(), set()).add(name)
    return found
