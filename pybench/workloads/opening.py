# SPDX-License-Identifier: Apache-2.0
"""From a request to an opened model: which file or module, and in which runtime.

Its audit (`auditing`) is a callable: it runs after the windows, so that what it reads is in no measurement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pybench.case import Case
from pybench.catalogue.models import MODELS, Model
from pybench.catalogue.workloads import judge_of
from pybench.cautions import Caution, CautionCode
from pybench.errors import InputError, UnsupportedError
from pybench.factors import RUNTIMES
from pybench.precision.audit import Audit
from pybench.recipe import RUN_FROM_ONNX
from pybench.runtimes.providers import is_whole
from pybench.runtimes.session import Session, TensorSpec
from pybench.workloads import auditing
from pybench.workloads.doubts import allowed_threads, calibration_cautions, output_cautions
from pybench.workloads.result import Measured, Request, Result, Verdict

GRAPH_FILE = "graph.json"  # beside an engine: what an audit has to know of the graph that it was built from
_SIZES = {  # what `model_bytes` is; else the parameters and buffers in memory
    "onnxruntime": "size of the ONNX file",
    "tensorrt": "size of the engine",
    "torch-tensorrt": "parameters and buffers of the module that was compiled",
}
# What `compile_s` is of each runtime that spends it in a run.
COMPILING = {
    "onnxruntime": "opening the session; on a GPU also the first runs, which build and capture for the shape",
    "torch-compile": "the first calls for the shape but the last of them, with empty caches and the compiler imported",
    "torch-graph": "the calls before capturing, and the capture",
    "torch-tensorrt": "export and compilation for the shape, with no cache, and the first calls",
}


@dataclass(frozen=True, slots=True)
class Opened:
    """`name`: for messages. `row`: of a built-in model; None for a user's file. `language`: whether its first input is
    token ids. `metadata`: short texts that an ONNX file carries."""

    session: Session
    name: str
    row: Model | None
    language: bool
    audit: Callable[[], Audit]
    metadata: dict[str, str]


def open_model(request: Request, *, vocabulary: int = 0, deterministic: bool = False) -> Opened:
    """Opens the model of the case. `vocabulary`: ids that a built-in language model has to embed at least."""
    case = request.case
    if case.model is None:
        raise InputError(f"{case.workload} needs a model", hint=f"built in: {', '.join(MODELS)}")
    check_sequence(case)
    if case.runtime in RUN_FROM_ONNX:
        _check_vocabulary(case, vocabulary)
    if case.runtime == "onnxruntime":
        return _open_onnx(request)
    if case.runtime == "tensorrt":
        return _open_engine(request)
    if case.runtime is not None and case.runtime.startswith("torch"):
        return _open_torch(request, vocabulary, deterministic)
    raise UnsupportedError(f"no runtime {case.runtime}", code="no_runtime", hint=f"there are {', '.join(RUNTIMES)}")


def conclude(result: Result, opened: Opened, case: Case) -> Result:
    """Adds to a result what the opened model says: size, labels, the audit's verdict, doubts."""
    found = auditing.proven(opened.audit)
    method = _SIZES.get(case.runtime or "", "parameters and buffers in memory")
    result.metrics["model_bytes"] = Measured(value=float(opened.session.model_bytes), method=method)
    if opened.session.compile_s is not None:
        how = COMPILING[case.runtime or ""]
        result.metrics["compile_s"] = Measured(value=opened.session.compile_s, method=how)
    result.labels |= {key: value for key, value in opened.session.labels.items() if key != "device_uuid"}
    result.labels["device"] = opened.session.device
    result.labels["threads"] = allowed_threads(case)
    result.labels["precision_realised"] = found.realised
    result.labels["precision_facts"] = found.facts
    result.valid["precision"] = Verdict(found.valid, found.reasons)
    result.cautions += weight_cautions(case) + partition_cautions(opened.session.labels)
    result.cautions += output_cautions(opened.metadata)
    if case.workload_row.judges is None:  # a judge knows what it judges on
        result.cautions += calibration_cautions(opened.metadata)
    return result


