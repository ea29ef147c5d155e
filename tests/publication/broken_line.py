# SPDX-License-Identifier: Apache-2.0
"""A line to a server that counts what passes and breaks when told to: a TCP relay on loopback."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class BrokenLine:
    """Relays to `target` ("host:port"; None: takes connections and says nothing). After `cut_up_after` or
    `cut_down_after` bytes since the last cut it drops the connection, `cuts` times; `then_dead`: and takes no more."""

    def __init__(
        self,
        target: str | None,
        *,
        cut_up_after: int | None = None,
        cut_down_after: int | None = None,
        cuts: int = 0,
        then_dead: bool = False,
    ) -> None:
        self._target = target
        self._after = {"up": cut_up_after, "down": cut_down_after}
        self._since_cut = {"up": 0, "down": 0}
        self._bytes = {"up": 0, "down": 0}
        self._cuts = cuts
        self._then_dead = then_dead
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.cut = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def up_bytes(self) -> int:
        return self._bytes["up"]

    @property
    def down_bytes(self) -> int:
        return self._bytes["down"]

    def __enter__(self) -> BrokenLine:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._drop(self._listener, *self._open)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._then_dead and self.cut >= self._cuts:
                    client.close()
                    continue
                self._open.append(client)
                if self._target is not None:
                    host, _, port = self._target.rpartition(":")
                    server = socket.create_connection((host, int(port)))
                    self._open.append(server)
                    for way, source, sink in (("up", client, server), ("down", server, client)):
                        threading.Thread(target=self._relay, args=(way, source, sink), daemon=True).start()

    def _relay(self, way: str, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(65536):
                if self._is_to_cut(way, len(chunk)):
                    break
                sink.sendall(chunk)
        self._drop(source, sink)

    def _is_to_cut(self, way: str, size: int) -> bool:
        with self._lock:
            self._bytes[way] += size
            self._since_cut[way] += size
            limit = self._after[way]
            if limit is None or self.cut >= self._cuts or self._since_cut[way] < limit:
                return False
            self.cut += 1
            self._since_cut = {"up": 0, "down": 0}
            return True

    def _drop(self, *sockets: socket.socket) -> None:
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
