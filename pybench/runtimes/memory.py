# SPDX-License-Identifier: Apache-2.0
"""Memory that ran out, told from what a framework raises: the type of its error, or the words of its allocator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pybench.errors import DeviceMemoryError, PybenchError

# Words of allocators: torch's CPU and CUDA ones, numpy's, C++'s, onnxruntime's arena, cuBLAS and cuDNN handles, CUDA
# itself, as torch and onnxruntime say it.
ALLOCATOR_WORDS = (
    "can't allocate memory",
    "array is too big",
    "cuda out of memory",
    "cuda error: out of memory",
    "cuda failure 2:",
    "bad_alloc",
    "bad allocation",
    "failed to allocate memory",
    "status_alloc_failed",
    "cudaerrormemoryallocation",
    "unable to allocate",
)
HINT = "choose a smaller batch, sequence or model; nothing is retried smaller"


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turns whatever says that memory ran out into DeviceMemoryError with that evidence; lets all else pass."""
    try:
        yield
    except PybenchError:
        raise
    except Exception as error:
        evidence = memory_evidence(error)
        if evidence is None:
            raise
        raise DeviceMemoryError(f"memory ran out: {_first_line(error)}", evidence=evidence, hint=HINT) from error


def memory_evidence(error: BaseException) -> str | None:
    """What in `error` says that memory ran out (`torch.OutOfMemoryError`, `RuntimeError: bad_alloc`), or None."""
    kind = type(error)
    if isinstance(error, MemoryError) or kind.__name__ == "OutOfMemoryError":
        return f"{kind.__module__}.{kind.__qualname__}"
    text = str(error).lower()
    word = next((word for word in ALLOCATOR_WORDS if word in text), None)
    return None if word is None else f"{kind.__name__}: {word}"


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
