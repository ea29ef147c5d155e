# SPDX-License-Identifier: Apache-2.0
"""The token service of a registry (distribution's `auth: token`): who knows the password gets a token, signed by
OpenSSL, for what it asks."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qs, urlsplit


class TokenService:
    """On loopback, for one user. `asked`: the scopes that tokens were given for."""

    def __init__(self, folder: Path, login: str) -> None:
        self.key, self.certificate = folder / "key.pem", folder / "certificate.pem"
        self.asked: list[str] = []
        self._login = "Basic " + base64.b64encode(login.encode()).decode()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
             "-keyout", str(self.key), "-out", str(self.certificate)],
            check=True, capture_output=True,
        )  # fmt: skip
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def configuration(self) -> str:
        """For the registry."""
        realm = f"http://127.0.0.1:{self._server.server_port}/token"
        return f"auth: {{token: {{realm: '{realm}', service: test, issuer: us, rootcertbundle: {self.certificate}}}}}\n"

    def __enter__(self) -> TokenService:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                scope = parse_qs(urlsplit(self.path).query).get("scope", [""])[0]
                known = self.headers.get("Authorization") == service._login
                content = json.dumps({"token": service._token(scope)} if known else {}).encode()
                self.send_response(200 if known else 401)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _token(self, scope: str) -> str:
        self.asked.append(scope)
        kind, name, actions = scope.split(":")
        now = int(time.time())
        lines = self.certificate.read_text().splitlines()
        header = {"typ": "JWT", "alg": "RS256", "x5c": ["".join(line for line in lines if "-" not in line)]}
        claims = {
            "iss": "us", "sub": "ada", "aud": "test", "exp": now + 300, "nbf": now - 60, "iat": now, "jti": str(now),
            "access": [{"type": kind, "name": name, "actions": actions.split(",")}],
        }  # fmt: skip
        signed = f"{_encoded(json.dumps(header).encode())}.{_encoded(json.dumps(claims).encode())}"
        command = ["openssl", "dgst", "-sha256", "-sign", str(self.key)]
        signature = subprocess.run(command, input=signed.encode(), capture_output=True, check=True).stdout
        return f"{signed}.{_encoded(signature)}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
