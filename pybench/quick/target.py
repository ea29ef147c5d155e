# SPDX-License-Identifier: Apache-2.0
"""The model that is asked about: a built-in name, a library's model, or an ONNX file with a size for each of its free
dimensions."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pybench.case.factors import FACTORS, is_built_in
from pybench.catalogue.models import MODELS
from pybench.catalogue.zoo import CONFIG, as_file, is_named
from pybench.errors import InputError, UsageError
from pybench.onnx_file.facts import FileFacts, facts_of
from pybench.onnx_file.faults import read_sound
from pybench.onnx_file.graph import OnnxModel, Value
from pybench.onnx_file.inputs import Misfit, factor_of, fed_shapes, fixed_batch, fixed_seq_len, with_sizes
from pybench.plan.fed_inputs import input_of
from pybench.plan.values import nearest
from pybench.quick.given import GivenArrays, read_given

# Sizes that a free dimension gets where nobody states one.
IMAGE_SIDE = 224
CHANNELS = 3
SEQUENCE = 128
LONGEST_NAME = 40  # of the model, in the campaign's


@dataclass(frozen=True, slots=True)
class Target:
    """What is measured.

    model: as the plan names it: a built-in name, or a path relative to the plan's folder
    file: the ONNX file; None: a built-in model, or a library's
    config: the config.json by which a library builds the model; None: it is named, or no library's
    content, facts: of the file
    sizes: free dimensions but the batch and the sequence of ids, `INPUT.DIM` -> size
    guessed: those of `sizes` that nobody stated
    seq_len: tokens of a sample
    only_batch: the one batch that the file takes as it is; None: any
    given: arrays that are fed; None: random ones
    """

    model: str
    file: Path | None = None
    content: OnnxModel | None = None
    facts: FileFacts | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    guessed: tuple[str, ...] = ()
    seq_len: int = FACTORS["seq_len"].default
    only_batch: int | None = None
    given: GivenArrays | None = None
    config: Path | None = None

    @property
    def is_of_library(self) -> bool:
        return self.config is not None or (self.file is None and is_named(self.model))

    @property
    def first_batch(self) -> int:
        """The batch that is looked at first: the file's or the arrays' own, else one sample."""
        return self.only_batch or (self.given.batch if self.given is not None else 1)

    @property
    def name(self) -> str:
        """A word for the campaign's name."""
        stem = self.model if self.file is None else self.file.stem
        stem = stem if self.config is None else self.config.absolute().parent.name
        return re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:LONGEST_NAME].strip("-._") or "model"

    def fed(self, batch: int) -> dict[str, tuple[int, ...]]:
        """Input -> sizes of a batch, of a file. Raises Misfit."""
        inputs = () if self.facts is None else self.facts.inputs
        return fed_shapes(inputs, batch, self.seq_len, self.sizes)


def find_target(given: str, plan_folder: Path, stated: Mapping[str, int], arrays: Path | None = None) -> Target:
    """The target of a name or a path. `arrays`: an .npz that is fed. Raises InputError for a file that cannot be
    measured, UsageError for a size that the model does not leave free."""
    if is_built_in("model", given):
        if stated:
            raise UsageError(f"--shape: {given} is a built-in model, whose sizes are fixed", hint="leave --shape out")
        return _built_in(given, plan_folder, arrays)
    path = Path(given)
    if path.name != CONFIG and (path / CONFIG).is_file():
        path /= CONFIG
    if path.name == CONFIG and path.is_file():
        return _of_library(_as_in_plan(path, plan_folder), stated, arrays, config=path)
    if is_named(given) and not path.exists():
        return _of_library(given, stated, arrays)
    if not path.exists():
        known = FACTORS["model"].choices
        hint = nearest(given, known) or f"give an ONNX file, or a built-in model: {', '.join(known)}"
        raise InputError(f"{given}: no such file and no built-in model", hint=hint)
    content = read_sound(path)
    facts = facts_of(path, content)
    fed = None if arrays is None else read_given(arrays, plan_folder, facts.inputs)
    try:
        sizes, seq_len = _split(facts.inputs, stated)
    except Misfit as misfit:
        raise UsageError(f"--shape: {misfit.what}", hint=misfit.hint) from misfit
    if fed is not None:
        sizes, seq_len = {**fed.sizes, **sizes}, fed.seq_len or seq_len
    guessed = {key: size for key, size in _guesses(facts.inputs).items() if not _is_stated(facts.inputs, key, sizes)}
    target = Target(
        model=_as_in_plan(path, plan_folder),
        file=path,
        content=content,
        facts=facts,
        sizes={**guessed, **sizes},
        guessed=tuple(guessed),
        seq_len=seq_len,
        only_batch=fixed_batch(facts.inputs),
        given=fed,
    )
    try:
        target.fed(target.first_batch)
    except Misfit as misfit:
        if misfit.factor == "shapes":
            raise UsageError(f"--shape: {misfit.what}", hint=misfit.hint) from misfit
        raise InputError(f"{path}: {misfit.what}", hint=misfit.hint) from misfit
    return target


