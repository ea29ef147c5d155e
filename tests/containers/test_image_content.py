# SPDX-License-Identifier: Apache-2.0
"""What enters the image: nothing of the building machine, and start scripts that a shell understands."""

import subprocess
from pathlib import Path

import canonical_tar
import image_content
import pytest


@pytest.mark.parametrize(
    "name", ["etc/hostname", "etc/resolv.conf", "etc/apt/sources.list", "var/log/apt/term.log", "dev/null",
             "var/cache/ldconfig/aux-cache", "var/lib/dpkg/status-old"]
)  # fmt: skip
def test_files_that_tell_of_the_building_machine_are_left_out(name: str) -> None:
    assert not image_content.keep(name)


@pytest.mark.parametrize("name", ["etc/passwd", "usr/bin/python3.11", "var/lib/dpkg/status", "usr/lib/runit"])
def test_debians_own_files_are_kept(name: str) -> None:
    assert image_content.keep(name)


def test_host_files_are_there_and_empty_so_that_an_engine_can_mount_over_them() -> None:
    members = image_content.own_files("", "", "slim")
    for name in ("etc/hosts", "etc/resolv.conf", "etc/hostname"):
        assert canonical_tar.text_of(members, name) == ""


def test_the_user_is_added_to_debians_tables() -> None:
    members = image_content.own_files("root:x:0:0::/root:/bin/bash\n", "root:x:0:\n", "slim")
    assert canonical_tar.text_of(members, "etc/passwd").splitlines()[0].startswith("root:")
    assert canonical_tar.text_of(members, "etc/passwd").splitlines()[1].startswith("pybench:x:1000:1000:")


def test_the_start_scripts_set_the_images_environment_in_a_plain_shell(tmp_path: Path) -> None:
    members = image_content.own_files("", "", "slim")
    for name in ("10-docker2singularity.sh", "99-base.sh"):
        (tmp_path / name).write_text(canonical_tar.text_of(members, f".singularity.d/env/{name}"))
    script = '. ./10-docker2singularity.sh; . ./99-base.sh; echo "$PATH|$LANG|$HOME|$LD_LIBRARY_PATH"'
    shown = subprocess.check_output(
        ["/bin/sh", "-c", script], cwd=tmp_path, text=True, env={"PATH": "/x", "LANG": "de_DE", "LD_LIBRARY_PATH": "/y"}
    )
    expected = f"{image_content.ENVIRONMENT['PATH']}|de_DE|/tmp|/y:/.singularity.d/libs"
    assert shown.strip() == expected
