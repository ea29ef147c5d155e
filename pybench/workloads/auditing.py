# SPDX-License-Identifier: Apache-2.0
"""The precision that ran, asked of each runtime in the way that it can be asked. Audits run after the windows.

An engine of ours tells its layers, and their times are measured. onnxruntime's CPU and CUDA providers compute in the
types of the graph that is left after their passes, so that graph is read. Its TensorRT provider, which builds weakly
typed engines in some releases, and Torch-TensorRT tell nothing of an engine: the kernels that they launch are recorded.
Any other torch module is asked for its parameters and switches.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pybench.case import Case
from pybench.precision.audit import (
    Audit,
    audit_executed,
    audit_kernels,
    audit_onnx,
    audit_parameters,
    left_higher,
)
from pybench.precision.engine_audit import audit_engine, audit_launched
from pybench.runtimes.providers import CUDA
from pybench.workloads.doubts import allowed_threads

_LONGEST_ERROR = 500  # characters of a failed audit's message that are kept


def proven(audit: Callable[[], Audit]) -> Audit:
    """What an audit finds. One that fails (a profiler that is refused, a GPU without room for a second session) proves
    nothing, and costs no window: those were measured before it. Code: `audit_failed`."""
    try:
        return audit()
    except Exception as error:  # whatever a framework throws: the traceback is in the log
        traceback.print_exc()
        kind = type(error).__name__
        facts = {"error": f"{kind}: {' '.join(str(error).split())[:_LONGEST_ERROR]}"}
        return Audit(f"not known: the audit failed ({kind})", False, ("audit_failed",), facts)


def of_onnxruntime(session: Any, path: Path, case: Case) -> Audit:
    """What an onnxruntime session executes of an ONNX file. The weaker of the graph and its execution counts."""
    declared = audit_onnx(path, case.precision)
    if not declared.valid:
        return declared
    provider = session.labels["provider"]
    if provider == "tensorrt":
        found = audit_launched(
            session.kernels(),
            case.precision,
            kept=left_higher(declared, case.precision),
            written=declared.facts["multiplying_nodes"],
        )
    elif provider == "cuda":
        found = _optimised(path, case, "cuda")
    elif case.precision == "int8" and case.workload_row.timed:
        found = _optimised(path, case, "cpu")
    else:  # an accuracy is of the graph's numbers: kernels that compute a pair of Q/DQ in FP32 change the time alone
        found = declared
    return with_tf32(found, case.precision, session.labels["provider_options"])


def of_engine(session: Any, graph: Mapping[str, Any], precision: str) -> Audit:
    """An engine by its inspector and the time of each layer, with what its making noted of the graph."""
    found = audit_engine(
        session.layer_information(),
        precision,
        layer_times_ms=session.layer_times_ms(),
        node_flops=graph["node_flops"],
        keep=graph["kept"],
        tf32=precision == "tf32",
    )
    return with_outputs(found, graph["outputs"])


def of_torch(session: Any, precision: str, flags: Mapping[str, Any]) -> Audit:
    """A torch module's parameters and torch's switches, or the kernels of what was compiled of it into engines."""
    if session.compiles_engines:
        return audit_launched(session.kernels(), precision)
    dtypes = (str(parameter.dtype).removeprefix("torch.") for parameter in session.module.parameters())
    return audit_parameters(dtypes, precision, flags)


def with_tf32(found: Audit, precision: str, options: Mapping[str, Mapping[str, str]]) -> Audit:
    """An audit and what onnxruntime's CUDA provider says of TF32, where it is in the session."""
    told = options.get(CUDA, {}).get("use_tf32")
    if told is None:
        return found
    facts = {**found.facts, "use_tf32": told}
    realised = found.realised
    if precision in ("fp32", "tf32"):
        realised += f", TF32 {'on' if told == '1' else 'off'}"
    if told == ("1" if precision == "tf32" else "0"):
        return replace(found, realised=realised, facts=facts)
    reasons = (*found.reasons, "tf32_switches_differ")
    return replace(found, realised=realised, valid=False, reasons=reasons, facts=facts)


def with_outputs(found: Audit, outputs: Mapping[str, Any]) -> Audit:
    """An engine's audit and what was found when its outputs were compared with its graph's (`agree` None: unknown)."""
    facts = {**found.facts, "outputs": dict(outputs)}
    if outputs["agree"] is not False:
        return replace(found, facts=facts)
    return replace(found, valid=False, reasons=(*found.reasons, "outputs_differ"), facts=facts)


def _optimised(path: Path, case: Case, provider: str) -> Audit:
    from pybench.runtimes import onnxruntime

    with tempfile.TemporaryDirectory(prefix="pybench-audit-") as folder:
        optimised = Path(folder) / "optimised.onnx"
        onnxruntime.write_optimised(
            path, optimised, threads=allowed_threads(case), provider=provider, precision=case.precision
        )
        if case.precision == "int8":
            return audit_kernels(optimised)
        return audit_executed(path, optimised, case.precision)
