# SPDX-License-Identifier: Apache-2.0
"""From a request to an opened model: which file or module, and in which runtime.

Its audit (`audits`) and its profile (`profiles`) are callables: they run after the windows, so that what they read
is in no measurement.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pybench.case import Case
from pybench.case.data import has_random_weights
from pybench.case.yields import is_compared, is_profiled
from pybench.catalogue.causes import Cause
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.code import code_of, named_code
from pybench.catalogue.heads import role_of
from pybench.catalogue.models import Model
from pybench.catalogue.refusals import refuse_file
from pybench.catalogue.runtimes import Runtime
from pybench.errors import InputError, UnsupportedError
from pybench.kernels.profile import Profile
from pybench.measure.quantity import Quantity
from pybench.measurement import audits, profiles
from pybench.measurement.doubts import (
    agreement,
    allowed_threads,
    calibration_cautions,
    joined_metadata,
    output_cautions,
    saturation_cautions,
)
from pybench.measurement.profiles import add_profile
from pybench.measurement.result import Result, RunRequest, Validity
from pybench.models.zoo.feeds import KEY, ModelInputs, feeds_from_text
from pybench.precision.audit import Audit
from pybench.runtimes.device import chosen
from pybench.runtimes.providers import is_whole
from pybench.runtimes.session import Session, TensorSpec, module_spec
from pybench.runtimes.solver import Solvers


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model that is ready to run.

    name: for messages
    row: of a built-in model; None for a user's file
    language: whether its first input is token ids
    audit: finds the precision that ran
    profile: finds the kernels of an iteration; None: the case has no profile
    metadata: short texts that an ONNX file carries
    """

    session: Session
    name: str
    row: Model | None
    language: bool
    audit: Callable[[], Audit]
    profile: Callable[[], Profile] | None
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What a runtime is given to open.

    given: an ONNX file, an engine, or a call that builds a module
    spec: the module's input, or inputs; None for a file, which states its own
    name: for messages
    metadata: texts of what is opened, where the session cannot tell them
    """

    given: Any
    spec: TensorSpec | tuple[TensorSpec, ...] | None
    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)


def open_model(request: RunRequest, *, vocabulary: int = 0, deterministic: bool = False) -> OpenedModel:
    """Opens the model of the case. `vocabulary`: ids that a built-in language model has to embed at least."""
    case, row = request.case, request.case.runtime_row
    if case.model is None:
        raise InputError(f"{case.workload} needs a model", hint=f"built in: {', '.join(case.catalogue.models)}")
    if row is None:
        raise UnsupportedError(
            "no runtime", code=Cause.NO_RUNTIME, hint=f"there are {', '.join(case.catalogue.runtimes)}"
        )
    check_sequence(case)
    door = (_DOORS[row.opens] if case.parts is None else _through_parts)(request, row, vocabulary)
    find_audit = audits.audit_of(row)  # before the windows: a row that names what is not there fails the run
    find_profile = profiles.profile_of(row) if is_profiled(case) else None
    session = _opened(door, case, row, deterministic)
    if not session.inputs:
        raise InputError(f"{door.name} has no input")
    language = session.inputs[0].dtype.kind == "i"
    audit = partial(find_audit, session, case, door.given)
    profile = None if find_profile is None else partial(find_profile, session, case, door.given)
    metadata = {**session.metadata, **door.metadata}
    if KEY in metadata:
        check_longest(str(case.model), feeds_from_text(metadata[KEY]), case.seq_len, added_tokens(case))
    return OpenedModel(session, door.name, case.model_row, language, audit, profile, metadata)


def _opened(door: ModelSource, case: Case, row: Runtime, deterministic: bool) -> Session:
    if case.parts is not None and row.parts is not None:
        in_parts: Session = code_of(row, "parts")(door.given, case.parts, case)
        return in_parts
    open_case = importlib.import_module(row.module).open_case
    session: Session = open_case(door.given, door.spec, case, allowed_threads(case), deterministic=deterministic)
    return session


def conclude(result: Result, opened: OpenedModel, case: Case) -> Result:
    """Adds to a result what the opened model says: size, labels, the audit's verdict, doubts."""
    found = audits.proven(opened.audit)
    row = case.runtime_row
    method = None if row is None else row.size_is
    result.metrics["model_bytes"] = Quantity(value=float(opened.session.model_bytes), method=method)
    if opened.session.compile_s is not None:
        how = None if row is None else row.compile_is
        result.metrics["compile_s"] = Quantity(value=opened.session.compile_s, method=how)
    result.metrics |= agreement(opened.metadata)
    result.labels |= {key: value for key, value in opened.session.labels.items() if key != "device_uuid"}
    result.labels["device"] = opened.session.device
    result.labels["threads"] = allowed_threads(case)
    result.labels["precision_realised"] = found.realised
    result.labels["precision_facts"] = found.facts
    result.valid["precision"] = Validity(found.valid, found.reasons)
    result.cautions += weight_cautions(case) + partition_cautions(opened.session.labels)
    result.cautions += output_cautions(opened.metadata)
    if opened.session.device == "cpu":
        result.cautions += saturation_cautions(case)
    if not case.workload_row.judges_images:  # a judge knows what it judges on
        result.cautions += calibration_cautions(opened.metadata, case.calibration_images)
    if opened.profile is not None:
        add_profile(result, opened.profile)
    return result


def weight_cautions(case: Case) -> list[Caution]:
    """A caution for a model with seeded random weights, where its outputs could be taken seriously."""
    row = case.workload_row
    is_judged = row.judges_images or case.catalogue.judge_of(row) is not None or is_compared(case)
    if not (is_judged and has_random_weights(case)):
        return []
    return [Caution(CautionCode.UNTRAINED_WEIGHTS, f"{case.model} without a checkpoint")]


