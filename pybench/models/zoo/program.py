# SPDX-License-Identifier: Apache-2.0
"""A library's module as a torch program (`torch.export`) in a file, which runs without the library, and back.

The program has the module's operators and weights in the type that it was exported in, with batch and sequence free.
Its operators run one after the other, as those of the module do; the module's own Python between them is gone.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pybench.errors import InputError, PybenchError
from pybench.models.zoo.build import Built
from pybench.models.zoo.decoder_program import DECODER, STEP_FILE, joined, set_weight
from pybench.models.zoo.feeds import LONGEST, ModelInput, ModelInputs

EXAMPLE_SAMPLES, EXAMPLE_TOKENS = 2, 16
_EXTRA = "extra"  # the folder inside a program's file that has what its writer adds


class TorchProgram(nn.Module):
    """A program that was read from a file: its weights and its call. It is in evaluation mode for good."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *inputs: Tensor) -> Any:
        return self.inner(*inputs)

    def train(self, mode: bool = True) -> TorchProgram:
        return self


def example(feeds: ModelInputs) -> tuple[Tensor, ...]:
    """Inputs that a module can be traced with."""
    return tuple(_example(feed) for feed in feeds.inputs)


def free_sizes(feeds: ModelInputs) -> tuple[dict[int, Any], ...]:
    """Input -> dimension -> what torch may take for it: one name for each batch, and one for each sequence."""
    batch = torch.export.Dim("batch", min=1, max=LONGEST)
    tokens = torch.export.Dim("tokens", min=2, max=feeds.longest or LONGEST)
    named = (batch, tokens)
    return tuple(
        {axis: named[min(axis, 1)] for axis, size in enumerate(feed.shape) if size is None} for feed in feeds.inputs
    )


def write_program(built: Built, dtype: torch.dtype, path: Path, model: str, facts: Mapping[str, str]) -> None:
    """Writes the module in this type. `facts`: short texts that the file carries.

    Raises InputError where torch cannot export it.
    """
    module = built.module.to(dtype)
    inputs = tuple(tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in example(built.feeds))
    with warnings.catch_warnings(), refused_export(model):
        warnings.simplefilter("ignore")  # deprecations inside torch's own exporter
        program = torch.export.export(module, inputs, dynamic_shapes=free_sizes(built.feeds), strict=False)
        torch.export.save(program, path, extra_files=dict(facts))


@contextmanager
def refused_export(model: str) -> Iterator[None]:
    """Whatever torch's exporter raises, as an InputError that names the model."""
    try:
        yield
    except (MemoryError, PybenchError):
        raise
    except Exception as error:
        what = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason is given")
        raise InputError(
            f"{model} cannot be exported by torch {torch.__version__}: {type(error).__name__}: {what[:300]}",
            hint="take another model, or export it to ONNX by its library and name that file",
        ) from error


def read_program(path: Path, kind: str) -> nn.Module:
    """The program as a module on a device (`cpu`, `cuda`): a decoder's with that of its steps."""
    said = read_facts(path).get(DECODER)
    if said is not None:
        return joined(_module(path, kind), _module(path.with_name(STEP_FILE), kind), said)
    return TorchProgram(_module(path, kind))


def _module(path: Path, kind: str) -> nn.Module:
    """What two layers share they share again, so that it is in memory once, on any device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.load(path)
        tied = _tied(program.named_parameters())
        if kind != "cpu":
            from torch.export.passes import move_to_device_pass

            program = move_to_device_pass(program, kind)
        module = program.module()
    for name, first in tied.items():
        set_weight(module, name, module.get_parameter(first))
    return module


def _tied(weights: Iterable[tuple[str, nn.Parameter]]) -> dict[str, str]:
    """Name -> an earlier name of the same memory."""
    firsts: dict[tuple[Any, ...], str] = {}
    tied = {}
    for name, weight in weights:
        first = firsts.setdefault((weight.data_ptr(), weight.shape, weight.stride()), name)
        if first != name and weight.numel():
            tied[name] = first
    return tied


def read_facts(path: Path) -> dict[str, str]:
    """The short texts that a program's file carries. Nothing else of the file is read."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if f"/{_EXTRA}/" in name]
        return {name.rpartition("/")[2]: archive.read(name).decode() for name in names}


def _example(feed: ModelInput) -> Tensor:
    sizes = [EXAMPLE_SAMPLES, EXAMPLE_TOKENS]
    shape = [sizes[min(axis, 1)] if size is None else size for axis, size in enumerate(feed.shape)]
    return torch.zeros(shape) if feed.below is None else torch.full(shape, feed.least, dtype=torch.int64)
