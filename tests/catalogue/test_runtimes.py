# SPDX-License-Identifier: Apache-2.0
"""What the rows of runtimes and precisions promise, and that the code which they name is there."""

from __future__ import annotations

import importlib
import inspect
import json
import math
from dataclasses import asdict
from typing import Any

import pytest

from pybench.case.factors import FACTORS
from pybench.catalogue.packages import PACKAGES
from pybench.catalogue.precisions import NUMBER_TYPES, PRECISIONS, missing_type
from pybench.catalogue.runtimes import RUNTIMES, Backend, Runtime
from pybench.measurement.audits import audit_of

GPU_BACKENDS = [(row, backend) for row in RUNTIMES.values() for backend in row.backends if backend.needs_gpu]


@pytest.mark.parametrize("row", RUNTIMES.values(), ids=lambda row: row.name)
def test_a_row_survives_json(row: Runtime) -> None:
    stored = json.loads(json.dumps(asdict(row)))
    backends = tuple(Backend(**_with_tuples(backend)) for backend in stored["backends"])
    assert Runtime(**{**_with_tuples(stored), "backends": backends}) == row


def _with_tuples(stored: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}


@pytest.mark.parametrize("row", RUNTIMES.values(), ids=lambda row: row.name)
def test_a_row_names_known_things(row: Runtime) -> None:
    executed = [row.precisions, row.trains, *(backend.precisions for backend in row.backends)]
    assert set().union(*executed) <= set(PRECISIONS)
    told = (row.precisions, row.backends, row.computes_in)
    assert sum(map(bool, told)) == 1, "the runtime infers in precisions, or its backends do, or it has one type"
    assert set(row.needs) <= set(PACKAGES)
    assert {*row.factors, *row.build_factors} <= set(FACTORS)
    assert set(row.graph_modes) < set(row.modes) or not row.modes
    assert row.quantiser in FACTORS["quantiser"].choices


@pytest.mark.parametrize("row", RUNTIMES.values(), ids=lambda row: row.name)
def test_every_runtime_has_a_start_that_takes_time(row: Runtime) -> None:
    starts = [row.start_s, *(backend.start_s for backend in row.backends if backend.start_s is not None)]
    assert all(start > 0.3 and math.isfinite(start) for start in starts)


@pytest.mark.parametrize("name", [name for name in RUNTIMES if not name.startswith("torch-tensorrt")])
def test_the_code_that_a_row_names_is_there(name: str) -> None:
    row = RUNTIMES[name]
    opening = inspect.signature(importlib.import_module(row.module).open_case)
    assert list(opening.parameters) == ["given", "spec", "case", "threads", "deterministic"]
    assert list(inspect.signature(audit_of(row)).parameters) == ["session", "case", "given"]


def test_a_backend_is_the_named_one_or_the_first_for_what_there_is() -> None:
    row = RUNTIMES["onnxruntime"]
    found = [row.backend(provider, has_gpu) for provider in (None, "cpu", "tensorrt") for has_gpu in (False, True)]
    names = [None if backend is None else backend.name for backend in found]
    assert names == ["cpu", "cuda", "cpu", "cpu", "tensorrt", "tensorrt"]
    assert RUNTIMES["torch"].backend(None, has_gpu=True) is None


def test_a_backend_for_gpus_executes_nothing_on_a_cpu() -> None:
    for row, backend in GPU_BACKENDS:
        assert set(backend.precisions.values()) == {"on_gpu"}, (row.name, backend.name)


@pytest.mark.parametrize(
    ("precision", "capability", "missing"),
    [
        ("fp32", 5.0, None), ("tf32", 7.5, "tf32"), ("tf32", 8.0, None), ("amp-bf16", 7.0, "bf16"),
        ("int8+bf16", 7.0, "bf16"), ("fp8+bf16", 7.0, "fp8"), ("fp8+fp16", 8.6, "fp8"), ("fp8", 8.9, None),
    ],
)  # fmt: skip
def test_a_precision_needs_a_gpu_that_multiplies_in_its_types(
    precision: str, capability: float, missing: str | None
) -> None:
    found = missing_type(precision, capability)
    assert (found and found.name) == missing


def test_a_precision_multiplies_in_known_types_the_claimed_one_first() -> None:
    for row in PRECISIONS.values():
        assert set(row.multiplies) <= set(NUMBER_TYPES)
        assert row.weights_alone or row.quantised in (None, row.multiplies[0])
        assert row.quantised is not None or len(row.multiplies) == 1
