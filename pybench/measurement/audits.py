# SPDX-License-Identifier: Apache-2.0
"""The precision that ran, asked of each runtime in the way that it can be asked. Audits run after the windows.

An engine of ours tells its layers, and their times are measured. onnxruntime's CPU and CUDA providers compute in the
types of the graph that is left after their passes, so that graph is read. Its TensorRT provider, which builds weakly
typed engines in some releases, and Torch-TensorRT tell nothing of an engine: the kernels that they launch are recorded.
Any other torch module is asked for its parameters and switches.
"""

from __future__ import annotations

import json
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.catalogue.code import code_of
from pybench.catalogue.precisions import allows_tf32, floating_type, is_single, quantised_type
from pybench.catalogue.reasons import Reason
from pybench.catalogue.runtimes import Runtime
from pybench.errors import in_short
from pybench.measurement.doubts import allowed_threads
from pybench.measurement.stored_weights import audit_stored
from pybench.precision.audit import (
    Audit,
    audit_compiled,
    audit_executed,
    audit_kernels,
    audit_onnx,
    audit_parameters,
    left_higher,
)
from pybench.precision.engine_audit import audit_engine, audit_launched
from pybench.runtimes.providers import CUDA, backend

GRAPH_FILE = "graph.json"  # beside an engine: what an audit has to know of the graph that it was built from
_LONGEST_ERROR = 500  # characters of a failed audit's message that are kept


def proven(audit: Callable[[], Audit]) -> Audit:
    """What an audit finds. One that fails (a profiler that is refused, a GPU without room for a second session) proves
    nothing, and costs no window: those were measured before it. Code: `audit_failed`."""
    try:
        return audit()
    except Exception as error:  # whatever a framework throws: the traceback is in the log
        traceback.print_exc()
        kind = type(error).__name__
        facts = {"error": f"{kind}: {in_short(error, _LONGEST_ERROR)}"}
        return Audit(f"not known: the audit failed ({kind})", False, (Reason(Cause.AUDIT_FAILED),), facts)


def audit_of(row: Runtime) -> Callable[[Any, Case, Any], Audit]:
    """What finds the precision that ran on a runtime: `(session, case, given) -> Audit`, as its row names it."""
    if row.audit is None:
        return not_audited
    found: Callable[[Any, Case, Any], Audit] = code_of(row, "audit")
    return found


def not_audited(session: Any, case: Case, given: Any) -> Audit:
    """Of a runtime that nothing audits: its precision is not known, and not said to be right."""
    return Audit(f"not known: {case.runtime} has no audit", None, (Reason(Cause.NO_AUDIT),))


def of_onnxruntime(session: Any, case: Case, given: Path) -> Audit:
    """What an onnxruntime session executes of the ONNX file `given`. The weaker of graph and execution counts."""
    declared = audit_onnx(given, case.precision)
    if not declared.valid:
        return declared
    provider = session.labels["provider"]
    row = backend(provider)
    if declared.facts.get("stored_weights"):
        found = audit_stored(declared, given, provider, allowed_threads(case))
    elif row.builds:
        found = audit_launched(
            session.kernels(),
            case.precision,
            kept=left_higher(declared, case.precision),
            written=declared.facts["multiplying_nodes"],
        )
    elif row.needs_gpu or (_is_int8_with_fp32(case.precision) and case.workload_row.timed):
        found = _optimised(given, case, provider)
    else:  # an accuracy is of the graph's numbers: kernels that compute a pair of Q/DQ in FP32 change the time alone
        found = declared
    return with_tf32(found, case.precision, session.labels["provider_options"])


def of_openvino(session: Any, case: Case, given: Path) -> Audit:
    """The kernels of OpenVINO's compiled graph, and the types that they ran in."""
    return audit_compiled(given, case.precision, session.executed())


def of_native(session: Any, case: Case, given: Path) -> Audit:
    """The same of a native process. The kernels of an engine that it holds cannot be recorded from here."""
    if backend(session.labels["provider"]).builds:
        return not_audited(session, case, given)
    return of_onnxruntime(session, case, given)


