# SPDX-License-Identifier: Apache-2.0
"""The orchestrator as a process that runs a model: questions and answers over a socket (docs/formats/native.md).

It is `pybench-orchestrator --control-fd`. Its end is told as an error with its last words; what it refuses comes as an
answer. Nothing here waits with a limit: a process that hangs is the runner's to end, with the worker, as a timeout.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pybench.catalogue.causes import Cause
from pybench.errors import DeviceMemoryError, InputError, PybenchError, UnsupportedError
from pybench.preprocess.program import Program
from pybench.runtimes.memory import HINT, memory_evidence
from pybench.runtimes.onnxruntime_errors import not_started, refusal_of, short

HEADER = struct.Struct("<IQ")  # bytes of JSON, raw bytes behind it


class NativeProcessError(PybenchError):
    """The native process died, or broke its protocol."""


class NativeOutputError(PybenchError):
    """The model gave NaN."""


class NativeProcess(Program):
    """One running process. `model` and `provider`: for errors."""

    serves = "its socket"

    def __init__(self, model: Path, provider: str, environment: Mapping[str, str] | None) -> None:
        """Starts it; call `close` in the end. Raises UnsupportedError where the program is missing."""
        self._model, self._provider = model, provider
        self._socket, theirs = socket.socketpair()
        self._is_open = True
        try:
            super().__init__(["--control-fd", str(theirs.fileno())], (theirs.fileno(),), environment=environment)
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()

    def ask(self, do: str, raw: bytes = b"", **parts: Any) -> tuple[dict[str, Any], bytes]:
        """The answer to one question: what it says, and the raw bytes with it.

        Raises NativeProcessError where the process is gone, NativeOutputError for NaN, and what it refuses else:
        InputError, UnsupportedError, DeviceMemoryError.
        """
        text = json.dumps({"do": do, **parts}).encode()
        try:
            self._socket.sendall(HEADER.pack(len(text), len(raw)) + text + raw)
            text_bytes, raw_bytes = HEADER.unpack(self._received(HEADER.size))
            answer, behind = json.loads(self._received(text_bytes)), self._received(raw_bytes)
        except (OSError, EOFError) as error:
            raise self._gone() from error
        if "error" in answer:
            raise self._refusal(answer)
        return answer, behind

    def _received(self, count: int) -> bytes:
        """Exactly so many bytes. Raises EOFError at the end of the stream."""
        whole = bytearray(count)
        view, filled = memoryview(whole), 0
        while filled < count:
            read = self._socket.recv_into(view[filled:])
            if read == 0:
                raise EOFError
            filled += read
        return bytes(whole)

    def _gone(self) -> PybenchError:
        self._socket.close()
        found = self.failure()
        return NativeProcessError(found.message, hint=found.hint)

    def _refusal(self, answer: Mapping[str, Any]) -> PybenchError:
        message, kind, hint = answer["error"], answer["kind"], answer.get("hint")
        evidence = memory_evidence(RuntimeError(message))
        if kind == "memory" or evidence is not None:
            return DeviceMemoryError(f"memory ran out: {short(message)}", evidence=evidence or "mmap", hint=HINT)
        if "status" in answer:
            return self._of_status(answer["status"], message)
        if kind == "unsupported":
            return UnsupportedError(message, code=Cause.NO_PACKAGE, names=("onnxruntime_library",), hint=hint)
        if kind == "input":
            return InputError(message, hint=hint)
        if kind == "output":
            return NativeOutputError(f"{self._model.name}: {message}", hint=hint)
        return NativeProcessError(message, hint=hint)

    def _of_status(self, status: str, message: str) -> PybenchError:
        """What ONNX Runtime refuses, which is mostly the file. Of a GPU it may be the failing."""
        if "providers_" in message and "Failed to load" in message:  # the provider's own library, or one that it needs
            return not_started(self._provider)
        refused = refusal_of(self._model, self._provider, status, message)
        return refused or NativeProcessError(
            f"ONNX Runtime failed: {short(message)} ({status})",
            hint="run the case with runtime: onnxruntime and path: rust, whose log says more",
        )

    def close(self) -> None:
        """Ends it; twice is harmless."""
        if self._is_open:
            self._is_open = False
            self._socket.close()
            super().close()


def environment_with(folders: list[Path]) -> dict[str, str] | None:
    """The environment in which the loader finds libraries in these folders as well; None: this process's, unchanged."""
    if not folders:
        return None
    before = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": ":".join([*map(str, folders), *([before] if before else [])])}
