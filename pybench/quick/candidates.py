# SPDX-License-Identifier: Apache-2.0
"""What a model is measured in here: runtimes and precisions that this machine has, and how long a run has to be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pybench import machine as machines
from pybench.case import Case
from pybench.case.factors import NORMAL
from pybench.catalogue.precisions import quantised_type
from pybench.catalogue.runtimes import RUNTIMES, Backend, Runtime, opening
from pybench.errors import InputError, PybenchError, UsageError
from pybench.machine import Machine
from pybench.machine.estimate import CPU_RATE
from pybench.machine.opening import SHA_OF_NOTHING
from pybench.onnx_file.inputs import batch_to_rewrite, sizes_text
from pybench.plan.fed_inputs import misfit_of_inputs
from pybench.plan.own_models import misfit_of
from pybench.quick.target import Target

BASELINE = "fp32"  # what the others are compared with
PRECISIONS = (BASELINE, "fp16", "bf16", "int8")
MIXED = {"int8": "int8+fp16"}  # what a runtime with both is better at: what is not rounded stays in FP16
BATCHES = (1, 8)
LARGER = 8  # times the batch that a file has fixed
WINDOW_S = 0.4  # of timed iterations: a run of a fast model is then mostly its own start
GPU_ITERATIONS, GPU_WARMUP, GPU_ENERGY_WINDOW_S = 300, 30, 0.5
MOST_ITERATIONS, FEWEST_ITERATIONS = 500, 2
MOST_SAMPLES, FEWEST_SAMPLES, CALIBRATION_S = 32, 4, 5.0


@dataclass(frozen=True, slots=True)
class CandidateEntry:
    """Cases of one runtime and batch: an entry of the plan."""

    runtime: str
    provider: str | None
    precisions: tuple[str, ...]
    batch: int
    iterations: int
    warmup_iterations: int
    on_gpu: bool
    calibration_images: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not measured.

    called: runtime and precision, or the runtime alone
    what: why it is not measured
    hint: what to do about that
    """

    called: str
    what: str
    hint: str | None = None

    @property
    def why(self) -> str:
        return self.what if self.hint is None else f"{self.what}; {self.hint}"


@dataclass(frozen=True, slots=True)
class Candidates:
    """What could be measured here.

    machine: with the facts that the candidates need
    entries: what is measured
    left_out: what is not measured
    first_look: one pass, before any run
    """

    machine: Machine
    entries: tuple[CandidateEntry, ...]
    left_out: tuple[LeftOut, ...]
    first_look: RoughTiming | None = None


@dataclass(frozen=True, slots=True)
class RoughTiming:
    """Seconds of one pass at the smallest batch, roughly. `of`: what was run, in words."""

    seconds: float
    of: str


@dataclass(frozen=True, slots=True)
class Restriction:
    """What the user restricts the candidates to; empty: everything that is here."""

    runtimes: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()


def find_candidates(target: Target, only: Restriction) -> Candidates:
    """Everything that can be run here. Raises InputError, with the reasons, where nothing can, and UsageError for a
    wish that nobody has."""
    _check(only)
    _check_given(target, only)
    _check_batches(target, only)
    asked = list(_cases(target, only))
    here = Machine.ask(asked)
    left_out: list[LeftOut] = []
    found: list[Case] = []
    for case in asked:
        refusal = here.unsupported(case)
        misfit = None if target.content is None else misfit_of(target.content, case, of_images=False)
        if refusal is not None:
            # What a machine without a GPU lacks comes first: it is the shortest way to a number.
            place = len(left_out) if _needs_gpu(case) else 0
            left_out.insert(place, LeftOut(_called(case), refusal.message, refusal.hint))
        elif misfit is not None:
            left_out.insert(0, LeftOut(_called(case), misfit.what, misfit.hint))
        else:
            found.append(case)
    if not found:
        raise _nothing(target, left_out)
    found = found if only.precisions else _in_own_type(target, found)
    if target.is_of_library:
        look: RoughTiming | None = _look_at_library(target, found[0])
    elif target.file is None:
        look = _look_at_module(target, here)
    else:
        look, found = _look_at_file(target.file, target, found, left_out)
    here = here.asked_too(_rewritten(target, only, found))
    batches = _batches(target, only, found, here)
    entries = tuple(_entries(found, here, batches, _seconds(target, look)))
    return Candidates(here, entries, tuple(dict.fromkeys(_shortened(left_out, found))), look)


