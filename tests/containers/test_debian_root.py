# SPDX-License-Identifier: Apache-2.0
"""Mirrors, package lists and the lock: what decides which Debian packages an image has."""

import subprocess
from dataclasses import replace
from pathlib import Path

import debian_root
import debs_lock
import pytest
from debian_root import DEBIAN, Mirror, Package


def write_sources(apt: Path, name: str, text: str) -> None:
    path = apt / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_mirror_comes_from_this_machines_apt_sources(tmp_path: Path) -> None:
    write_sources(tmp_path, "sources.list", "# deb http://old.example/debian bookworm main\n")
    write_sources(tmp_path, "sources.list.d/near.sources", "Types: deb\nURIs: http://near.example/debian/\n")
    write_sources(tmp_path, "sources.list.d/s.list", "deb https://near.example/debian-security bookworm-security main")
    expected = Mirror("http://near.example/debian", "https://near.example/debian-security")
    assert debian_root.mirror_of_this_machine(tmp_path) == expected


def test_without_debian_in_the_sources_debians_own_mirror_is_taken(tmp_path: Path) -> None:
    write_sources(tmp_path, "sources.list", "deb http://archive.ubuntu.com/ubuntu noble main\n")
    assert debian_root.mirror_of_this_machine(tmp_path) == DEBIAN


def test_packages_are_read_from_what_apt_shows(tmp_path: Path) -> None:
    stanza = "Package: {0}\nVersion: 1.2-3\nArchitecture: amd64\nDescription: x\n Version: 9\nSHA256: {1}\n"
    listing = tmp_path / "root.packages"
    listing.write_text("\n".join([stanza.format("zlib1g", "b" * 64), stanza.format("bash", "a" * 64)]))
    assert debian_root.packages_in(listing) == [
        Package("bash", "1.2-3", "amd64", "a" * 64),
        Package("zlib1g", "1.2-3", "amd64", "b" * 64),
    ]


def test_the_lock_survives_writing_and_reading(tmp_path: Path) -> None:
    sections = {"builder": [Package("g++", "12.2", "amd64", "a" * 64)], "image.slim": []}
    debs_lock.write(tmp_path / "debs.lock", sections)
    assert debs_lock.read(tmp_path / "debs.lock") == {"builder": sections["builder"]}


def test_a_moved_an_added_and_a_rebuilt_package_are_each_named() -> None:
    a, b, c = (Package(name, "1", "amd64", "x" * 64) for name in "abc")
    locked = {"image": [a, b], "other": []}
    resolved = {"image": [replace(a, version="2", sha256="y" * 64), replace(b, sha256="y" * 64), c]}
    assert debs_lock.compare(locked, resolved) == ["image a: 1 -> 2", "image b: sha256", "image c: absent -> 1"]
    assert debs_lock.compare(locked, {"image": locked["image"]}) == []


def test_every_name_in_debs_txt_is_locked() -> None:
    locked = debs_lock.read(debs_lock.FOLDER / "debs.lock")
    for names, section in (("builder", "builder"), ("image", "image.slim"), ("image", "image.full"),
                           ("image-full", "image.full")):  # fmt: skip
        assert set(debs_lock.names_in(names)) <= {package.name for package in locked[section]}, section


def test_a_failed_command_shows_its_last_lines_as_the_hint(tmp_path: Path) -> None:
    with (
        (tmp_path / "log").open("w") as log,
        pytest.raises(debian_root.BuildError, match=r"no luck \(exit 7\)") as raised,
    ):
        debian_root.run(["sh", "-c", "echo the reason; exit 7"], log, {"PATH": "/usr/bin:/bin"}, "no luck")
    assert "the reason" in raised.value.hint


def test_a_build_sees_where_the_network_is_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:1")
    monkeypatch.setenv("CFLAGS", "-march=native")
    passed = debian_root.passed_on()
    assert passed["HTTPS_PROXY"] == "http://proxy.example:1"
    assert not {"CFLAGS", "HOME", "LANG", "TZ"} & passed.keys()


def test_the_listing_hook_is_a_shell_script_that_parses() -> None:
    script = debian_root._LIST_PACKAGES.format(listing="/x")
    assert subprocess.run(["sh", "-n", "-c", script], capture_output=True).returncode == 0
    assert "${Package}=${Version}" in script
