# SPDX-License-Identifier: Apache-2.0
"""Two images that differ in one bit: the member is named, and diffoscope says what is in it."""

import shutil
from pathlib import Path

import canonical_tar
import difference
import oci_archive
import pytest

from tests.containers.test_oci_archive import CONFIG


def archive(folder: Path, name: str, members: canonical_tar.Members) -> Path:
    layer = folder / f"{name}.layer"
    sha256 = canonical_tar.write(canonical_tar.with_parents(members), layer, CONFIG.epoch_s)
    oci_archive.write(layer, sha256, CONFIG, folder / f"{name}.tar")
    return folder / f"{name}.tar"


def test_what_differs_is_named_and_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = canonical_tar.file("etc/same", "same")
    first = same | canonical_tar.file("etc/host", "built on one\n") | canonical_tar.file("etc/gone", "")
    second = same | canonical_tar.file("etc/host", "built on two\n", 0o600)
    report = tmp_path / "report.txt"
    difference.explain(archive(tmp_path, "one", first), archive(tmp_path, "two", second), report)
    said = report.read_text()
    assert "etc/host: mode 420 and 384, content" in said
    assert "etc/gone: only in the first" in said
    assert "etc/same" not in said
    assert capsys.readouterr().out == said
    if shutil.which("diffoscope"):
        assert "-built on one\n+built on two" in said
    else:
        assert "apt-get install diffoscope-minimal" in said


def test_equal_root_file_systems_are_said_to_be_equal(tmp_path: Path) -> None:
    members = canonical_tar.file("etc/same", "same")
    difference.explain(archive(tmp_path, "one", members), archive(tmp_path, "two", members), tmp_path / "report.txt")
    assert "the root file systems are equal" in (tmp_path / "report.txt").read_text()