def is_baseline(case: Case) -> bool:
    """Whether a case is what others are compared with: its precision costs no accuracy."""
    return case.precision == BASELINE


def _needs_gpu(case: Case) -> bool:
    backend = None if case.runtime_row is None else case.runtime_row.backend(case.provider, False)
    return backend is None or backend.needs_gpu


def _check(only: Restriction) -> None:
    for option, given, known in (
        ("--runtime", only.runtimes, tuple(RUNTIMES)),
        ("--precision", only.precisions, _all_precisions()),
    ):
        unknown = next((name for name in given if name not in known), None)
        if unknown is not None:
            raise UsageError(f"{option} {unknown}: there is none of that name", hint=f"one of {', '.join(known)}")


def _check_given(target: Target, only: Restriction) -> None:
    """Whether the arrays fit the model, and the batch that is asked for is theirs."""
    given = target.given
    if given is None:
        return
    other = next((batch for batch in only.batches if batch != given.batch), None)
    if other is not None:
        raise UsageError(f"--batch {other}: {given.file} has {given.batch} samples", hint="leave --batch out")
    case = next(_cases(target, only))
    misfit = None if target.content is None else misfit_of(target.content, case, of_images=False)
    if misfit is not None and misfit.factor == "precision":  # of this candidate alone
        misfit = None
    misfit = misfit or misfit_of_inputs(case, target.content, given.file)
    if misfit is not None:
        raise InputError(f"--input {given.file}: {misfit.what}", hint=misfit.hint)


def _check_batches(target: Target, only: Restriction) -> None:
    """Whether a file whose batch is fixed can have every batch that is asked for."""
    if target.content is None:
        return
    case = next(_cases(target, only))
    for one in _rewritten(target, only, [case]) if only.batches else ():
        misfit = misfit_of(target.content, one, of_images=False)
        if misfit is not None and misfit.factor == "batch":
            hint = f"give --batch {target.only_batch}, or export the model with its batch free"
            raise UsageError(f"--batch {one.batch}: {target.model}: {misfit.what}", hint=hint)


def _all_precisions() -> tuple[str, ...]:
    of_rows = [row.precisions for row in RUNTIMES.values()]
    of_backends = [backend.precisions for row in RUNTIMES.values() for backend in row.backends]
    return tuple(dict.fromkeys(name for executes in (*of_rows, *of_backends) for name in executes))


def _cases(target: Target, only: Restriction) -> Iterator[Case]:
    is_file = target.file is not None or target.config is not None
    named = {"inputs": target.given is not None, "model": is_file}
    sources = tuple((name, SHA_OF_NOTHING) for name, is_source in named.items() if is_source)  # asked about, not run
    inputs = () if target.facts is None else target.facts.inputs
    batch = (only.batches or (target.first_batch if target.given is None else target.given.batch,))[0]
    for name in only.runtimes or opening("onnx"):
        row = RUNTIMES[name]
        backends: tuple[Backend | None, ...] = row.backends or (None,)
        for backend in backends:
            for precision in _precisions(row, backend, target, only):
                yield Case(
                    workload="infer",
                    model=target.model,
                    runtime=name,
                    provider=None if backend is None else backend.name,
                    precision=precision,
                    batch=batch,
                    seq_len=target.seq_len,
                    shapes=sizes_text(target.sizes) or None,
                    fixed_batch=batch_to_rewrite(inputs, batch),
                    inputs=NORMAL if target.given is None else target.given.named,
                    sources=sources,
                )


