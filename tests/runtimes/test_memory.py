# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pybench.errors import DeviceMemoryError, InputError
from pybench.runtimes.memory import memory_errors
from tests.support.making import write_classifier

TOO_MUCH = 1 << 50  # bytes: no machine has a petabyte


def test_torch_without_memory_is_told_by_its_allocators_words() -> None:
    with pytest.raises(DeviceMemoryError, match="memory ran out") as caught, memory_errors():
        torch.empty(TOO_MUCH, dtype=torch.uint8)
    assert caught.value.evidence == "RuntimeError: can't allocate memory"


def test_a_gpus_exhausted_memory_is_told_by_its_type() -> None:
    with pytest.raises(DeviceMemoryError) as caught, memory_errors():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 TiB")
    assert caught.value.evidence.endswith("OutOfMemoryError")


@pytest.mark.parametrize(
    "said",
    [
        "CUDA failure 2: out of memory ; GPU=0 ; expr=cudaStreamCreateWithFlags(&stream)",  # onnxruntime
        "CUDA error: out of memory",  # torch, but for its allocator
    ],
)
def test_memory_that_cuda_itself_has_not_is_told_by_its_words(said: str) -> None:
    with pytest.raises(DeviceMemoryError), memory_errors():
        raise RuntimeError(said)


def test_numpy_without_memory_is_told_by_its_type() -> None:
    with pytest.raises(DeviceMemoryError) as caught, memory_errors():
        np.empty(TOO_MUCH, np.uint8)
    assert "MemoryError" in caught.value.evidence


def test_a_size_that_numpy_cannot_count_is_no_memory_either() -> None:
    with pytest.raises(DeviceMemoryError), memory_errors():
        np.empty((1 << 40, 1 << 40), np.float32)


def test_onnxruntime_without_memory_is_told_by_its_words(tmp_path: Path) -> None:
    """In a process with a limited address space: the output of a huge batch does not fit."""
    path = write_classifier(tmp_path / "mine.onnx", classes=64)
    code = f"""
import resource, sys
from pathlib import Path
import numpy as np
from pybench.errors import DeviceMemoryError
from pybench.runtimes import onnxruntime
from pybench.runtimes.memory import memory_errors
session = onnxruntime.open_session(Path({str(path)!r}), precision="fp32", threads=1, device="cpu")
pixels = np.zeros((400_000, 1, 8, 8), np.float32)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 20_000_000, used + 20_000_000))
try:
    with memory_errors():
        session.run({{"pictures": pixels}})
except DeviceMemoryError as error:
    print(error.evidence)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip(), done.stderr


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(RuntimeError, match="shapes differ"), memory_errors():
        raise RuntimeError("shapes differ")
    with pytest.raises(InputError), memory_errors():
        raise InputError("the text says: out of memory, bad_alloc")
