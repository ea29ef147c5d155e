# SPDX-License-Identifier: Apache-2.0
"""Publications to fetch and to tamper with, and a real registry on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pybench.publication import OciArtefact, PackedPublication, PublishOptions, assemble, stage, write_layout
from pybench.publication.carry import archive
from tests.publication.campaigns import build_small, render_nothing
from tests.support.registry import RunningRegistry, serve_registry

COVERAGE = {"planned": 4, "covered": 4, "full": True, "states": {"ok": 4}}


@dataclass(frozen=True)
class Published:
    """One campaign in every form."""

    campaign: Path
    package: PackedPublication
    artefact: OciArtefact
    layout: Path
    zip: Path
    tar: Path


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("published")
    campaign = build_small(folder / "small").path
    (folder / "staged").mkdir()
    (folder / "blobs").mkdir()
    package = stage(campaign, folder / "staged", PublishOptions(), COVERAGE, render_nothing)
    artefact = assemble(package, folder / "blobs")
    write_layout(artefact, folder / "layout")
    archive.write(package, folder / "small.zip")
    archive.write(package, folder / "small.tar.zst")
    return Published(campaign, package, artefact, folder / "layout", folder / "small.zip", folder / "small.tar.zst")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    """A registry without logins."""
    with serve_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def no_logins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever is stored on the machine that runs the tests is not used."""
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "no-auth.json"))
