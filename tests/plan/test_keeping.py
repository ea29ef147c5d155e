# SPDX-License-Identifier: Apache-2.0
"""`keep_error_max` where no search can be made, each at its place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Problems = Callable[..., list[str]]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "model: digits-cnn, runtime: tensorrt, precision: int8, quantiser: qat",
            "4:110: no search of nodes to keep in FP32 is made with the quantiser qat (use quantiser pybench or onnxr",
        ),
        (
            "model: mlp, runtime: tensorrt, precision: fp8, quantiser: modelopt",
            "4:107: no search of nodes to keep in FP32 is made with the quantiser modelopt (use quantiser pybench)",
        ),
        (
            "model: mlp, runtime: onnxruntime, precision: int4, quantiser: weight-only",
            "4:114: no search of nodes to keep in FP32 is made with the quantiser weight-only (leave `keep_error_max`",
        ),
        (
            "model: mlp, runtime: tensorrt, precision: fp16",
            "4:71: `keep_error_max` changes nothing in this entry (only int8, int4 and fp8 are quantised)",
        ),
    ],
)
def test_a_search_that_cannot_be_made_is_refused_at_its_place(problems: Problems, entry: str, expected: str) -> None:
    found = problems(f"  - {{workload: infer, {entry}, keep_error_max: 0.1}}\n")
    assert found[0].startswith(expected), found
    assert len(found) == 1, found


def test_a_bound_that_no_error_meets_is_refused(problems: Problems) -> None:
    (found,) = problems("  - {workload: infer, model: mlp, runtime: tensorrt, precision: int8, keep_error_max: 0}\n")
    assert found.startswith("4:87: `keep_error_max` takes a number from 0.0001 to 1; not 0")
