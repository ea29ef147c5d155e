# SPDX-License-Identifier: Apache-2.0
"""Publications to fetch and to tamper with, and a real registry on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pybench.publication import Artefact, Package, Wishes, archive, assemble, stage, write_layout
from tests.publication.campaigns import build_small, render_nothing

COVERAGE = {"planned": 4, "covered": 4, "full": True, "states": {"ok": 4}}
REGISTRY = shutil.which("docker-registry")
NO_REGISTRY = "docker-registry is not installed (Debian: apt-get install docker-registry)"


@dataclass(frozen=True)
class Published:
    """One campaign in every form."""

    campaign: Path
    package: Package
    artefact: Artefact
    layout: Path
    zip: Path


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("published")
    campaign = build_small(folder / "small").path
    (folder / "staged").mkdir()
    (folder / "blobs").mkdir()
    package = stage(campaign, folder / "staged", Wishes(), COVERAGE, render_nothing)
    artefact = assemble(package, folder / "blobs")
    write_layout(artefact, folder / "layout")
    archive.write(package, folder / "small.zip")
    return Published(campaign, package, artefact, folder / "layout", folder / "small.zip")


@dataclass(frozen=True)
class RunningRegistry:
    """docker-registry at `host`, keeping everything below `root`."""

    host: str
    root: Path

    def blob(self, digest: str) -> Path:
        """Where it stores a blob's bytes."""
        value = digest.removeprefix("sha256:")
        return self.root / "docker/registry/v2/blobs/sha256" / value[:2] / value / "data"


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    """A registry without logins."""
    yield from serve_registry(tmp_path_factory.mktemp("registry"), "")


def serve_registry(folder: Path, more: str) -> Iterator[RunningRegistry]:
    """Starts a registry whose configuration has `more` besides, and stops it."""
    if REGISTRY is None:
        pytest.skip(NO_REGISTRY)
    port = free_port()
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
            _wait_for_start(process, port, folder / "log")
            yield RunningRegistry(f"127.0.0.1:{port}", folder / "data")
        finally:
            process.terminate()
            process.wait(10)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def _wait_for_start(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + 20
    while not _listens(port):
        assert process.poll() is None, f"docker-registry ended: {log.read_text()}"
        assert time.monotonic() < end, "docker-registry does not listen"
        time.sleep(0.02)


@pytest.fixture
def no_logins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever is stored on the machine that runs the tests is not used."""
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "no-auth.json"))
