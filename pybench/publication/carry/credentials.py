# SPDX-License-Identifier: Apache-2.0
"""Who we are to a registry: what `docker login`, `podman login` or `skopeo login` stored.

Read in podman's order: $REGISTRY_AUTH_FILE, $XDG_RUNTIME_DIR/containers/auth.json, ~/.config/containers/auth.json, then
Docker's config.json ($DOCKER_CONFIG or ~/.docker). An entry for `host/name` comes before one for `host`. Where a file
names a credential helper, that program is asked, as docker does. Nothing is ever stored or printed.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybench.errors import PybenchError

_DOCKER_HUB = ("docker.io", "registry-1.docker.io", "index.docker.io")
_DOCKER_HUB_KEY = "https://index.docker.io/v1/"
_HELPER_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name and password, or an identity token in place of the password (then `name` is empty)."""

    name: str
    password: str = field(repr=False)

    def basic(self) -> str:
        """The value of an Authorization header."""
        return "Basic " + base64.b64encode(f"{self.name}:{self.password}".encode()).decode()


def find(host: str, repository: str) -> Credentials | None:
    """What is stored for a registry, or None: then we are nobody in particular."""
    for path in _files():
        stored = _read(path)
        if stored is None:
            continue
        found = _of_file(stored, host, repository)
        if found is not None:
            return found
    return None


def _files() -> Iterator[Path]:
    environment = os.environ
    if "REGISTRY_AUTH_FILE" in environment:
        yield Path(environment["REGISTRY_AUTH_FILE"])
        return  # as podman: named means that one alone
    if "XDG_RUNTIME_DIR" in environment:
        yield Path(environment["XDG_RUNTIME_DIR"]) / "containers" / "auth.json"
    home = Path(environment.get("HOME") or "/")
    yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "containers" / "auth.json"
    yield Path(environment.get("DOCKER_CONFIG") or home / ".docker") / "config.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise PybenchError(f"{path}, where registries' logins are, cannot be read: {error}") from error
    return stored if isinstance(stored, dict) else None


def _of_file(stored: Mapping[str, Any], host: str, repository: str) -> Credentials | None:
    helpers = stored.get("credHelpers")
    helper = (helpers.get(host) if isinstance(helpers, dict) else None) or stored.get("credsStore")
    auths = stored.get("auths")
    entries = auths if isinstance(auths, dict) else {}
    for key in _keys(host, repository):
        if key not in entries:
            continue
        found = _of_entry(entries[key])
        if found is not None:
            return found
    return _ask_helper(str(helper), _DOCKER_HUB_KEY if host in _DOCKER_HUB else host) if helper else None


def _keys(host: str, repository: str) -> Iterator[str]:
    """From the most particular to the least."""
    parts = repository.split("/")
    yield from (f"{host}/{'/'.join(parts[:count])}" for count in range(len(parts), 0, -1))
    yield from (host, f"https://{host}", f"https://{host}/", f"https://{host}/v2/", f"http://{host}")
    if host in _DOCKER_HUB:
        yield from (_DOCKER_HUB_KEY, *_DOCKER_HUB)


def _of_entry(entry: object) -> Credentials | None:
    if not isinstance(entry, dict):
        return None
    if entry.get("identitytoken"):
        return Credentials("", str(entry["identitytoken"]))
    try:
        name, colon, password = base64.b64decode(str(entry.get("auth") or ""), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Credentials(name, password.rstrip("\0")) if colon else None


def _ask_helper(name: str, server: str) -> Credentials | None:
    """`docker-credential-NAME get`: Docker's protocol. A helper that knows nothing fails, which is no error of ours."""
    if not re.fullmatch(r"[\w.-]+", name):
        return None
    try:
        done = subprocess.run(
            [f"docker-credential-{name}", "get"],
            input=server.encode(),
            capture_output=True,
            timeout=_HELPER_TIMEOUT_S,
            check=False,
        )
        stored = json.loads(done.stdout) if done.returncode == 0 else {}
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    if not isinstance(stored, dict) or not stored.get("Secret"):
        return None
    user = str(stored.get("Username", ""))
    return Credentials("" if user == "<token>" else user, str(stored["Secret"]))
