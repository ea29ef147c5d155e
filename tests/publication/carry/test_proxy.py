# SPDX-License-Identifier: Apache-2.0
"""The way through a proxy that the environment names, as curl and skopeo read it."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pybench.errors import PybenchError, UsageError
from pybench.publication import FetchChecks, RegistryAccess, fetch, parse

ELSEWHERE = "registry.example.org/ada/small:1"


class _Proxy(BaseHTTPRequestHandler):
    """Knows no host, and keeps what it was asked."""

    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Proxy-Authorization")))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """`HOST:PORT` of a proxy; no other is named."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    _Proxy.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.usefixtures("no_logins")
@pytest.mark.parametrize(
    ("before", "login"),
    [("", None), ("http://", None), ("http://ada:%40b%20c@", "ada:@b c"), ("http://ada@", "ada:")],
)
def test_a_registry_is_reached_through_the_proxy(
    proxy: str, before: str, login: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("http_proxy", f"{before}{proxy}")
    with pytest.raises(PybenchError, match="does not exist or is not public"):
        fetch(parse(ELSEWHERE), tmp_path / "out", RegistryAccess(plain_http=True), FetchChecks())
    expected = None if login is None else "Basic " + base64.b64encode(login.encode()).decode()
    assert _Proxy.asked == [("http://registry.example.org/v2/ada/small/manifests/1", expected)]


@pytest.mark.parametrize("named", ["socks5://127.0.0.1:1080", "http://127.0.0.1:99999", "http://"])
def test_what_is_no_proxy_is_one_clear_error(
    proxy: str, named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("https_proxy", named)
    with pytest.raises(UsageError, match="https_proxy in the environment") as caught:
        fetch(parse(ELSEWHERE), tmp_path / "out", RegistryAccess(), FetchChecks())
    assert "registry.example.org to no_proxy" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
