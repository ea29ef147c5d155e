# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while packages are imported.

Imported code can make another error of KeyboardInterrupt, drop it, or panic and print. So the first SIGINT waits until
the import has ended, and a second one does not.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_PAUSE_S = 0.01


@contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """Every SIGINT that came meanwhile. What fails after one is no defect."""
    found: list[int] = []
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield found
        return
    is_answered, is_over = threading.Event(), threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if is_over.is_set():  # sent again a moment too late
            return
        found.append(number)
        if len(found) == 1 and _is_importing(frame):
            threading.Thread(target=_send_again, args=(is_answered,), daemon=True).start()
        else:
            is_answered.set()
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield found
    finally:
        is_over.set()
        is_answered.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _send_again(is_answered: threading.Event) -> None:
    """Repeats SIGINT when the main thread imports nothing any more, unless a second one ended the import."""
    main = threading.main_thread().ident
    assert main is not None
    while _is_importing(sys._current_frames().get(main)):
        time.sleep(_PAUSE_S)
    if not is_answered.is_set():
        signal.pthread_kill(main, signal.SIGINT)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
