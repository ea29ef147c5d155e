# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium driven over its debugging pipe: no driver, no package, nothing but the standard library.

Messages of the DevTools protocol are JSON ended by a zero byte: commands go in on descriptor 3, replies and events come
out on descriptor 4 (`--remote-debugging-pipe`).
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
TIMEOUT_S = 90.0
# Keys with their virtual key codes.
ENTER, ESCAPE, ARROW_RIGHT, ARROW_DOWN = ("Enter", 13), ("Escape", 27), ("ArrowRight", 39), ("ArrowDown", 40)

# Puts the two ends where Chromium looks for them, in a process of its own: between fork and exec it is unsafe with
# threads. Copies first, because either end may already be 3 or 4.
_PLACE = """
import os, sys
reading, writing = (os.dup(int(end)) for end in sys.argv[1:3])
os.dup2(reading, 3)
os.dup2(writing, 4)
for end in (3, 4):
    os.set_inheritable(end, True)  # a copy that landed on its place by itself is not
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page. `events` collects everything that the browser reported since the page was opened."""

    def __init__(self, program: str, profile: Path) -> None:
        inward, outward = os.pipe(), os.pipe()

        command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PLACE, str(inward[0]), str(outward[1]), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(inward[0], outward[1]),
        )
        os.close(inward[0])
        os.close(outward[1])
        self._writing, self._reading = inward[1], outward[0]
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._writing)
        os.close(self._reading)
        self._process.terminate()
        self._process.wait(120)

    def open(self, page: Path, *, scripts: bool = True) -> None:
        """Loads a file and waits until it and its scripts are done. `scripts`: whether those of the page may run."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._call("Page.navigate", url=page.resolve().as_uri())
        self._wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page, or what its promise is kept with."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise ValueError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """A key on the keyboard. `code`: its Windows virtual key code."""
        text = {"Enter": "\r"}.get(key)
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        for event in (down, {"type": "keyUp"}):
            self._call("Input.dispatchKeyEvent", **event, key=key, code=key, windowsVirtualKeyCode=code)

    def point_at(self, x: float, y: float) -> None:
        """Moves the mouse to a place of the window, in CSS pixels."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def prefer(self, scheme: str) -> None:
        """`scheme`: dark or light."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def complaints(self) -> list[str]:
        """Console errors and warnings, exceptions, and what the browser logged."""
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown" or (
                event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning")
            ):
                found.append(json.dumps(event["params"]))
            if event["method"] == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            received = self._receive()
            if received.get("id") == self._number:
                if "error" in received:
                    raise ValueError(f"{method}: {received['error']}")
                result: dict[str, Any] = received["result"]
                return result
            self._keep(received)

    def _wait_for(self, method: str) -> None:
        while not any(event["method"] == method for event in self.events):
            self._keep(self._receive())

    def _keep(self, received: dict[str, Any]) -> None:
        if "method" in received:
            self.events.append(received)

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._reading], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                raise TimeoutError("Chromium said nothing")
            received = os.read(self._reading, 1 << 16)
            if not received:
                raise EOFError("Chromium went away")
            self._rest += received
        message, self._rest = self._rest.split(b"\0", 1)
        parsed: dict[str, Any] = json.loads(message)
        return parsed
