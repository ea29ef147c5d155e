# SPDX-License-Identifier: Apache-2.0
"""An image in a real registry on loopback, named by digest: podman pulls it once, and what is wrong is one error."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pybench.errors import PybenchError
from pybench.launcher import Container, open_container
from pybench.machine import facts
from tests.support.registry import serve_registry

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif(shutil.which("skopeo") is None, reason="SKIPPED: skopeo is not installed"),
]


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets podman use a registry without TLS."""

    def allow(host: str) -> None:
        insecure = tmp_path / "registries.conf"
        insecure.write_text(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
        monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(insecure))

    return allow


@pytest.fixture
def registry(tmp_path: Path, allowed: Callable[[str], None]) -> Iterator[str]:
    """The address of a registry without TLS that podman may use."""
    with serve_registry(tmp_path) as running:
        allowed(running.host)
        yield running.host


def refusal(host: str) -> str:
    """The hint where podman cannot take in an image that the registry does not have."""
    with pytest.raises(PybenchError, match="podman cannot take in") as raised:
        open_container(f"{host}/pybench@sha256:{'0' * 64}", "podman", lambda text: None)
    return str(raised.value.hint)


def test_an_image_is_pulled_by_its_digest_and_runs(
    registry: str, small_archive: tuple[Path, str], container: Container
) -> None:
    archive, digest = small_archive
    copy = ["skopeo", "--insecure-policy", "copy", "--quiet", "--preserve-digests", "--dest-tls-verify=false",
            f"oci-archive:{archive}", f"docker://{registry}/pybench:small"]  # fmt: skip
    subprocess.run(copy, check=True, capture_output=True)
    opened = open_container(f"docker://{registry}/pybench@{digest}", "podman", lambda text: None)
    assert opened.image.digest == digest
    assert facts.ask(("machine",), opened)["machine"]["available"]
    assert "check its name and its digest" in refusal(registry)


def test_a_registry_that_wants_a_login_is_told_so(
    tmp_path: Path, container: Container, allowed: Callable[[str], None]
) -> None:
    (tmp_path / "users").touch()
    with serve_registry(tmp_path, f"auth: {{htpasswd: {{realm: here, path: {tmp_path}/users}}}}\n") as running:
        allowed(running.host)
        assert "`podman login HOST`" in refusal(running.host)


def test_a_registry_without_tls_is_told_so(tmp_path: Path, container: Container) -> None:
    with serve_registry(tmp_path) as running:
        assert "the registry has no TLS" in refusal(running.host)


def test_a_registry_that_is_down_is_named_with_what_to_do(container: Container) -> None:
    with pytest.raises(PybenchError, match=r"podman cannot take in 127\.0\.0\.1:9/pybench@sha256") as raised:
        open_container(f"127.0.0.1:9/pybench@sha256:{'a' * 64}", "podman", lambda text: None)
    assert "does the registry answer?" in str(raised.value.hint)
