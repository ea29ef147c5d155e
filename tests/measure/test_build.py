# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pybench import _native, measure
from pybench.errors import PybenchError
from pybench.measure.build import check_build, hash_sources
from tests.measure.replay import REPOSITORY


def test_the_loaded_object_was_built_from_these_sources() -> None:
    assert hash_sources(REPOSITORY / "native") == _native.BUILD_ID == measure.NATIVE_BUILD_ID


def test_the_build_id_is_what_sha256sum_prints_hashed_again() -> None:
    listing = subprocess.run(
        "LC_ALL=C; export LC_ALL; sha256sum $(ls *.cpp *.hpp CMakeLists.txt | sort) | sha256sum",
        shell=True,
        cwd=REPOSITORY / "native",
        check=True,
        capture_output=True,
        text=True,
    )
    assert listing.stdout.split()[0] == measure.NATIVE_BUILD_ID


def test_an_edited_source_changes_the_build_id(tmp_path: Path) -> None:
    copy = tmp_path / "native"
    shutil.copytree(REPOSITORY / "native", copy)
    (copy / "clock.cpp").write_text((copy / "clock.cpp").read_text() + "\n")
    assert hash_sources(copy) != measure.NATIVE_BUILD_ID


def test_an_object_built_from_other_sources_is_refused_with_what_to_do() -> None:
    with pytest.raises(PybenchError, match=r"built from other sources \(aaaaaaaaaaaa.*bbbbbbbbbbbb") as caught:
        check_build("a" * 64, "b" * 64)
    assert caught.value.hint is not None
    assert "run make" in caught.value.hint
    with pytest.raises(PybenchError, match="no build"):
        check_build("a" * 64, None)


def test_no_sources_have_no_build_id(tmp_path: Path) -> None:
    assert hash_sources(tmp_path) is None
