# SPDX-License-Identifier: Apache-2.0
"""No network while a library builds a model: its switches are set, and a connection is refused whoever asks for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pybench.errors import InputError

_SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")
_CONNECTING = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname")
_refusing: list[str] = []  # for which model, while it is built
_installed: list[bool] = []  # an audit hook cannot be removed


@contextmanager
def offline(model: str) -> Iterator[None]:
    """Raises InputError where code inside would connect to anything. Before the first import of a library."""
    os.environ.update(dict.fromkeys(_SWITCHES, "1"))
    if not _installed:
        sys.addaudithook(_refuse)
        _installed.append(True)
    _refusing.append(model)
    try:
        yield
    finally:
        _refusing.pop()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if _refusing and event in _CONNECTING and not _is_local(arguments):
        raise InputError(
            f"{_refusing[-1]} asks for the network, and models are built without it",
            hint="give `checkpoint` a file or folder of weights that is on this machine",
        )


def _is_local(arguments: tuple[Any, ...]) -> bool:
    """Whether a socket is of this machine's file system."""
    return bool(arguments) and getattr(getattr(arguments[0], "family", None), "name", "") == "AF_UNIX"