def of_engine(session: Any, case: Case, given: Path | Mapping[str, Path]) -> Audit:
    """An engine by its inspector and the time of each layer, with what its making noted of the graph.

    A model in parts has an engine for each of them, none of which may fail."""
    if isinstance(given, Path):
        return _of_one_engine(session, case, given)
    return joined({name: _of_one_engine(session.session_of(name), case, path) for name, path in given.items()})


def joined(parts: Mapping[str, Audit]) -> Audit:
    """The audits of a model's parts as one: the weakest counts."""
    verdicts = [found.valid for found in parts.values()]
    return Audit(
        realised="; ".join(f"{name}: {found.realised}" for name, found in parts.items()),
        valid=False if False in verdicts else None if None in verdicts else True,
        reasons=tuple(dict.fromkeys(code for found in parts.values() for code in found.reasons)),
        facts={name: found.facts for name, found in parts.items()},
    )


def _of_one_engine(session: Any, case: Case, given: Path) -> Audit:
    graph, precision = graph_of(given), case.precision
    found = audit_engine(
        session.layer_information(),
        precision,
        layer_times_ms=session.layer_times_ms(),
        node_flops=graph["node_flops"],
        counts_all=not graph.get("not_counted"),
        keep=graph["kept"],
        tf32=allows_tf32(precision),
    )
    return with_outputs(found, graph["outputs"])


def graph_of(engine: Path) -> dict[str, Any]:
    """What the making of an engine noted of the graph that it was built from (`making.engine`)."""
    graph: dict[str, Any] = json.loads((engine.parent / GRAPH_FILE).read_text())
    return graph


def of_torch(session: Any, case: Case, given: Any) -> Audit:
    """A torch module's parameters and torch's switches."""
    from pybench.runtimes import torch

    dtypes = (str(parameter.dtype).removeprefix("torch.") for parameter in session.module.parameters())
    return audit_parameters(dtypes, case.precision, torch.flags())


def of_solver(session: Any, case: Case, given: Any) -> Audit:
    """What a solver computes in is not a choice of the case."""
    row = case.runtime_row
    return Audit(str(None if row is None else row.computes_in), True, (), {"solver": case.solver})


def of_torch_tensorrt(session: Any, case: Case, given: Any) -> Audit:
    """The kernels of the engines that were compiled of a module, whose parameters tell nothing of them."""
    return audit_launched(session.kernels(), case.precision)


def _is_int8_with_fp32(precision: str) -> bool:
    return quantised_type(precision) == "int8" and floating_type(precision) == "fp32"


def with_tf32(found: Audit, precision: str, options: Mapping[str, Mapping[str, str]]) -> Audit:
    """An audit and what onnxruntime's CUDA provider says of TF32, where it is in the session."""
    told = options.get(CUDA, {}).get("use_tf32")
    if told is None:
        return found
    facts = {**found.facts, "use_tf32": told}
    realised = found.realised
    if is_single(precision):
        realised += f", TF32 {'on' if told == '1' else 'off'}"
    if told == ("1" if allows_tf32(precision) else "0"):
        return replace(found, realised=realised, facts=facts)
    reasons = (*found.reasons, Reason(Cause.TF32_SWITCHES_DIFFER))
    return replace(found, realised=realised, valid=False, reasons=reasons, facts=facts)


def with_outputs(found: Audit, outputs: Mapping[str, Any]) -> Audit:
    """An engine's audit and what was found when its outputs were compared with its graph's (`agree` None: unknown)."""
    facts = {**found.facts, "outputs": dict(outputs)}
    if outputs["agree"] is not False:
        return replace(found, facts=facts)
    return replace(found, valid=False, reasons=(*found.reasons, Reason(Cause.OUTPUTS_DIFFER)), facts=facts)


def _optimised(path: Path, case: Case, provider: str) -> Audit:
    from pybench.runtimes import onnxruntime

    with tempfile.TemporaryDirectory(prefix="pybench-audit-") as folder:
        optimised = Path(folder) / "optimised.onnx"
        onnxruntime.write_optimised(
            path, optimised, threads=allowed_threads(case), provider=provider, precision=case.precision
        )
        if _is_int8_with_fp32(case.precision):
            return audit_kernels(optimised)
        return audit_executed(path, optimised, case.precision)
