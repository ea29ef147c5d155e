# SPDX-License-Identifier: Apache-2.0
"""Why TensorRT built nothing: its own words (10.6's, as recorded for a 3D U-Net in BF16 and INT8) decide the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.errors import DeviceMemoryError, PybenchError, UnsupportedError
from pybench.runtimes.tensorrt.building import _failure
from pybench.runtimes.tensorrt.library import Messages

SOURCE = Path("model.onnx")
REFUSED = (
    (
        "IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any implementation for node "
        "{ForeignNode[volumes_to_bfloat16...logits_to_fp32]}.)"
    ),
    (
        "[optimizer.cpp::getFormatRequirements::3299] Error Code 2: Internal Error (Assertion "
        "!n->candidateRequirements.empty() failed. No supported formats for pool/MaxPool, please check the TensorRT "
        "operator doc)"
    ),
)


@pytest.mark.parametrize("said", REFUSED)
def test_a_node_without_a_kernel_is_unsupported_and_named(said: str) -> None:
    error = _failure(SOURCE, Messages(errors=["something before", said]))
    assert isinstance(error, UnsupportedError)
    assert error.reason.stored_code == "no_kernel"
    assert "logits_to_fp32" in str(error) or "pool/MaxPool" in str(error)
    assert "keep_fp32" in (error.hint or "")


def test_memory_that_ran_out_is_what_is_said_even_where_no_kernel_was_left() -> None:
    error = _failure(SOURCE, Messages(errors=["Cuda Runtime (out of memory)", REFUSED[0]]))
    assert isinstance(error, DeviceMemoryError)


def test_any_other_failure_is_not_taken_for_a_limit_of_tensorrt() -> None:
    error = _failure(SOURCE, Messages(errors=["Error Code 1: Myelin"]))
    assert type(error) is PybenchError
    assert "Myelin" in str(error)