def _as_in_plan(path: Path, plan_folder: Path) -> str:
    return as_file(os.path.relpath(path.absolute(), plan_folder.absolute()))


def _of_library(model: str, stated: Mapping[str, int], arrays: Path | None, config: Path | None = None) -> Target:
    """What a library says of its inputs is asked later, as its import takes seconds."""
    for option, is_given in (("--shape", bool(stated)), ("--input", arrays is not None)):
        if is_given:
            what = f"{option}: {model} is a model of a library, which quick feeds by itself"
            raise UsageError(what, hint=f"leave it out, or write a plan with `model: {model}`")
    return Target(model, config=config)


def _built_in(name: str, plan_folder: Path, arrays: Path | None) -> Target:
    if arrays is None:
        return Target(name)
    fed = read_given(arrays, plan_folder, [input_of(MODELS[name])])
    return Target(name, seq_len=fed.seq_len or int(FACTORS["seq_len"].default), given=fed)


def _split(inputs: Sequence[Value], stated: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Stated sizes without the sequence of ids, which is a factor of its own, and that one. Raises Misfit for a size
    that the model does not leave free."""
    with_sizes(inputs, stated)
    seq_len = fixed_seq_len(inputs) or int(FACTORS["seq_len"].default)
    sizes: dict[str, int] = {}
    for key, size in stated.items():
        factor = factor_of(inputs, key)
        if factor == "batch":
            raise UsageError(f"--shape: {key} is the batch", hint=f"give --batch {size}")
        if factor == "seq_len":
            seq_len = size
        else:
            sizes[key] = size
    return sizes, seq_len


def _guesses(inputs: Sequence[Value]) -> dict[str, int]:
    """A size for each free dimension that is neither the batch nor the sequence of ids; a name gets one, once."""
    found: dict[str, int] = {}
    names: set[str] = set()
    for value in inputs:
        for position, size in enumerate(value.shape or ()):
            key = f"{value.name}.{size or position}"
            if isinstance(size, int) or size in names or factor_of(inputs, key) is not None:
                continue
            names |= {size} if size else set()
            found[key] = _usual(value, position)
    return found


def _usual(value: Value, position: int) -> int:
    is_image = len(value.shape or ()) == 4 and value.element.startswith("float")
    if not is_image:
        return SEQUENCE
    return CHANNELS if position == 1 else IMAGE_SIDE


def _is_stated(inputs: Sequence[Value], key: str, sizes: Mapping[str, int]) -> bool:
    """Whether sizes have a dimension by its name, at any input, or by its position."""
    if key in sizes:
        return True
    name, _, dimension = key.rpartition(".")
    shape = next(value.shape or () for value in inputs if value.name == name)
    same = [value for value in inputs if dimension in (value.shape or ())]
    positions = [f"{value.name}.{(value.shape or ()).index(dimension)}" for value in same]
    by_name = [f"{value.name}.{dimension}" for value in same]
    own = [f"{name}.{place}" for place, size in enumerate(shape) if dimension in (size, str(place))]
    return any(each in sizes for each in (*positions, *by_name, *own))
