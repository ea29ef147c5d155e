# SPDX-License-Identifier: Apache-2.0
"""Whether the runtime of a case executes it, as far as the rows of the catalogue tell.

Each rule raises UnsupportedError where it is broken. `machine.support` gives the rules what this machine has;
`runs_nowhere` gives them everything, so that what they still refuse runs on no machine.
"""

from __future__ import annotations

from collections.abc import Collection

from pybench.case.case import Case
from pybench.case.quantising import opened_in, quantiser_of, scheme_of, stores_weights
from pybench.catalogue.causes import Cause
from pybench.catalogue.precisions import quantised_type
from pybench.catalogue.quantisers import quantisers_to
from pybench.catalogue.refusals import (
    refuse_file,
    refuse_generation,
    refuse_mode,
    refuse_path,
    refuse_precision,
    refuse_provider,
    refuse_training,
    refuse_transfers,
)
from pybench.errors import UnsupportedError


def runs_nowhere(case: Case) -> UnsupportedError | None:
    """Why no machine can run a case; None: a machine may. What is installed, and of which version, is left open."""
    row = case.runtime_row
    if row is None:
        return None
    every = [backend.called for backend in row.backends]
    refusals: list[UnsupportedError] = []
    for has_gpu in _chances(case):
        try:
            refuse_work(case, has_gpu=has_gpu)
            refuse_backend(case, every, has_gpu=has_gpu)
            if case.device not in ("auto", "cpu") and not has_gpu:
                raise no_gpu(case, on_no_machine=True)
            refuse_types(case, has_gpu=has_gpu)
            refuse_copies(case, has_gpu=has_gpu)
        except UnsupportedError as error:
            refusals.append(error)
        else:
            return None
    return refusals[0]


def _chances(case: Case) -> list[bool]:
    """Whether the case has a GPU, on machines with one and without."""
    row = case.runtime_row
    backend = None if row is None else row.backend(case.provider, has_gpu=True)
    sees_gpu = row is not None and row.gpu_fact is not None and (backend is None or backend.needs_gpu)
    has_gpu = [True] if sees_gpu and case.device != "cpu" else []
    return [*has_gpu, False] if case.device in ("auto", "cpu") else has_gpu or [False]


def refuse_work(case: Case, *, has_gpu: bool) -> None:
    """Whether the runtime does what the workload needs, with such a model, reading by such a path."""
    row = case.runtime_row
    if row is None:
        return
    if case.workload_row.trains:
        refuse_training(row)
    if case.workload_row.generates:
        refuse_generation(row, row.backend(case.provider, has_gpu=has_gpu), opened_in(case))
    if case.names_onnx:
        refuse_file(row)
    if case.model is not None:
        refuse_path(row, case.path, takes_text=case.model_row is not None and case.model_row.takes_text)


def refuse_backend(case: Case, providers: Collection[str], *, has_gpu: bool) -> None:
    """What the factors say of each other, and whether the provider is one of `providers`, by the runtime's names."""
    row = case.runtime_row
    if row is None:
        return
    refuse_mode(row, case.compile_mode, has_gpu=has_gpu)
    used, kind = row.backend(case.provider, has_gpu=has_gpu), quantised_type(case.precision)
    called = row.name if used is None else used.called
    if kind is not None and quantiser_of(case).at_run and (used is None or not used.finds_ranges):
        raise UnsupportedError(
            f"{called} has no kernels that find ranges in each run",
            code=Cause.NO_RANGES_AT_RUN,
            hint="use runtime: onnxruntime with device: cpu, or another quantiser",
        )
    if stores_weights(case) and (used is None or kind not in used.stores):
        raise UnsupportedError(
            f"{called} does not multiply with {kind} weights as they are stored",
            code=Cause.NO_STORED_WEIGHTS,
            hint="use runtime: onnxruntime with provider: cpu or cuda",
        )
    if case.provider is None:
        return
    refuse_provider(row, case.provider, case.device, tuple(providers))
    backend = row.backend(case.provider, has_gpu=True)
    if backend is not None and backend.symmetric_ranges and kind is not None and scheme_of(case) != "symmetric":
        raise UnsupportedError(
            f"{backend.called} accepts only symmetric ranges, but {quantiser_of(case).name} makes others",
            code=Cause.RANGES_NOT_SYMMETRIC,
            hint=f"use scheme: symmetric, or quantiser: {' or '.join(quantisers_to(kind))}",
        )


def refuse_types(
    case: Case, *, has_gpu: bool, capability: float | None = None, on_cpu: Collection[str] | None = None
) -> None:
    """Whether the runtime computes in the precision. `capability`, `on_cpu`: as of `refuse_precision`."""
    row = case.runtime_row
    if row is None or case.model is None or row.computes_in is not None:
        return
    refuse_precision(
        row,
        row.backend(case.provider, has_gpu=has_gpu),
        opened_in(case),
        has_gpu=has_gpu,
        capability=capability,
        on_cpu=on_cpu,
        training=case.workload_row.trains,
    )


def refuse_copies(case: Case, *, has_gpu: bool) -> None:
    """Whether an iteration can include the copies to and from the device, where the case asks for them."""
    if case.transfers and case.runtime_row is not None:
        refuse_transfers(case.runtime_row, has_gpu=has_gpu)


def no_gpu(case: Case, *, on_no_machine: bool) -> UnsupportedError:
    """The case names a GPU that its engine does not see: here, or on no machine."""
    engine = case.runtime or "torch"
    sees = "runs on CPUs only" if on_no_machine else "sees no GPU on this machine"
    return UnsupportedError(
        f"device {case.device} is asked for, and {engine} {sees}",
        code=Cause.NO_GPU,
        hint="set `device: cpu`" if on_no_machine else None,
    )
