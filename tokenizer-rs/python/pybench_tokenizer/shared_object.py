# SPDX-License-Identifier: Apache-2.0
"""The one shared object: where it lies, that it fits, and how its statuses become exceptions.

maturin puts the object and its cffi declarations (derived from `src/ffi.rs` and `src/ffi/`) into the subpackage
`pybench_tokenizer`. Calls through cffi release the GIL.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pybench_tokenizer.errors import ArgumentError, FormatError, InternalError, TokenizerError, UnsupportedError

# By name, because the subpackage exists only once it is built, and has no types.
_generated = import_module("pybench_tokenizer.pybench_tokenizer")
ffi: Any = _generated.ffi
lib: Any = _generated.lib

ABI_VERSION = 2

OK = 0
ERROR_ARGUMENT = 1
ERROR_FORMAT = 3
ERROR_UNSUPPORTED = 4
ERROR_UTF8 = 5
ERROR_CAPACITY = 6
ERROR_ID = 7
ERROR_MEMORY = 9

MESSAGE_BYTES = 1024


def object_path() -> Path:
    """The file of the shared object that this package has loaded; another language may open the same."""
    found = sorted(Path(str(_generated.__file__)).parent.glob("*.so"))
    if len(found) != 1:
        raise InternalError(f"expected one shared object beside {_generated.__file__}, found {len(found)}")
    return found[0].resolve()


def build_id() -> str:
    """Name and version that the object gives itself."""
    return str(ffi.string(lib.pbt_build_id()).decode())


def error_of(status: int, what: str) -> TokenizerError:
    """The exception for a status that its caller does not treat itself."""
    if status == ERROR_ARGUMENT:
        return ArgumentError(what)
    return InternalError(f"{what}: status {status} of {build_id()}")


def call_explained(call: Callable[..., int], name: str) -> None:
    """Calls a function that writes why it refuses something, and raises that; `name` says what was refused."""
    message, message_bytes = ffi.new("char[]", MESSAGE_BYTES), ffi.new("size_t *")
    status = call(message, MESSAGE_BYTES, message_bytes)
    if status == OK:
        return
    text = f"{name}: {bytes(ffi.buffer(message, message_bytes[0])).decode()}"
    if status == ERROR_FORMAT:
        raise FormatError(text)
    if status == ERROR_UNSUPPORTED:
        raise UnsupportedError(text)
    raise error_of(status, text)


def _check_abi() -> None:
    found = int(lib.pbt_abi_version())
    if found != ABI_VERSION:
        raise InternalError(f"{object_path()} has ABI version {found}; this package needs {ABI_VERSION}: reinstall it")


_check_abi()
