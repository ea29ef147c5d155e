# SPDX-License-Identifier: Apache-2.0
"""`pybench inspect`: what an ONNX file is, and what the runtimes of this machine say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from pybench import machine
from pybench.case import Case
from pybench.case.factors import FACTORS
from pybench.catalogue.runtimes import opening
from pybench.cli.options import JsonOption
from pybench.cli.show import print_json
from pybench.errors import PybenchError, UsageError
from pybench.onnx_file.batch import freed
from pybench.onnx_file.facts import FileFacts, facts_of, free_dimensions
from pybench.onnx_file.faults import read_sound
from pybench.onnx_file.graph import OnnxModel, Value
from pybench.onnx_file.inputs import (
    FreeDimensions,
    Misfit,
    batch_to_rewrite,
    fed_shapes,
    fixed_batch,
    fixed_seq_len,
    parse_sizes,
    with_sizes,
)
from pybench.words import counted

MOST_OPERATORS = 12  # that the text lists; --json has all
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="An ONNX file.")]
ShapeOption = Annotated[
    Optional[list[str]],
    typer.Option(
        "--shape",
        metavar="INPUT.DIM=N",
        help="The size of a free dimension, by its name or its position: `--shape image.height=224`. May be repeated.",
    ),
]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass at certain sizes.

    fed: input -> its sizes; None where the file cannot be fed so
    flops: floating-point operations of the pass; None where they cannot be counted
    why_not: why one of them is None
    """

    fed: Mapping[str, tuple[int, ...]] | None
    flops: int | None
    why_not: str | None

    def as_json(self) -> dict[str, Any]:
        fed = None if self.fed is None else {name: list(sizes) for name, sizes in self.fed.items()}
        return {"fed": fed, "flops": self.flops, "why_not": self.why_not}


