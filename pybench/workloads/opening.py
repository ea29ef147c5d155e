# SPDX-License-Identifier: Apache-2.0
"""From a request to an opened model: which file or module, in which runtime, and how its precision will be audited.

The audit is a callable: it runs after the windows, so that what it reads is in no measurement.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pybench.case import RUNTIMES, Case
from pybench.cautions import Caution, CautionCode
from pybench.errors import InputError, UnsupportedError
from pybench.models.catalogue import BUILT_IN, VOCABULARY, Description
from pybench.precision.audit import Audit, audit_kernels, audit_onnx, audit_parameters
from pybench.recipe import TRAINED_ON
from pybench.runtimes.session import Session
from pybench.workloads.doubts import allowed_threads, calibration_cautions
from pybench.workloads.result import Measured, Request, Result, Verdict


@dataclass(frozen=True, slots=True)
class Opened:
    """`name`: for messages. `description`: None for a user's file. `language`: whether its first input is token ids.
    `metadata`: short texts that an ONNX file carries."""

    session: Session
    name: str
    description: Description | None
    language: bool
    audit: Callable[[], Audit]
    metadata: dict[str, str]


def open_model(request: Request, *, vocabulary: int = VOCABULARY, deterministic: bool = False) -> Opened:
    """Opens the model of the case. `vocabulary`: ids that a built-in language model has to embed."""
    case = request.case
    if case.model is None:
        raise InputError(f"{case.workload} needs a model", hint=f"built in: {', '.join(BUILT_IN)}")
    _check_sequence(case)
    if case.runtime == "onnxruntime":
        return _open_onnx(request, vocabulary)
    if case.runtime in ("torch", "torch-graph"):
        return _open_torch(request, vocabulary, deterministic)
    raise UnsupportedError(f"no runtime {case.runtime}", code="no_runtime", hint=f"there are {', '.join(RUNTIMES)}")


def conclude(result: Result, opened: Opened, case: Case) -> Result:
    """Adds to a result what the opened model says: size, labels, the audit's verdict, doubts."""
    found = opened.audit()
    method = "size of the ONNX file" if case.runtime == "onnxruntime" else "parameters and buffers in memory"
    result.metrics["model_bytes"] = Measured(value=float(opened.session.model_bytes), method=method)
    result.labels |= {key: value for key, value in opened.session.labels.items() if key != "device_uuid"}
    result.labels["device"] = opened.session.device
    result.labels["threads"] = allowed_threads(case)
    result.labels["precision_realised"] = found.realised
    result.labels["precision_facts"] = found.facts
    result.valid["precision"] = Verdict(found.valid, found.reasons)
    result.cautions += weight_cautions(case)
    if case.workload != "accuracy":  # which knows what it is judged on
        result.cautions += calibration_cautions(opened.metadata)
    return result


def weight_cautions(case: Case) -> list[Caution]:
    """A caution for a built-in model with seeded random weights, where its outputs could be taken seriously."""
    known = case.model not in BUILT_IN or case.model in TRAINED_ON or case.checkpoint is not None
    if known or case.workload not in ("infer", "accuracy"):
        return []
    return [Caution(CautionCode.UNTRAINED_WEIGHTS, f"{case.model} without a checkpoint")]


def _check_sequence(case: Case) -> None:
    description = BUILT_IN.get(case.model or "")
    positions = None if description is None else description.positions
    if positions is not None and case.seq_len > positions:
        raise InputError(f"{case.model} has {positions} positions, the case asks for seq_len {case.seq_len}")


def _open_onnx(request: Request, vocabulary: int) -> Opened:
    from pybench.runtimes import onnxruntime

    case = request.case
    path = request.artefacts.get("model") or request.files.get("model")
    if path is None:
        raise InputError(f"no ONNX file was prepared for {case.model}")
    if not path.is_file():
        raise InputError(f"{path} does not exist")
    description = BUILT_IN.get(case.model or "")
    if description is not None and description.kind == "language" and vocabulary > description.outputs:
        raise InputError(
            f"the tokenizer has {vocabulary} ids, the exported {case.model} embeds {description.outputs}",
            hint="use runtime: torch, which builds the model for the tokenizer",
        )
    threads = allowed_threads(case)
    session = onnxruntime.open_session(path, precision=case.precision, threads=threads, device=case.device)
    if not session.inputs:
        raise InputError(f"{path} has no input")
    language = session.inputs[0].dtype.kind == "i"
    name = case.model if description is not None else str(path)

    def audit() -> Audit:
        return _audit_int8(path, threads) if case.precision == "int8" else audit_onnx(path, case.precision)

    return Opened(session, str(name), description, language, audit, session.metadata)


def _audit_int8(path: Path, threads: int) -> Audit:
    """First the graph, then the kernels that onnxruntime makes of it on this machine: the weaker of the two counts."""
    from pybench.runtimes import onnxruntime

    claimed = audit_onnx(path, "int8")
    if not claimed.valid:
        return claimed
    with tempfile.TemporaryDirectory(prefix="pybench-audit-") as folder:
        optimised = Path(folder) / "optimised.onnx"
        onnxruntime.write_optimised(path, optimised, threads=threads)
        return audit_kernels(optimised)


def _open_torch(request: Request, vocabulary: int, deterministic: bool) -> Opened:
    case = request.case
    description = BUILT_IN.get(case.model or "")
    if description is None:
        raise UnsupportedError(
            f"torch runs the built-in models, not {case.model}", code="onnx_in_torch", hint="use runtime: onnxruntime"
        )
    from pybench.models.building import build
    from pybench.runtimes import torch

    # Refused precisions and devices are told before anything is built.
    kind = torch.set_up(case.precision, allowed_threads(case), case.device)
    checkpoint = request.artefacts.get("checkpoint") or request.files.get("checkpoint")
    module = build(description.name, checkpoint=checkpoint, vocabulary=max(vocabulary, VOCABULARY))
    language = description.takes_ids
    shape = (None, None) if language else (None, *description.input_shape)
    spec = torch.spec_of(description.input_name, shape, language)
    open_session = torch.open_session
    if case.runtime == "torch-graph":
        from pybench.runtimes import torch_graph

        open_session = torch_graph.open_session
    session = open_session(module, spec, precision=case.precision, kind=kind, deterministic=deterministic)

    def audit() -> Audit:
        dtypes = (str(parameter.dtype).removeprefix("torch.") for parameter in session.module.parameters())
        return audit_parameters(dtypes, case.precision, torch.flags())

    return Opened(session, description.name, description, language, audit, {})
