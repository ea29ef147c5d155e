# SPDX-License-Identifier: Apache-2.0
"""What a report computes has the same bits on every processor."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np

import pybench
from pybench.analysis.statistics import elementary

# NumPy chooses between implementations of these by the processor, and they differ in the last bit.
BY_PROCESSOR = frozenset({
    "cbrt", "cos", "einsum", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "power", "sin", "tan", "tanh",
})  # fmt: skip
PACKAGES = ("analysis", "dataset", "kernels", "report")


def test_a_report_uses_nothing_of_numpy_that_depends_on_the_processor() -> None:
    found: list[str] = []
    for package in PACKAGES:
        for path in (Path(pybench.__file__).parent / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.expr) and (what := _depends(node)):
                    found.append(f"{path.name}:{node.lineno}: {what}")
    assert found == [], "use pybench.analysis.statistics.elementary"


def _depends(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np":
        return f"np.{node.attr}" if node.attr in BY_PROCESSOR else None
    match node:
        case ast.BinOp(ast.Constant(), ast.Pow()):
            return None
        case ast.BinOp(_, ast.Pow(), ast.Constant(int(exponent))) if exponent > 2:
            return f"** {exponent}"
        case ast.BinOp(_, ast.MatMult()):
            return "@"
    return None


def test_each_function_is_that_of_the_c_library_in_the_shape_given() -> None:
    values = np.array([[0.1, 1.0, 2.5], [7.0, 1e-3, 1e3]])
    for mine, plain in (
        (elementary.log, math.log),
        (elementary.exp_of, elementary.exp),
        (elementary.cube, lambda value: value * value * value),
    ):
        found = mine(values)
        assert found.shape == values.shape
        assert found.tolist() == [[plain(value) for value in row] for row in values.tolist()]
    assert elementary.exp(1e9) == math.inf