def _precisions(row: Runtime, backend: Backend | None, target: Target, only: Restriction) -> tuple[str, ...]:
    """Those that are asked for, else those of `PRECISIONS` that the runtime has, in their better form.

    A file that is quantised already is measured as it is.
    """
    has = row.precisions if backend is None else backend.precisions
    if only.precisions:
        return only.precisions
    better = [MIXED[name] if MIXED.get(name) in has else name for name in PRECISIONS]
    usual = tuple(name for name in better if name in has)
    if target.facts is None or not target.facts.is_quantised:
        return usual
    return tuple(name for name in usual if quantised_type(name) is not None)


def _in_own_type(target: Target, cases: Sequence[Case]) -> list[Case]:
    """Without those in FP32 of a file in another type, where the same runtime has the file's own type."""
    own = () if target.facts is None else target.facts.multiplies_in
    if own == (BASELINE,):
        return list(cases)
    engines = {_engine(case) for case in cases if own == (case.precision,)}
    return [case for case in cases if not (is_baseline(case) and _engine(case) in engines)]


def _nothing(target: Target, left_out: Sequence[LeftOut]) -> InputError:
    reasons = list(dict.fromkeys((one.what, one.hint) for one in left_out))
    what, hint = reasons[0] if reasons else ("nothing was asked for", None)
    others = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return InputError(f"{target.model} cannot be measured here: {what}{others}", hint=hint)


def _look_at_module(target: Target, here: Machine) -> RoughTiming | None:
    """One pass of a built-in model as torch runs it: its export, which every number waits for, takes far longer."""
    case = Case(workload="infer", model=target.model, runtime=opening("module")[0], batch=1, seq_len=target.seq_len)
    row = case.model_row
    if row is None or here.asked_too([case]).unsupported(case) is not None:
        return None
    fed = {row.input: (1, target.seq_len) if row.takes_ids else (1, *row.shape)}
    try:
        seconds = machines.time_pass(None, case, fed)
        return None if isinstance(seconds, InputError) else RoughTiming(seconds, f"{target.model} in {case.runtime}")
    except PybenchError:  # whatever it is, the export meets it, too, and says so
        return None


def _look_at_library(target: Target, case: Case) -> RoughTiming | None:
    """One pass of a library's model in torch. Raises InputError for a model that the library does not have or that
    cannot be fed."""
    try:
        seconds = machines.time_library(case, target.config)
    except InputError:
        raise
    except PybenchError:  # whatever it is, the export meets it, too, and says so
        return None
    return RoughTiming(seconds, f"{target.model} in torch")


def _look_at_file(
    path: Path, target: Target, cases: list[Case], left_out: list[LeftOut]
) -> tuple[RoughTiming | None, list[Case]]:
    """One pass of the file as it is, and the cases that are left; None where no runtime opens it as it is.

    Runtimes that open ONNX files are asked in turn; one that does not open this one is left out with all its cases.
    Raises InputError with the first one's reason where none is left, and at once where one opens the file and refuses
    these inputs: every case feeds them.
    """
    first: InputError | None = None
    while opening_it := [case for case in cases if case.runtime_row is not None and case.runtime_row.opens == "onnx"]:
        try:
            seconds = machines.time_pass(path, opening_it[0], target.fed(target.first_batch))
        except PybenchError as error:
            what = error.message
            said = what if str(path.absolute()) in what or target.model in what else f"{target.model}: {what}"
            first = first or InputError(said, hint=error.hint or "`pybench inspect` shows the file")
            left_out += [LeftOut(_called(case), what) for case in cases if case.runtime == opening_it[0].runtime]
            cases = [case for case in cases if case.runtime != opening_it[0].runtime]
            continue
        if isinstance(seconds, InputError):
            raise _refused_inputs(path, target, seconds)
        return RoughTiming(seconds, "the file"), cases
    if first is not None and not cases:
        raise first
    return None, cases


