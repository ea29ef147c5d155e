# SPDX-License-Identifier: Apache-2.0
"""A real registry (docker-registry) and a real client of others (skopeo), and a line between them that breaks."""

from __future__ import annotations

import base64
import json
import random
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

import pytest

from pybench.errors import CorruptError, PybenchError
from pybench.publication import (
    FetchChecks,
    FetchResult,
    OciArtefact,
    PublishOptions,
    Registry,
    RegistryAccess,
    assemble,
    fetch,
    parse,
    parse_registry,
    stage,
)
from pybench.publication.pack.report_parts import ReportParts
from tests.publication.broken_line import BrokenLine
from tests.publication.campaigns import render_nothing
from tests.publication.conftest import COVERAGE, Published
from tests.publication.token_service import TokenService
from tests.support.ports import free_ports
from tests.support.registry import RunningRegistry, serve_registry

pytestmark = pytest.mark.usefixtures("no_logins")
needs_skopeo = pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
PLAIN = RegistryAccess(timeout_s=60.0)


def _push(artefact: OciArtefact, reference: str, access: RegistryAccess = PLAIN) -> None:
    one = parse_registry(reference)
    Registry(one, access, writes=True).push(artefact, one.tag or "")


def _fetch(reference: str, target: Path, access: RegistryAccess = PLAIN) -> FetchResult:
    return fetch(parse(reference), target, access, FetchChecks())


