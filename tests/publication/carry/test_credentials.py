# SPDX-License-Identifier: Apache-2.0
"""Logins as podman, skopeo and docker store them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from pybench.errors import PybenchError
from pybench.publication.carry.credentials import Credentials, find


def _auth(login: str) -> dict[str, str]:
    return {"auth": base64.b64encode(login.encode()).decode()}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _store(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def test_nobody_is_logged_in_where_nothing_is_stored(home: Path) -> None:
    assert find("ghcr.io", "ada/x") is None


def test_the_most_particular_entry_counts(home: Path) -> None:
    entries = {"ghcr.io": _auth("a:1"), "ghcr.io/ada": _auth("b:2:3"), "ghcr.io/ada/y": _auth("c:4")}
    _store(home / ".config/containers/auth.json", {"auths": entries})
    assert find("ghcr.io", "ada/x") == Credentials("b", "2:3")
    assert find("ghcr.io", "eve/x") == Credentials("a", "1")
    assert find("quay.io", "ada/x") is None


def test_podmans_files_come_before_dockers(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _store(home / ".docker/config.json", {"auths": {"ghcr.io": _auth("docker:1")}})
    assert find("ghcr.io", "x") == Credentials("docker", "1")
    _store(home / "run/containers/auth.json", {"auths": {"ghcr.io": _auth("podman:1")}})
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    assert find("ghcr.io", "x") == Credentials("podman", "1")
    _store(home / "named.json", {})
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(home / "named.json"))
    assert find("ghcr.io", "x") is None


def test_docker_hub_has_a_name_of_its_own(home: Path) -> None:
    _store(home / ".docker/config.json", {"auths": {"https://index.docker.io/v1/": _auth("hub:1")}})
    assert find("docker.io", "ada/x") == Credentials("hub", "1")
    assert find("ghcr.io", "ada/x") is None


def test_an_identity_token_has_no_name(home: Path) -> None:
    _store(home / ".docker/config.json", {"auths": {"example.io": {"identitytoken": "t"}}})
    assert find("example.io", "x") == Credentials("", "t")


@pytest.mark.process
def test_a_credential_helper_is_asked_as_docker_asks_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = home / "bin" / "docker-credential-test"
    helper.parent.mkdir()
    helper.write_text(
        '#!/bin/sh\nread server\n[ "$1 $server" = "get example.io" ] || exit 1\n'
        'echo \'{"Username": "ada", "Secret": "s"}\'\n'
    )
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{helper.parent}:/usr/bin:/bin")
    _store(home / ".docker/config.json", {"credsStore": "test"})
    assert find("example.io", "x") == Credentials("ada", "s")
    assert find("other.io", "x") is None
    _store(home / ".docker/config.json", {"credHelpers": {"example.io": "not-installed", "other.io": "../../bin/sh"}})
    assert find("example.io", "x") is None
    assert find("other.io", "x") is None


@pytest.mark.parametrize("entry", [None, 1, {}, {"auth": "%%%"}, {"auth": "bm9jb2xvbg=="}])
def test_an_entry_that_says_nothing_is_passed_over(home: Path, entry: object) -> None:
    _store(home / ".docker/config.json", {"auths": {"example.io": entry}})
    assert find("example.io", "x") is None


def test_a_malformed_file_is_one_clear_error_without_its_contents(home: Path) -> None:
    path = home / ".docker/config.json"
    path.parent.mkdir()
    path.write_text('{"auths": secret')
    with pytest.raises(PybenchError, match=r"config\.json.*cannot be read") as caught:
        find("example.io", "x")
    assert "secret" not in str(caught.value)


def test_a_password_is_in_no_representation() -> None:
    assert "s3cret" not in repr(Credentials("ada", "s3cret"))
