# SPDX-License-Identifier: Apache-2.0
"""The vendor's module, found when it is needed, and the one place where its majors differ.

Enumerators are only ever named: their numbers changed between 10 and 11. Nothing here touches a `Builder` or a
`Runtime`, which abort the process where there is no GPU. docs/user/tensorrt.md says how to install it and what differs.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError, in_short

OLDEST = (10, 6)
MAJORS = (10, 11)
HINT = "install NVIDIA's `tensorrt` (10.6 or later, or 11): docs/user/tensorrt.md"


def installed() -> dict[str, Any]:
    """What `pybench doctor` tells. Raises UnsupportedError as `load` does."""
    return {"version": load().__version__}


def load() -> Any:
    """The module `tensorrt`. Raises UnsupportedError (`no_tensorrt`) where there is none, or one that is not known."""
    try:
        library = importlib.import_module("tensorrt")
    except ImportError as error:
        raise UnsupportedError(
            f"TensorRT cannot be imported ({error})", code=Cause.NO_PACKAGE, names=("tensorrt",), hint=HINT
        ) from error
    version = version_of(library)
    if version < OLDEST or version[0] not in MAJORS:
        raise UnsupportedError(
            f"TensorRT {library.__version__} is not known to this pybench",
            code=Cause.NO_PACKAGE,
            names=("tensorrt",),
            hint=HINT,
        )
    return library


def version_of(library: Any) -> tuple[int, int]:
    """(major, minor)."""
    numbers = re.findall(r"\d+", str(library.__version__))
    return int(numbers[0]), int(numbers[1])


def strongly_typed(library: Any) -> int:
    """Flags of a network whose types are those of the ONNX file: asked for in 10, the only kind there is in 11."""
    return 1 << int(library.NetworkDefinitionCreationFlag.STRONGLY_TYPED)


def scratch_bytes(engine: Any) -> int | None:
    """Device memory that one execution of an engine needs beside its weights; None: this version does not tell."""
    size = getattr(engine, "device_memory_size_v2", None)
    return None if size is None else int(size)


@dataclass(slots=True)
class Messages:
    """What TensorRT's logger was told, of warnings and errors."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def forget(self) -> None:
        """What was said so far is of something else."""
        self.errors.clear()
        self.warnings.clear()

    def last(self) -> str:
        """The last error, shortened, or what stands for none."""
        return in_short(self.errors[-1], 400) if self.errors else "TensorRT gave no reason"


@cache
def listen() -> tuple[Any, Messages]:
    """The process's one ILogger, which prints nothing, and what it has been told.

    TensorRT keeps the first logger that it is given for everything that comes later in the process.
    """
    library: Any = load()
    messages = Messages()

    class Logger(library.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            library.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:
            if severity in (library.ILogger.ERROR, library.ILogger.INTERNAL_ERROR):
                messages.errors.append(text)
            elif severity == library.ILogger.WARNING:
                messages.warnings.append(text)

    return Logger(), messages