def _refused_inputs(path: Path, target: Target, error: InputError) -> InputError:
    what = error.message.replace(str(path.absolute()), target.model)
    if not target.sizes:
        return InputError(what, hint=error.hint)
    return InputError(what, hint=f"fed were {sizes_text(target.sizes)}: state other sizes with --shape")


def _batches(target: Target, only: Restriction, found: Sequence[Case], here: Machine) -> tuple[int, ...]:
    """Those that are asked for, else that of the arrays, else two. Of a file whose batch is fixed, its own and, where
    the file and this machine allow that, a larger one. Raises UsageError for an asked batch that no case can have
    here."""
    rewritten = _rewritten(target, only, found)
    for batch in only.batches:
        refusals = [here.unsupported(case) for case in rewritten if case.batch == batch]
        if refusals and refusals[0] is not None and all(refusals):
            why = refusals[0].in_one_line()
            raise UsageError(f"--batch {batch}: {why}", hint=f"give --batch {target.only_batch}")
    if only.batches:
        return tuple(dict.fromkeys(only.batches))
    if target.given is not None:
        return (target.given.batch,)
    own = target.only_batch
    if own is None or target.content is None:
        return BATCHES
    has_larger = all(misfit_of(target.content, case, of_images=False) is None for case in rewritten)
    if not has_larger or any(map(here.unsupported, rewritten)):
        return (own,)
    return (own, LARGER * own)


def _rewritten(target: Target, only: Restriction, cases: Sequence[Case]) -> list[Case]:
    """The same for which a file whose batch is fixed has to be rewritten: at each batch that is asked for, else at a
    larger one."""
    own = target.only_batch
    if own is None or target.facts is None:
        return []
    batches = only.batches or (LARGER * own,)
    fixed = {batch: batch_to_rewrite(target.facts.inputs, batch) for batch in batches}
    return [
        case.with_factors(batch=batch, fixed_batch=size)
        for batch, size in fixed.items()
        if size is not None
        for case in cases
    ]


def _seconds(target: Target, look: RoughTiming | None) -> float:
    """Seconds of a sample on the CPU: of a file as measured, of a built-in model nominal, so that equal questions give
    equal plans."""
    row = Case(workload="infer", model=target.model).model_row
    if row is not None:
        return row.multiply_adds * (target.seq_len if row.takes_ids else 1) / CPU_RATE
    if look is None:
        return WINDOW_S / MOST_ITERATIONS
    return look.seconds / target.first_batch


def _entries(cases: Sequence[Case], here: Machine, batches: Sequence[int], sample_s: float) -> Iterator[CandidateEntry]:
    kinds: dict[tuple[str, str | None], list[Case]] = {}
    for case in cases:
        kinds.setdefault((str(case.runtime), case.provider), []).append(case)
    samples = _between(FEWEST_SAMPLES, math.floor(CALIBRATION_S / sample_s), MOST_SAMPLES)
    for (runtime, provider), same in kinds.items():
        precisions = tuple(dict.fromkeys(case.precision for case in same))
        on_gpu = any(here.gpus(case) for case in same)
        for batch in batches:
            timed = _between(FEWEST_ITERATIONS, math.ceil(WINDOW_S / (sample_s * batch)), MOST_ITERATIONS)
            entry = CandidateEntry(runtime, provider, precisions, batch, timed, max(1, timed // 5), on_gpu, samples)
            yield replace(entry, iterations=GPU_ITERATIONS, warmup_iterations=GPU_WARMUP) if on_gpu else entry


def _between(least: int, number: int, most: int) -> int:
    return max(least, min(number, most))


def _called(case: Case) -> str:
    return f"{_engine(case)} {case.precision}"


def _engine(case: Case) -> str:
    return f"{case.runtime}{f' ({case.provider})' if case.provider else ''}"


def _shortened(left_out: Sequence[LeftOut], found: Sequence[Case]) -> Iterator[LeftOut]:
    """A runtime that has nothing here is named once."""
    here = {_engine(case) for case in found}
    for one in left_out:
        engine = one.called.rpartition(" ")[0]
        yield one if engine in here else replace(one, called=engine)