def partition_cautions(labels: Mapping[str, Any]) -> list[Caution]:
    """A caution where onnxruntime's provider did not take the whole graph."""
    partitions = labels.get("partitions")
    if partitions is None or is_whole(labels["provider"], partitions):
        return []
    parts = ", ".join(f"{count} on {name}" for name, count in sorted(partitions.items()))
    return [Caution(CautionCode.MODEL_SPLIT, f"parts of the graph: {parts}", "latency_mean_ms")]


def check_sequence(case: Case) -> None:
    """Raises InputError for a sequence longer than the model has learned positions for."""
    positions = None if case.model_row is None else case.model_row.longest_sequence
    added = added_tokens(case)
    if positions is not None and case.seq_len + added > positions:
        more = f" and new_tokens {added}" if added else ""
        raise InputError(f"{case.model} has {positions} positions, the case asks for seq_len {case.seq_len}{more}")


def check_longest(model: str, feeds: ModelInputs, seq_len: int, added: int = 0) -> None:
    """The same for a library's model. `added`: tokens that it continues the sequence by. Raises InputError."""
    if feeds.longest is not None and seq_len + added > feeds.longest:
        more = f" and new_tokens {added}" if added else ""
        both = "seq_len and new_tokens together" if added else "seq_len"
        raise InputError(
            f"{model} has {feeds.longest} positions, the case asks for seq_len {seq_len}{more}",
            hint=f"use {both} of at most {feeds.longest}",
        )


def added_tokens(case: Case) -> int:
    """By how many a case continues its sequences."""
    return case.new_tokens if case.workload_row.generates else 0


def _check_vocabulary(case: Case, vocabulary: int) -> None:
    """An exported model embeds as many ids as it was built with; more would be read from beyond its table."""
    row = case.model_row
    if row is not None and row.takes_text and vocabulary > row.outputs:
        raise InputError(
            f"the tokenizer has {vocabulary} ids, the exported {case.model} embeds {row.outputs}",
            hint="use runtime: torch, which builds the model for the tokenizer",
        )


def _through_onnx(request: RunRequest, row: Runtime, vocabulary: int) -> ModelSource:
    case = request.case
    _check_vocabulary(case, vocabulary)
    path = request.artefacts.get("model") or request.files.get("model")
    if path is None:
        raise InputError(f"no ONNX file was prepared for {case.model}")
    if not path.is_file():
        raise InputError(f"{path} does not exist")
    return ModelSource(path, None, str(path) if case.names_onnx else str(case.model))


def _through_engine(request: RunRequest, row: Runtime, vocabulary: int) -> ModelSource:
    """An engine, and what its making noted of the graph."""
    case, path = request.case, request.artefacts["engine"]
    _check_vocabulary(case, vocabulary)
    graph = audits.graph_of(path)
    return ModelSource(path, None, str(case.model), graph["metadata"])


def _through_parts(request: RunRequest, row: Runtime, vocabulary: int) -> ModelSource:
    """An engine for each part of the model, by the part's name."""
    parts = request.case.parts
    paths = {name: request.artefacts[role_of(name)] for name in (() if parts is None else parts.names)}
    metadata = joined_metadata({name: audits.graph_of(path)["metadata"] for name, path in paths.items()})
    return ModelSource(paths, None, str(request.case.model), metadata)


def _through_module(request: RunRequest, row: Runtime, vocabulary: int) -> ModelSource:
    """A call that builds the module, so that a runtime can refuse a case before that."""
    if request.case.library is not None:
        return _through_program(request, row)
    model = request.case.model_row
    if model is None:
        refuse_file(row)
        raise InputError(f"no module was prepared for {request.case.model}")
    checkpoint = request.artefacts.get("checkpoint") or request.files.get("checkpoint")
    outputs = max(vocabulary, model.outputs) if model.takes_text else None

    def module() -> Any:
        from pybench.models.building import build

        return build(model, checkpoint=checkpoint, outputs=outputs)

    shape = (None, None) if model.takes_ids else (None, *model.shape)
    return ModelSource(module, module_spec(model.input, shape, model.takes_ids), model.name)


def _through_program(request: RunRequest, row: Runtime) -> ModelSource:
    """A call that loads a library's model, which was exported, onto the device of the case."""
    from pybench.models.zoo.program import read_facts, read_program

    case, path = request.case, request.artefacts["program"]
    facts = read_facts(path)

    def module() -> Any:
        import torch

        return read_program(path, chosen(case.device, torch.cuda.is_available(), row.name))

    return ModelSource(module, specs_of(feeds_from_text(facts[KEY])), str(case.model), facts)


def specs_of(feeds: ModelInputs) -> tuple[TensorSpec, ...]:
    """The inputs of a library's model."""
    return tuple(module_spec(feed.name, feed.shape, feed.below is not None) for feed in feeds.inputs)


def _through_equations(request: RunRequest, row: Runtime, vocabulary: int) -> ModelSource:
    """The solvers of what the network gives, by name, with the input that both take."""
    model = request.case.model_row
    if model is None or model.solved_by is None:
        raise InputError(f"nothing solves {request.case.model} without a network")
    solvers = Solvers(named_code(model.solved_by), model.outputs, model.solved_from_bytes)
    spec = TensorSpec(model.input, np.dtype(np.float64), (None, *model.shape))
    return ModelSource(solvers, spec, model.name)


# by `Runtime.opens`
_DOORS = {
    "onnx": _through_onnx,
    "engine": _through_engine,
    "module": _through_module,
    "equations": _through_equations,
}
