# SPDX-License-Identifier: Apache-2.0
"""A user's tensors in a library's model: of one file of safetensors or torch, or of all .safetensors of a folder.

Every tensor of the model has to be there in its shape. Tensors that the model does not have are refused, but for those
of another head: a checkpoint of transformers contains one for its task.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from pybench.errors import InputError
from pybench.models.checkpoint import State, read_tensors


def read_weights(path: Path) -> State:
    """The tensors of a file, or of a folder. Raises InputError where there are none."""
    if not path.is_dir():
        return read_tensors(path, unwrap=path.suffix != ".safetensors")
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise InputError(f"{path} contains no .safetensors", hint="give a folder that save_pretrained wrote, or a file")
    return {name: tensor for file in files for name, tensor in read_tensors(file, unwrap=False).items()}


def load(module: nn.Module, state: State, path: Path, model: str, prefix: str = "") -> None:
    """Puts the tensors into a module. `prefix`: what the library may write before names, or leave out.

    Raises InputError that names the first tensor that does not fit.
    """
    own = module.state_dict()
    fitted = _renamed(state, own, f"{prefix}.") if prefix else state
    shared = _shared(own)
    for name, tensor in own.items():
        if name not in fitted and not any(other in fitted for other in shared[tensor.data_ptr()]):
            raise _misfit(path, model, f"{name} is missing")
        if name in fitted and fitted[name].shape != tensor.shape:
            has = f"{list(fitted[name].shape)} in the file, and {list(tensor.shape)} in the model"
            raise _misfit(path, model, f"{name} is {has}")
    unknown = [name for name in fitted if name not in own]
    if unknown and not prefix:
        raise _misfit(path, model, f"the model has no {unknown[0]}")
    module.load_state_dict({name: tensor for name, tensor in fitted.items() if name in own}, strict=False)


def _renamed(state: State, own: Mapping[str, Tensor], prefix: str) -> State:
    """The tensors under the model's names: a model with a head writes the library's prefix, one without leaves it."""
    for named in (
        state,
        {name.removeprefix(prefix): tensor for name, tensor in state.items()},
        {f"{prefix}{name}": tensor for name, tensor in state.items()},
    ):
        if any(name in named for name in own):
            return named
    return state


def _shared(own: Mapping[str, Tensor]) -> dict[int, list[str]]:
    """Address -> names of the tensors there: tied weights have several, and a file contains one of them."""
    found: dict[int, list[str]] = {}
    for name, tensor in own.items():
        found.setdefault(tensor.data_ptr(), []).append(name)
    return found


def _misfit(path: Path, model: str, what: str) -> InputError:
    return InputError(f"{path.name} does not fit {model}: {what}", hint="give the weights of this very model")
