# SPDX-License-Identifier: Apache-2.0
"""The archives of a publication: what other programs can unpack, and how small they are."""

from __future__ import annotations

import errno
import io
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from pybench.errors import UsageError
from pybench.publication.carry import archive
from pybench.publication.carry.artefact import write_layout
from pybench.publication.pack import sums
from tests.publication.conftest import Published


def _methods(zipped: Path) -> dict[str, int]:
    with zipfile.ZipFile(zipped) as opened:
        return {member.filename: member.compress_type for member in opened.infolist()}


def _archive(published: Published, folder: Path, files: Mapping[str, bytes]) -> Path:
    """An archive of these files, with an empty list of files."""
    for name, content in {**files, "SHA256SUMS": b""}.items():
        (folder / "staged" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "staged" / name).write_bytes(content)
    package = replace(published.package, folder=folder / "staged", digests=dict.fromkeys(files, ""))
    archive.write(package, folder / "one.zip")
    return folder / "one.zip"


def test_a_disk_that_becomes_read_only_is_one_error(
    tmp_path: Path, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("os.fsync", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(UsageError, match=r"cannot write .*one\.zip: Read-only file system") as caught:
        archive.write(published.package, tmp_path / "one.zip")
    assert caught.value.hint == "this file system is read-only: choose another folder with --archive"


def test_a_place_that_cannot_be_written_is_refused_with_its_own_option(tmp_path: Path, published: Published) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="cannot write") as caught:
        archive.write(published.package, file / "one.zip")
    assert str(caught.value.hint).endswith("with --archive")
    with pytest.raises(UsageError, match="cannot write") as caught:
        write_layout(published.artefact, file)
    assert str(caught.value.hint).endswith("with --oci")


def test_only_larger_files_of_runs_are_compressed_with_lzma(tmp_path: Path, published: Published) -> None:
    expected = {
        "runs/a/iterations.csv": zipfile.ZIP_LZMA,
        "artefacts/a/model.onnx": zipfile.ZIP_DEFLATED,
        "report/index.html": zipfile.ZIP_DEFLATED,
        "plan.yaml": zipfile.ZIP_DEFLATED,
    }
    files = dict.fromkeys(expected, b"x" * 4096) | {"runs/a/run.json": b"x" * 4095}
    methods = _methods(_archive(published, tmp_path, files))
    assert methods == expected | {"runs/a/run.json": zipfile.ZIP_DEFLATED, "SHA256SUMS": zipfile.ZIP_DEFLATED}


def test_both_methods_are_in_the_zip_that_other_tests_fetch_and_attack(published: Published) -> None:
    assert set(_methods(published.zip).values()) == {zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA}


def test_samples_become_smaller_than_with_deflate(tmp_path: Path, published: Published) -> None:
    samples = b"".join(b"%d,%d\n" % (n * 1_003_009, 5_000_000 + n * n % 9_973) for n in range(20_000))
    with zipfile.ZipFile(_archive(published, tmp_path, {"runs/a/iterations.csv": samples})) as opened:
        packed = opened.getinfo("runs/a/iterations.csv").compress_size
    with zipfile.ZipFile(tmp_path / "deflated.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as other:
        other.writestr("x", samples)
    assert packed < 0.8 * other.getinfo("x").compress_size


def _tar(path: Path) -> tarfile.TarFile:
    content = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    return tarfile.open(fileobj=io.BytesIO(content))


def test_a_tar_begins_with_its_list_and_has_every_file_as_it_is(published: Published) -> None:
    with _tar(published.tar) as opened:
        members = opened.getmembers()
        assert members[0].name == sums.SUMS
        assert {member.name for member in members[1:]} == set(published.package.digests)
        for member in members:
            file = opened.extractfile(member)
            assert file is not None
            assert file.read() == (published.package.folder / member.name).read_bytes()


def test_a_tar_of_files_that_resemble_each_other_is_smaller_than_the_zip(published: Published) -> None:
    assert published.tar.stat().st_size < 0.6 * published.zip.stat().st_size


def test_packing_a_tar_twice_gives_the_same_bytes(tmp_path: Path, published: Published) -> None:
    archive.write(published.package, tmp_path / "again.tar.zst")
    assert (tmp_path / "again.tar.zst").read_bytes() == published.tar.read_bytes()


@pytest.mark.parametrize("name", ["small", "small.tar", "small.tar.gz", "zip"])
def test_an_archive_of_another_form_is_refused(tmp_path: Path, published: Published, name: str) -> None:
    with pytest.raises(UsageError, match=r"has to end with \.zip or \.tar\.zst"):
        archive.write(published.package, tmp_path / "folder" / name)
    assert not (tmp_path / "folder").exists()
