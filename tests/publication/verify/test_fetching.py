# SPDX-License-Identifier: Apache-2.0
"""Fetching from a layout, a zip or a tar: equal files, checks that are kept, and nothing half there when it fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.errors import CorruptError, PybenchError, UsageError
from pybench.publication import (
    FetchChecks,
    FetchResult,
    PublicationMetadata,
    PublishOptions,
    RegistryAccess,
    assemble,
    fetch,
    parse,
    stage,
)
from pybench.publication.carry import archive
from pybench.publication.carry.artefact import write_layout
from pybench.publication.pack import sums
from pybench.publication.verify.unpacking import Limits
from tests.publication.campaigns import build_small, render_nothing
from tests.publication.conftest import COVERAGE, Published
from tests.publication.tampering import forge, manifest_path, parts_of, rewritten_tar, rewritten_zip
from tests.support.folders import contents_of
from tests.support.small_disk import small_disk_of


def _fetch(place: object, target: Path, **checks: object) -> FetchResult:
    return fetch(parse(str(place)), target, RegistryAccess(), FetchChecks(**checks))  # type: ignore[arg-type]


def test_zip_and_layout_give_the_same_files_and_digest(tmp_path: Path, published: Published) -> None:
    one, other = _fetch(published.zip, tmp_path / "one"), _fetch(published.layout, tmp_path / "other")
    assert contents_of(tmp_path / "one") == contents_of(tmp_path / "other") == contents_of(published.package.folder)
    assert one.contents_sha256 == other.contents_sha256 == published.package.contents_sha256
    assert (one.digest, other.digest) == (None, published.artefact.digest)
    assert one.signed == "no"


def test_zip_and_tar_give_the_same_files(tmp_path: Path, published: Published) -> None:
    one, other = _fetch(published.zip, tmp_path / "one"), _fetch(published.tar, tmp_path / "other")
    assert (one.contents_sha256, one.files, one.digest) == (other.contents_sha256, other.files, other.digest)
    assert contents_of(one.folder) == contents_of(other.folder)


def test_a_tar_is_known_by_its_content(tmp_path: Path, published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(published.tar, "renamed.zip")
    shutil.copy(published.tar, "small.tar.zst")
    assert _fetch(Path("renamed.zip"), Path("one")).contents_sha256 == published.package.contents_sha256
    assert fetch(parse("small.tar.zst"), None, RegistryAccess(), FetchChecks()).folder == Path("results/small")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_a_tar_that_is_cut_off_leaves_nothing(tmp_path: Path, published: Published, share: float) -> None:
    content = published.tar.read_bytes()
    cut = tmp_path / "cut.tar.zst"
    cut.write_bytes(content[: max(4, int(share * len(content)))])
    with pytest.raises(CorruptError):
        _fetch(cut, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["cut.tar.zst"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"runs/stranger": b"x"}, "is not in its list of files"),
        ({"plan.yaml": b"other: plan"}, "plan.yaml does not match"),
        ({"plan.yaml": None}, "plan.yaml of its list of files is not in it"),
        ({"../out": b"x"}, "is not in its list of files"),
        ({sums.SUMS: None}, "has no SHA256SUMS"),
    ],
)
def test_a_tar_with_other_files_is_refused(
    tmp_path: Path, published: Published, change: dict[str, bytes | None], said: str
) -> None:
    forged = rewritten_tar(published.tar, tmp_path / "forged.tar.zst", change)
    with pytest.raises(CorruptError, match=said):
        _fetch(forged, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["forged.tar.zst"]


def test_a_tar_that_expands_beyond_the_limit_is_refused(tmp_path: Path, published: Published) -> None:
    bomb = rewritten_tar(published.tar, tmp_path / "bomb.tar.zst", {"plan.yaml": bytes(50_000_000)})
    with pytest.raises(CorruptError, match="unpacks to more than"):
        fetch(parse(str(bomb)), tmp_path / "out", RegistryAccess(), FetchChecks(limits=Limits(bytes=10_000_000)))
    assert [path.name for path in tmp_path.iterdir()] == ["bomb.tar.zst"]


def test_an_earlier_artefact_of_a_layout_stays_under_its_digest(tmp_path: Path, published: Published) -> None:
    layout = tmp_path / "layout"
    write_layout(published.artefact, layout)
    (tmp_path / "staged").mkdir()
    (tmp_path / "blobs").mkdir()
    options = PublishOptions(PublicationMetadata("another title"))
    package = stage(published.campaign, tmp_path / "staged", options, COVERAGE, render_nothing)
    for _ in range(2):  # the same again changes nothing
        write_layout(later := assemble(package, tmp_path / "blobs"), layout)
    assert later.digest != published.artefact.digest
    for number, (wanted, artefact) in enumerate(
        ((f"@{published.artefact.digest}", published.artefact), ("", later), (":latest", later))
    ):
        assert _fetch(f"{layout}{wanted}", tmp_path / str(number)).digest == artefact.digest
    assert len(json.loads((layout / "index.json").read_text())["manifests"]) == 2


def test_a_layout_is_asked_by_tag_and_by_digest(tmp_path: Path, published: Published) -> None:
    for number, wanted in enumerate((":latest", f"@{published.artefact.digest}", "")):
        assert _fetch(f"{published.layout}{wanted}", tmp_path / str(number)).digest == published.artefact.digest
    for wanted in (":other", f"@sha256:{'0' * 64}"):
        with pytest.raises(UsageError, match="has no single artefact for"):
            _fetch(f"{published.layout}{wanted}", tmp_path / "x")


def test_packing_twice_gives_the_same_bytes(tmp_path: Path, published: Published) -> None:
    for name in ("staged", "blobs"):
        (tmp_path / name).mkdir()
    before = os.umask(0o077)
    try:
        package = stage(published.campaign, tmp_path / "staged", PublishOptions(), COVERAGE, render_nothing)
        assert assemble(package, tmp_path / "blobs").digest == published.artefact.digest
        archive.write(package, tmp_path / "small.zip")
    finally:
        os.umask(before)
    assert (tmp_path / "small.zip").read_bytes() == published.zip.read_bytes()


def test_a_campaign_elsewhere_gives_the_same_digest(tmp_path: Path, published: Published) -> None:
    campaign = build_small(tmp_path / "another folder" / "c").path
    for path in campaign.rglob("*"):
        os.utime(path, (1, 1))
    (tmp_path / "staged").mkdir()
    package = stage(campaign, tmp_path / "staged", PublishOptions(), COVERAGE, render_nothing)
    assert package.contents_sha256 == published.package.contents_sha256


def test_a_folder_that_is_taken_stays_as_it_is(tmp_path: Path, published: Published) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    with pytest.raises(UsageError, match="exists"):
        _fetch(published.zip, tmp_path / "mine")
    assert contents_of(tmp_path / "mine") == {"thesis.tex": b"years"}
    (tmp_path / "empty").mkdir()
    _fetch(published.zip, tmp_path / "empty")


@pytest.mark.parametrize("name", [".", "..", "../here"])
def test_the_folder_one_is_in_is_not_replaced(
    tmp_path: Path, published: Published, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match="is the current folder"):
        _fetch(published.zip, Path(name))


def test_other_contents_than_expected_are_refused(tmp_path: Path, published: Published) -> None:
    _fetch(published.zip, tmp_path / "right", contents=published.package.contents_sha256)
    with pytest.raises(CorruptError, match="not sha256:0000"):
        _fetch(published.zip, tmp_path / "wrong", contents="0" * 64)
    assert not (tmp_path / "wrong").exists()


@pytest.mark.parametrize("change", ["cut", "bit", "gone", "manifest"])
def test_a_blob_that_is_not_what_its_name_says_is_refused(tmp_path: Path, published: Published, change: str) -> None:
    layout = forge(tmp_path / "layout", parts_of(published.layout))
    blob = max((layout / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size)
    content = bytearray(blob.read_bytes())
    if change == "cut":
        blob.write_bytes(content[:-1])
    elif change == "bit":
        content[100] ^= 1
        blob.write_bytes(content)
    elif change == "gone":
        blob.unlink()
    else:
        path = manifest_path(layout)
        path.write_bytes(path.read_bytes().replace(b"latest", b"latesT") + b" ")
    with pytest.raises(CorruptError):
        _fetch(layout, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"manifests": 1}', '{"manifests": [{"digest": "sha256:../../x"}]}', '{"manifests": [{}]}']
)
def test_a_malformed_index_is_one_clear_error(tmp_path: Path, published: Published, text: str) -> None:
    layout = forge(tmp_path / "layout", parts_of(published.layout))
    (layout / "index.json").write_text(text)
    with pytest.raises((CorruptError, UsageError)):
        _fetch(layout, tmp_path / "out")


def test_an_image_is_not_taken_for_a_campaign(tmp_path: Path, published: Published) -> None:
    layout = forge(tmp_path / "layout", parts_of(published.layout))
    path = manifest_path(layout)
    manifest = {**json.loads(path.read_text()), "artifactType": "application/vnd.example.image"}
    content = json.dumps(manifest).encode()
    digest = sums.hash_bytes(content)
    (path.parent / digest).write_bytes(content)
    entry = {"digest": f"sha256:{digest}", "size": len(content)}
    (layout / "index.json").write_text(json.dumps({"manifests": [entry]}))
    with pytest.raises(UsageError, match="not a publication of pybench"):
        _fetch(layout, tmp_path / "out")


def test_a_zip_of_something_else_says_so(tmp_path: Path, published: Published) -> None:
    other = rewritten_zip(published.zip, tmp_path / "other.zip", {sums.SUMS: None})
    with pytest.raises(CorruptError, match="not a publication of pybench"):
        _fetch(other, tmp_path / "out")


@pytest.mark.parametrize("place", ["./nowhere.zip", "/nowhere/at/all", "nowhere.zip", "quickstart", "UPPER.example/X"])
def test_a_place_that_does_not_exist_is_one_clear_error(tmp_path: Path, place: str) -> None:
    with pytest.raises(UsageError):
        _fetch(place, tmp_path / "out")


# --- signatures ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two SSH key pairs, `author` and `other`."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("author", "other"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    return folder


def _signed(published: Published, keys: Path, folder: Path) -> Path:
    for name in ("staged", "blobs"):
        (folder / name).mkdir()
    options = PublishOptions(key=keys / "author")
    package = stage(published.campaign, folder / "staged", options, COVERAGE, render_nothing)
    write_layout(assemble(package, folder / "blobs"), folder / "signed")
    archive.write(package, folder / "signed.zip")
    assert package.contents_sha256 == published.package.contents_sha256
    return folder / "signed"


def test_a_signature_is_verified_by_the_right_key_only(tmp_path: Path, published: Published, keys: Path) -> None:
    layout = _signed(published, keys, tmp_path)
    for number, place in enumerate((layout, tmp_path / "signed.zip")):
        assert _fetch(place, tmp_path / f"a{number}", key=keys / "author.pub").signed == "verified"
        assert _fetch(place, tmp_path / f"b{number}").signed == "not verified"
        with pytest.raises(CorruptError, match="the signature is not by"):
            _fetch(place, tmp_path / f"c{number}", key=keys / "other.pub")
        assert not (tmp_path / f"c{number}").exists()


def test_signing_twice_gives_the_same_bytes(tmp_path: Path, published: Published, keys: Path) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    first, second = (_signed(published, keys, tmp_path / name) for name in ("1", "2"))
    assert contents_of(first) == contents_of(second)


def test_contents_without_the_signature_that_is_asked_for_are_refused(
    tmp_path: Path, published: Published, keys: Path
) -> None:
    with pytest.raises(CorruptError, match="not signed"):
        _fetch(published.zip, tmp_path / "out", key=keys / "author.pub")


def test_a_signature_of_other_contents_is_refused(tmp_path: Path, published: Published, keys: Path) -> None:
    layout = _signed(published, keys, tmp_path)
    parts = parts_of(layout)
    listed = sums.parse(parts[sums.SUMS], "here")
    parts[sums.SUMS] = sums.render({**listed, "plan.yaml": "0" * 64})
    with pytest.raises(CorruptError, match="the signature is not by"):
        _fetch(forge(tmp_path / "forged", parts), tmp_path / "out", key=keys / "author.pub")


@pytest.mark.parametrize("content", [None, "no key"])
def test_a_key_that_is_none_is_one_clear_error(tmp_path: Path, published: Published, content: str | None) -> None:
    key = tmp_path / "key"
    if content is not None:
        key.write_text(content)
    (tmp_path / "staged").mkdir()
    with pytest.raises(UsageError, match="key"):
        stage(published.campaign, tmp_path / "staged", PublishOptions(key=key), COVERAGE, render_nothing)


# --- storage ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 KiB, less than the publication needs."""
    with small_disk_of(tmp_path / "disk", "8k") as folder:
        yield folder


def test_a_full_disk_leaves_nothing_behind(small_disk: Path, published: Published) -> None:
    with pytest.raises(UsageError, match=r"cannot write.*No space left") as caught:
        _fetch(published.zip, small_disk / "out")
    assert str(caught.value).endswith("free some disk space, then run the same command again")
    assert list(small_disk.iterdir()) == []
    with pytest.raises(UsageError, match="No space left"):
        archive.write(published.package, small_disk / "small.zip")
    assert list(small_disk.iterdir()) == []
    with pytest.raises(UsageError, match="No space left"):
        write_layout(published.artefact, small_disk / "layout")
    assert not (small_disk / "layout" / "index.json").exists()


def test_a_temporary_folder_that_is_full_is_one_clear_error(small_disk: Path, published: Published) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*disk.*No space left"):
        stage(published.campaign, small_disk, PublishOptions(), COVERAGE, render_nothing)


def test_a_folder_that_may_not_be_written_is_one_clear_error(tmp_path: Path, published: Published) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(PybenchError, match="cannot write"):
        _fetch(published.zip, tmp_path / "file" / "out")
    with pytest.raises(PybenchError, match="cannot write"):
        archive.write(published.package, tmp_path / "file" / "small.zip")
