# SPDX-License-Identifier: Apache-2.0
"""A worker imports what its case needs and no more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pybench.case import Case, case_to_json
from tests.support.making import artefacts_of

INT8 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8", threads=1, iterations=5)
HEAVY = ("torch", "onnx", "onnxruntime", "sklearn", "scipy", "polars", "matplotlib", "typer", "PIL",
         "torch._dynamo")  # torch's compiler  # fmt: skip


@pytest.mark.parametrize(
    ("case", "allowed"),
    [
        (Case(workload="noop"), set()),
        (INT8, {"onnxruntime"}),
        (INT8.with_factors(precision="fp32"), {"onnxruntime"}),
        (INT8.with_factors(workload="accuracy"), {"onnxruntime"}),
        (INT8.with_factors(precision="fp32", runtime="torch"), {"torch"}),
        (Case(workload="tokenize", path="rust", iterations=2, corpus_limit_bytes=50_000, threads=1), set()),
    ],
)
def test_a_run_imports_only_what_its_case_needs(case: Case, allowed: set[str]) -> None:
    artefacts = {role: str(path) for role, path in artefacts_of(case).items()}
    code = f"""
import json, sys
from pathlib import Path
from pybench import workloads
from pybench.case import case_from_json
from pybench.measurement.result import RunRequest
case = case_from_json(json.loads({json.dumps(case_to_json(case))!r}))
artefacts = {{role: Path(path) for role, path in {artefacts!r}.items()}}
workloads.run(RunRequest(case=case, block=0, attempt=1, seed=0, artefacts=artefacts, files={{}}))
print(",".join(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(filter(None, done.stdout.strip().split(","))) == allowed