def _skopeo(*arguments: str) -> str:
    done = subprocess.run(["skopeo", "--insecure-policy", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again is tested, not waiting."""
    monkeypatch.setattr("pybench.publication.carry.transport._FIRST_PAUSE_S", 0.01)


def test_what_is_pushed_comes_back_by_tag_and_by_digest(
    registry: RunningRegistry, published: Published, tmp_path: Path
) -> None:
    _push(published.artefact, f"{registry.host}/ada/small:1")
    for number, wanted in enumerate((":1", f"@{published.artefact.digest}")):
        fetched = _fetch(f"{registry.host}/ada/small{wanted}", tmp_path / str(number))
        assert fetched.digest == published.artefact.digest
        assert fetched.contents_sha256 == published.package.contents_sha256
    _push(published.artefact, f"{registry.host}/ada/small:1")  # again: nothing to send, nothing to complain about


@needs_skopeo
def test_skopeo_sees_and_copies_what_pybench_pushed(
    registry: RunningRegistry, published: Published, tmp_path: Path
) -> None:
    _push(published.artefact, f"{registry.host}/ada/seen:1")
    place = f"docker://{registry.host}/ada/seen:1"
    assert _skopeo("inspect", "--raw", "--tls-verify=false", place).encode() == published.artefact.manifest
    _skopeo("copy", "--quiet", "--preserve-digests", "--src-tls-verify=false", place, f"oci:{tmp_path}/layout:1")
    fetched = _fetch(f"{tmp_path}/layout:1", tmp_path / "out")
    assert (fetched.digest, fetched.contents_sha256) == (published.artefact.digest, published.package.contents_sha256)


@needs_skopeo
def test_pybench_fetches_what_skopeo_pushed(registry: RunningRegistry, published: Published, tmp_path: Path) -> None:
    source, target = f"oci:{published.layout}:latest", f"docker://{registry.host}/eve/copied:2"
    _skopeo("copy", "--quiet", "--preserve-digests", "--dest-tls-verify=false", source, target)
    assert _fetch(f"{registry.host}/eve/copied:2", tmp_path / "out").digest == published.artefact.digest


# --- trouble ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick_pauses")
def test_a_registry_that_is_down_is_one_clear_error(published: Published, tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(PybenchError, match=r"failed 4 times at taking .* no connection") as caught:
        _push(published.artefact, f"{nobody}/ada/small:1")
    assert "run the same command again" in str(caught.value)
    with pytest.raises(PybenchError, match="no connection"):
        _fetch(f"{nobody}/ada/small:1", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quick_pauses")
def test_a_registry_that_keeps_silent_is_given_up(tmp_path: Path, published: Published) -> None:
    with BrokenLine(None) as line, pytest.raises(PybenchError, match="did not answer in time"):
        _fetch(f"{line.host}/ada/small:1", tmp_path / "out", RegistryAccess(timeout_s=0.2))


@pytest.mark.usefixtures("quick_pauses")
def test_an_upload_goes_on_with_the_blob_at_which_the_line_broke(
    registry: RunningRegistry, big: OciArtefact, tmp_path: Path
) -> None:
    layers = [blob for blob in big.blobs if blob.bytes > 1_000_000]
    assert len(layers) > 2
    with BrokenLine(registry.host, cut_up_after=big.bytes * 3 // 4, cuts=1) as line:
        _push(big, f"{line.host}/ada/cut:1")
        assert line.cut == 1
        assert line.up_bytes < 1.5 * big.bytes  # what was there was not sent again
    assert all(registry.blob(blob.digest).read_bytes() == blob.path.read_bytes() for blob in layers)
    assert _fetch(f"{registry.host}/ada/cut:1", tmp_path / "out").digest == big.digest


@pytest.mark.usefixtures("quick_pauses")
def test_a_download_goes_on_where_the_line_broke(registry: RunningRegistry, big: OciArtefact, tmp_path: Path) -> None:
    _push(big, f"{registry.host}/ada/cut-down:1")
    with BrokenLine(registry.host, cut_down_after=big.bytes // 3, cuts=2) as line:
        assert _fetch(f"{line.host}/ada/cut-down:1", tmp_path / "out").digest == big.digest
        assert line.cut == 2
        assert line.down_bytes < 1.5 * big.bytes


@pytest.mark.usefixtures("quick_pauses")
def test_a_fetch_that_failed_is_continued_by_the_next(
    registry: RunningRegistry, big: OciArtefact, tmp_path: Path
) -> None:
    _push(big, f"{registry.host}/ada/later:1")
    dying = BrokenLine(registry.host, cut_down_after=big.bytes // 2, cuts=1, then_dead=True)
    with dying as line, pytest.raises(PybenchError, match="failed 4 times"):
        _fetch(f"{line.host}/ada/later:1", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [".out.fetching"]
    with BrokenLine(registry.host) as line:
        assert _fetch(f"{line.host}/ada/later:1", tmp_path / "out").digest == big.digest
        assert line.down_bytes < 0.75 * big.bytes
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("change", ["cut", "bit"])
def test_a_blob_that_the_registry_damaged_is_refused(
    registry: RunningRegistry, published: Published, tmp_path: Path, change: str, quick_pauses: None
) -> None:
    _push(published.artefact, f"{registry.host}/ada/damaged:1")
    blob = registry.blob(next(blob.digest for blob in published.artefact.blobs if blob.title == "report-001.tar.zst"))
    whole = blob.read_bytes()
    try:
        blob.write_bytes(whole[:-10] if change == "cut" else bytes([whole[0] ^ 1]) + whole[1:])
        with pytest.raises((CorruptError, PybenchError), match="sent bytes that do not match"):
            _fetch(f"{registry.host}/ada/damaged:1", tmp_path / "out")
    finally:
        blob.write_bytes(whole)
    assert not (tmp_path / "out").exists()


def test_another_manifest_than_the_digest_says_is_refused(
    registry: RunningRegistry, published: Published, tmp_path: Path
) -> None:
    _push(published.artefact, f"{registry.host}/ada/swapped:1")
    stored = registry.blob(published.artefact.digest)
    whole = stored.read_bytes()
    try:
        stored.write_bytes(whole.replace(b'"schemaVersion":2', b'"schemaVersion": 2'))
        with pytest.raises((CorruptError, PybenchError)):
            _fetch(f"{registry.host}/ada/swapped@{published.artefact.digest}", tmp_path / "out")
    finally:
        stored.write_bytes(whole)


def test_what_is_not_there_is_one_clear_error(registry: RunningRegistry, tmp_path: Path) -> None:
    with pytest.raises(PybenchError, match="does not exist or is not public"):
        _fetch(f"{registry.host}/ada/nothing:1", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_registry_without_tls_is_not_spoken_to_as_if_it_had_it(
    registry: RunningRegistry, published: Published
) -> None:
    with pytest.raises(PybenchError, match="no TLS") as caught:
        _push(published.artefact, f"{registry.host}/ada/small:1", RegistryAccess(plain_http=False, timeout_s=60))
    assert "--plain-http" in str(caught.value)


@pytest.fixture(scope="module")
def big(published: Published, tmp_path_factory: pytest.TempPathFactory) -> OciArtefact:
    """The publication with a report of 6 MB that cannot be compressed, too much for sockets' buffers, in layers of at
    most 2 MB."""

    def render(folder: Path, parts: ReportParts) -> None:
        render_nothing(folder, parts)
        for number in range(6):
            (folder / "report" / f"noise-{number}.pdf").write_bytes(random.Random(number).randbytes(1_000_000))

    folder = tmp_path_factory.mktemp("big")
    for name in ("staged", "blobs"):
        (folder / name).mkdir()
    with patch("pybench.publication.carry.artefact._LAYER_BYTES", 2_000_000):
        return assemble(
            stage(published.campaign, folder / "staged", PublishOptions(), COVERAGE, render), folder / "blobs"
        )


# --- logins ----------------------------------------------------------------------------------------------------------

# ada, analytical: as `htpasswd -nbB` writes it
HTPASSWD = "ada:$2b$05$abcdefghijklmnopqrstuuxkleb1NWew3dFCVW4PrlVhUVEPBBgm.\n"


@pytest.fixture(scope="module")
def closed_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    """A registry for `ada` with the password `analytical`."""
    folder = tmp_path_factory.mktemp("closed")
    (folder / "htpasswd").write_text(HTPASSWD)
    with serve_registry(folder, f"auth: {{htpasswd: {{realm: test, path: {folder}/htpasswd}}}}\n") as running:
        yield running


def _store_login(path: Path, host: str, login: str) -> None:
    path.write_text(json.dumps({"auths": {host: {"auth": base64.b64encode(login.encode()).decode()}}}))


def test_a_stored_login_opens_a_closed_registry(
    closed_registry: RunningRegistry, published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = f"{closed_registry.host}/ada/small:1"
    with pytest.raises(PybenchError, match="does not allow") as caught:
        _push(published.artefact, reference)
    assert f"skopeo login {closed_registry.host}" in str(caught.value)
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    _store_login(tmp_path / "auth.json", closed_registry.host, "ada:wrong")
    with pytest.raises(PybenchError, match="does not allow"):
        _push(published.artefact, reference)
    _store_login(tmp_path / "auth.json", closed_registry.host, "ada:analytical")
    _push(published.artefact, reference)
    assert _fetch(reference, tmp_path / "out").digest == published.artefact.digest


class _BlobStore(SimpleHTTPRequestHandler):
    """Where a registry keeps its blobs, on another host: it sees what a client sends along."""

    logins: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.logins.append(self.headers.get("Authorization"))
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


def test_a_login_is_not_sent_to_where_blobs_are_stored(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "htpasswd").write_text(HTPASSWD)
    store = ThreadingHTTPServer(("127.0.0.1", 0), partial(_BlobStore, directory=str(tmp_path / "data")))
    threading.Thread(target=store.serve_forever, daemon=True).start()
    redirecting = f"{{name: redirect, options: {{baseurl: 'http://127.0.0.1:{store.server_port}/'}}}}"
    more = f"auth: {{htpasswd: {{realm: test, path: {tmp_path}/htpasswd}}}}\nmiddleware: {{storage: [{redirecting}]}}\n"
    try:
        with serve_registry(tmp_path, more) as running:
            monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
            _store_login(tmp_path / "auth.json", running.host, "ada:analytical")
            _push(published.artefact, f"{running.host}/ada/small:1")
            assert _fetch(f"{running.host}/ada/small:1", tmp_path / "out").digest == published.artefact.digest
    finally:
        store.shutdown()
        store.server_close()
    assert len(_BlobStore.logins) == len(published.artefact.blobs) - 1  # all but the empty configuration
    assert set(_BlobStore.logins) == {None}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_stored_login_is_changed_into_a_token_for_what_is_done(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        TokenService(tmp_path, "ada:analytical") as service,
        serve_registry(tmp_path, service.configuration) as running,
    ):
        reference = f"{running.host}/ada/small:1"
        with pytest.raises(PybenchError, match="gives no token"):
            _push(published.artefact, reference)
        monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
        _store_login(tmp_path / "auth.json", f"{running.host}/ada", "ada:analytical")
        _push(published.artefact, reference)
        assert _fetch(reference, tmp_path / "out").digest == published.artefact.digest
        assert service.asked == ["repository:ada/small:pull,push", "repository:ada/small:pull"]