def inspect(
    model: ModelFile,
    batch: Annotated[
        Optional[int], typer.Option(min=1, metavar="N", help="Samples in a pass [default: 1, or what the file fixes].")
    ] = None,
    shape: ShapeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is in an ONNX file, and which runtimes here take it.

    Nothing is measured. A broken file is one error, with exit code 2. For every other file the exit code is 0, even if
    no runtime here takes it.
    """
    sizes = sizes_of(shape)
    found = read_sound(model)
    facts = facts_of(model, found)
    inputs = _with_stated(facts.inputs, sizes)
    case = _case(model, inputs, batch)
    misfit = _misfit(replace(found, graph=replace(found.graph, inputs=inputs)), case)
    one_pass = _pass(facts, inputs, case) if misfit is None else Pass(None, None, _why_not(misfit))
    openings = machine.ask_runtimes(model, None if misfit is None or _is_of_sizes(misfit) else misfit.what)
    if as_json:
        print_json(
            {**facts.as_json(), "pass": one_pass.as_json(), "runtimes": [opening.as_json() for opening in openings]}
        )
        return
    rows = [*_rows(facts), *_pass_rows(one_pass, facts.not_counted)]
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        print(f"{label:<{width}}  {text}")
    print()
    for line in _opening_lines(openings):
        print(line)


def sizes_of(given: Sequence[str] | None) -> dict[str, int]:
    """`--shape` as a mapping; raises UsageError."""
    try:
        return parse_sizes(",".join(given)) if given else {}
    except ValueError as error:
        raise UsageError(f"--shape: {error}", hint="as in --shape image.height=224") from error


def _with_stated(inputs: Sequence[Value], sizes: Mapping[str, int]) -> tuple[Value, ...]:
    """The inputs with the sizes of `--shape`; one of any rank stays so. Raises UsageError."""
    try:
        pairs = zip(inputs, with_sizes(inputs, sizes), strict=True)
        return tuple(before if before.shape is None else after for before, after in pairs)
    except Misfit as misfit:
        raise UsageError(f"--shape: {misfit.what}", hint=misfit.hint) from misfit


def _case(path: Path, inputs: Sequence[Value], batch: int | None) -> Case:
    """The case that feeds the file: at the sizes that it fixes, where none are asked for."""
    wanted = batch or fixed_batch(inputs) or 1
    return Case(
        workload="infer",
        runtime=opening("onnx")[0],
        model=str(path),
        batch=wanted,
        fixed_batch=batch_to_rewrite(inputs, wanted),
        seq_len=fixed_seq_len(inputs) or FACTORS["seq_len"].default,
    )


def _misfit(model: OnnxModel, case: Case) -> Misfit | None:
    """What a plan would say of the case. Raises UsageError where `--batch` contradicts the file."""
    from pybench.plan.own_models import misfit_of

    misfit = misfit_of(model, case, of_images=False)
    if misfit is None or misfit.factor == "precision":  # of a file in another type: it is taken as it is
        return None
    if misfit.factor == "batch":
        raise UsageError(f"--batch: {misfit.what}", hint=misfit.hint) from misfit
    return misfit


def _is_of_sizes(misfit: Misfit) -> bool:
    """Whether a case of other sizes may have the file."""
    return isinstance(misfit, FreeDimensions) or misfit.factor != "model"


def _why_not(misfit: Misfit) -> str:
    if not isinstance(misfit, FreeDimensions):
        return f"{misfit.what}; {misfit.hint}"
    keys = list(dict.fromkeys(one.name or one.key for one in misfit.free))
    first = [next(one.key for one in misfit.free if key in (one.name, one.key)) for key in keys]
    are = "is free" if len(first) == 1 else "are free"
    options = " ".join(f"--shape {key}=224" for key in first)
    return f"{' and '.join(first)} {are}; state a size, as in {options}"


def _pass(facts: FileFacts, inputs: Sequence[Value], case: Case) -> Pass:
    """What one pass is. A file of another batch is counted at its own, since a run rewrites it for the batch."""
    own = case.batch if case.fixed_batch is None else case.fixed_batch
    fed = fed_shapes(freed(inputs, own), case.batch, case.seq_len)
    try:
        flops = machine.count_flops(facts.path, fed_shapes(inputs, own, case.seq_len)) * case.batch // own
    except PybenchError as error:
        message = error.message.removeprefix(f"{facts.path.absolute()}: ")
        return Pass(fed, None, message if error.hint is None else f"{message}; {error.hint}")
    if flops == 0 and facts.not_counted:
        return Pass(fed, None, f"the operations of {', '.join(facts.not_counted)} are not counted")
    return Pass(fed, flops, None)


def _rows(facts: FileFacts) -> Iterator[tuple[str, str]]:
    opsets = ", ".join(f"{domain} {version}" for domain, version in facts.opsets.items())
    by = f", made by {facts.producer}" if facts.producer else ""
    yield "file", f"{facts.path} ({_prefixed(facts.file_bytes)}B{by})"
    yield "opset", f"{opsets} (IR version {facts.ir_version})"
    for value in facts.inputs:
        free = free_dimensions(value)
        yield "input", _value_text(value) + (f"   free: {', '.join(free)}" if free else "")
    for value in facts.outputs:
        yield "output", _value_text(value)
    types = ", ".join(f"{name} {number:,}" for name, number in facts.parameters.items())
    yield "parameters", f"{sum(facts.parameters.values()):,}" + (f" ({types})" if types else "")
    shown = list(facts.operators.items())
    rest = f", and {counted(len(shown) - MOST_OPERATORS, 'other')}" if len(shown) > MOST_OPERATORS else ""
    yield "operators", ", ".join(f"{name} {number}" for name, number in shown[:MOST_OPERATORS]) + rest
    if facts.custom_operators:
        named = ", ".join(f"{name} {number}" for name, number in facts.custom_operators.items())
        yield "custom operators", f"{named} (not of ONNX: a runtime has to bring them)"
    if facts.weight_files:
        listed = [f"{name} {_prefixed(size)}B" for name, size in facts.weight_files.items()]
        yield "weights in files", ", ".join(listed)
    yield "multiplies in", f"{_multiplies_in(facts)}{', with Q/DQ nodes' if facts.is_quantised else ''}"


def _multiplies_in(facts: FileFacts) -> str:
    unseen = ", ".join(facts.not_looked_into)
    known = " and ".join(facts.multiplies_in) or ("not known" if unseen else "nothing in a floating type")
    return f"{known} (not looked into: {unseen})" if unseen else known


def _value_text(value: Value) -> str:
    shape = "of any rank" if value.shape is None else [size if size is not None else "?" for size in value.shape]
    text = shape if isinstance(shape, str) else f"[{', '.join(map(str, shape))}]"
    return f"{value.name}  {value.element or value.form} {text}"


def _pass_rows(one_pass: Pass, not_counted: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    if one_pass.fed is not None:
        yield "one pass at", ", ".join(f"{name} {list(sizes)}" for name, sizes in one_pass.fed.items())
    if one_pass.flops is not None:
        left_out = ", ".join(f"{name} {number}" for name, number in not_counted.items())
        rest = f"; not counted: {left_out}" if left_out else ""
        yield "computes", f"{_prefixed(one_pass.flops)}FLOPs in convolutions and matrix products{rest}"
    if one_pass.why_not is not None:
        yield "computes", f"not known: {one_pass.why_not}"


def _prefixed(number: int) -> str:
    return next((f"{number / scale:.3g} {prefix}" for scale, prefix in _PREFIXES if number >= scale), f"{number} ")


def _opening_lines(openings: Sequence[machine.Opening]) -> Iterator[str]:
    names = [f"{each.runtime} ({each.provider})" if each.provider else each.runtime for each in openings]
    width = max(map(len, names), default=0)
    for name, each in zip(names, openings, strict=True):
        yield f"{each.says:<9}  {name:<{width}}  {each.why}"
        if each.hint:
            yield f"{'':<9}  {'':<{width}}  -> {each.hint}"
    modules = ", ".join(opening("module"))
    yield f"{'no':<9}  {'the others':<{width}}  {modules}: for models of pybench or a library, not for ONNX files"
