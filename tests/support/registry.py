# SPDX-License-Identifier: Apache-2.0
"""A real registry on loopback, Debian's docker-registry."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_ports
from tests.support.waiting import wait_for

REGISTRY = shutil.which("docker-registry")
NO_REGISTRY = "docker-registry is not installed (Debian: apt-get install docker-registry)"


@dataclass(frozen=True)
class RunningRegistry:
    """docker-registry at `host`, keeping everything below `root`."""

    host: str
    root: Path

    def blob(self, digest: str) -> Path:
        """Where it stores a blob's bytes."""
        value = digest.removeprefix("sha256:")
        return self.root / "docker/registry/v2/blobs/sha256" / value[:2] / value / "data"


@contextmanager
def serve_registry(folder: Path, more: str = "") -> Iterator[RunningRegistry]:
    """A registry whose configuration has `more` besides, without TLS; skips the test where there is none."""
    if REGISTRY is None:
        pytest.skip(f"SKIPPED: {NO_REGISTRY}")
    (port,) = free_ports(1)
    (folder / "config.yml").write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
        f'http: {{addr: "127.0.0.1:{port}"}}\n{more}'
    )
    with open(folder / "log", "wb") as log:
        command = [REGISTRY, "serve", str(folder / "config.yml")]
        # docker-registry takes every variable REGISTRY_... for a setting, $REGISTRY_AUTH_FILE of podman's, too.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("REGISTRY_")}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            wait_for(lambda: _listens(port) or process.poll() is not None)
            assert process.poll() is None, f"docker-registry ended: {(folder / 'log').read_text()}"
            yield RunningRegistry(f"127.0.0.1:{port}", folder / "data")
        finally:
            process.terminate()
            process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