def weight_cautions(case: Case) -> list[Caution]:
    """A caution for a built-in model with seeded random weights, where its outputs could be taken seriously."""
    model = case.model_row
    trained = model is None or model.trained_on is not None or case.checkpoint is not None
    row = case.workload_row
    is_judged = row.judges is not None or judge_of(row) is not None
    if trained or not is_judged:
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
    if positions is not None and case.seq_len > positions:
        raise InputError(f"{case.model} has {positions} positions, the case asks for seq_len {case.seq_len}")


def _check_vocabulary(case: Case, vocabulary: int) -> None:
    """An exported model embeds as many ids as it was built with; more would be read from beyond its table."""
    row = case.model_row
    if row is not None and row.takes_text and vocabulary > row.outputs:
        raise InputError(
            f"the tokenizer has {vocabulary} ids, the exported {case.model} embeds {row.outputs}",
            hint="use runtime: torch, which builds the model for the tokenizer",
        )


def _open_onnx(request: Request) -> Opened:
    from pybench.runtimes import onnxruntime

    case = request.case
    path = request.artefacts.get("model") or request.files.get("model")
    if path is None:
        raise InputError(f"no ONNX file was prepared for {case.model}")
    if not path.is_file():
        raise InputError(f"{path} does not exist")
    row = case.model_row
    threads = allowed_threads(case)
    session = onnxruntime.open_session(
        path, precision=case.precision, threads=threads, device=case.device, provider=case.provider, launch=case.launch
    )
    if not session.inputs:
        raise InputError(f"{path} has no input")
    language = session.inputs[0].dtype.kind == "i"
    name = case.model if row is not None else str(path)

    def audit() -> Audit:
        return auditing.of_onnxruntime(session, path, case)

    return Opened(session, str(name), row, language, audit, session.metadata)


def _open_engine(request: Request) -> Opened:
    """An engine, audited by its inspector and the time of each layer, with what its making noted of the graph."""
    from pybench.runtimes.tensorrt.session import open_session

    case, path = request.case, request.artefacts["engine"]
    session = open_session(path, launch=case.launch, device=case.device)
    graph = json.loads((path.parent / GRAPH_FILE).read_text())

    def audit() -> Audit:
        return auditing.of_engine(session, graph, case.precision)

    language = session.inputs[0].dtype.kind == "i"
    return Opened(session, str(case.model), case.model_row, language, audit, graph["metadata"])


def _open_torch(request: Request, vocabulary: int, deterministic: bool) -> Opened:
    case = request.case
    row = case.model_row
    if row is None:
        raise UnsupportedError(
            f"torch runs the built-in models, not {case.model}", code="onnx_in_torch", hint="use runtime: onnxruntime"
        )
    from pybench.models.building import build
    from pybench.runtimes import torch

    # Refused precisions and devices are told before anything is built.
    kind = torch.set_up(case.precision, allowed_threads(case), case.device)
    checkpoint = request.artefacts.get("checkpoint") or request.files.get("checkpoint")
    outputs = max(vocabulary, row.outputs) if row.takes_text else None
    module = build(row.name, checkpoint=checkpoint, outputs=outputs)
    shape = (None, None) if row.takes_ids else (None, *row.shape)
    spec = torch.spec_of(row.input, shape, row.takes_ids)
    session = _torch_session(case, module, spec, {"kind": kind, "deterministic": deterministic})

    def audit() -> Audit:
        return auditing.of_torch(session, case.precision, torch.flags())

    return Opened(session, row.name, row, row.takes_ids, audit, {})


def _torch_session(case: Case, module: Any, spec: TensorSpec, options: Mapping[str, Any]) -> Any:
    """A session of the runtime of torch that the case names."""
    from pybench.runtimes import torch, torch_compile, torch_graph, torch_tensorrt

    options = {**options, "precision": case.precision}
    if case.runtime == "torch-compile":
        options |= {"mode": case.compile_mode, "threads": allowed_threads(case)}
        return torch_compile.open_session(module, spec, **options)
    if case.runtime == "torch-graph":
        return torch_graph.open_session(module, spec, **options)
    if case.runtime == "torch-tensorrt":
        return torch_tensorrt.open_session(module, spec, launch=case.launch, **options)
    return torch.open_session(module, spec, **options)
