# SPDX-License-Identifier: Apache-2.0
"""Where a publication is, as people write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.errors import UsageError
from pybench.publication.carry.reference import FileReference, LayoutReference, RegistryReference, parse, parse_registry

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("text", "host", "repository", "tag", "digest"),
    [
        ("ghcr.io/ada/quickstart:1", "ghcr.io", "ada/quickstart", "1", None),
        ("ghcr.io/ada/quickstart", "ghcr.io", "ada/quickstart", "latest", None),
        (f"ghcr.io/ada/quickstart@{DIGEST}", "ghcr.io", "ada/quickstart", None, DIGEST),
        (f"ghcr.io/ada/quickstart:1@{DIGEST}", "ghcr.io", "ada/quickstart", "1", DIGEST),
        ("127.0.0.1:5000/x", "127.0.0.1:5000", "x", "latest", None),
        ("localhost/x:y", "localhost", "x", "y", None),
        ("[::1]:5000/x", "[::1]:5000", "x", "latest", None),
        ("docker://quay.io/a/b-c__d.e:T", "quay.io", "a/b-c__d.e", "T", None),
    ],
)
def test_a_place_in_a_registry(text: str, host: str, repository: str, tag: str | None, digest: str | None) -> None:
    found = parse_registry(text)
    assert (found.host, found.repository, found.tag, found.digest) == (host, repository, tag, digest)
    assert found.wanted == (digest or tag)


@pytest.mark.parametrize(
    "text",
    [
        "", "quickstart", "ada/quickstart:1", "ghcr.io", "ghcr.io/", "ghcr.io/Ada/x", "ghcr.io/a//b", "ghcr.io/../x",
        "ghcr.io/x:", "ghcr.io/x:bad tag", "ghcr.io/x@sha256:12", "ghcr.io/x@md5:00", "https://ghcr.io/x",
        "user:password@ghcr.io/x", "ghcr.io/x?y", "-o.io/x",
    ],
)  # fmt: skip
def test_what_names_no_place_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_registry(text)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1:5000", True), ("localhost", True), ("[::1]:5", True), ("127.0.0.1.example.org", False),
     ("localhost.example.org", False), ("ghcr.io", False)],
)  # fmt: skip
def test_only_this_machine_is_loopback(host: str, is_loopback: bool) -> None:
    assert parse_registry(f"{host}/x").is_loopback is is_loopback


def test_an_address_of_the_web_is_to_be_downloaded_first() -> None:
    with pytest.raises(UsageError, match="an address of the web, which is not downloaded") as refused:
        parse("https://zenodo.org/records/1/files/mine.zip")
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("download the archive")


def test_what_exists_is_a_file_or_a_layout(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"")
    (tmp_path / "layout").mkdir()
    assert parse(str(tmp_path / "a.zip")) == FileReference(tmp_path / "a.zip")
    assert parse(f"{tmp_path}/layout") == LayoutReference(tmp_path / "layout", None, None)
    assert parse(f"oci:{tmp_path}/layout:1") == LayoutReference(tmp_path / "layout", "1", None)
    assert parse(f"{tmp_path}/layout@{DIGEST}") == LayoutReference(tmp_path / "layout", None, DIGEST)
    assert isinstance(parse("ghcr.io/x"), RegistryReference)


def test_a_place_to_publish_to_has_no_digest_yet() -> None:
    with pytest.raises(UsageError, match="has a digest"):
        parse_registry(f"ghcr.io/x@{DIGEST}", needs_tag=True)
