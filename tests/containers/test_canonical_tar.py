# SPDX-License-Identifier: Apache-2.0
"""The same files give the same tar, whatever the machine did to their order, times and permissions."""

import io
import os
import tarfile
from pathlib import Path

import canonical_tar
from steps import EPOCH_S


def make_tree(folder: Path, names: list[str], umask: int, mtime_s: int) -> Path:
    before = os.umask(umask)
    try:
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"content of {name}")
            os.utime(path, (mtime_s, mtime_s))
        (folder / "link").symlink_to(names[0] if names[0] == "b/one" else "b/one")
    finally:
        os.umask(before)
    return folder


def test_order_umask_and_times_of_the_files_do_not_reach_the_tar(tmp_path: Path) -> None:
    names = ["b/one", "b/two", "b-c", "a/deep/three"]
    first = make_tree(tmp_path / "first", names, 0o022, 1_800_000_000)
    second = make_tree(tmp_path / "second", names[::-1], 0o077, 1_900_000_000)
    digests = {
        canonical_tar.write(canonical_tar.from_tree(tree, "opt"), tmp_path / f"{tree.name}.tar", EPOCH_S)
        for tree in (first, second)
    }
    assert len(digests) == 1
    assert digests == {canonical_tar.sha256_of(tmp_path / "first.tar")}


def test_changed_content_changes_the_digest(tmp_path: Path) -> None:
    digests = {
        canonical_tar.write(canonical_tar.file("etc/x", text), tmp_path / "x.tar", EPOCH_S) for text in ("one", "two")
    }
    assert len(digests) == 2


def test_no_member_is_younger_than_the_epoch_and_an_older_one_keeps_its_time(tmp_path: Path) -> None:
    old, young = tarfile.TarInfo("old"), tarfile.TarInfo("young")
    old.mtime, young.mtime = 1_000_000_000, 1_900_000_000
    members = {header.name: canonical_tar.Member(header, lambda: io.BytesIO(b"")) for header in (old, young)}
    canonical_tar.write(members, tmp_path / "x.tar", EPOCH_S)
    with tarfile.open(tmp_path / "x.tar") as archive:
        assert {member.name: member.mtime for member in archive} == {"old": 1_000_000_000, "young": EPOCH_S}


def test_the_first_name_of_a_hard_linked_file_carries_its_data(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "base.tar", "w") as base:
        data = tarfile.TarInfo("./z/data")
        data.size = 4
        base.addfile(data, io.BytesIO(b"data"))
        for name in ("./z/other", "./a/early"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.LNKTYPE, "./z/data"
            base.addfile(link)
    with tarfile.open(tmp_path / "base.tar") as base:
        canonical_tar.write(canonical_tar.from_tar(base, lambda _: True), tmp_path / "out.tar", EPOCH_S)
    with tarfile.open(tmp_path / "out.tar") as archive:
        found = {member.name: (member.isreg(), member.linkname) for member in archive}
        contents = {archive.extractfile(name).read() for name in found}  # type: ignore[union-attr]
    assert found == {"a/early": (True, ""), "z/data": (False, "a/early"), "z/other": (False, "a/early")}
    assert contents == {b"data"}


def test_devices_and_sockets_are_left_out(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "base.tar", "w") as base:
        for name, kind in (("dev/null", tarfile.CHRTYPE), ("run/pipe", tarfile.FIFOTYPE), ("etc", tarfile.DIRTYPE)):
            header = tarfile.TarInfo(name)
            header.type = kind
            base.addfile(header)
    with tarfile.open(tmp_path / "base.tar") as base:
        assert set(canonical_tar.from_tar(base, lambda _: True)) == {"etc"}


def test_owners_are_numbers_and_names_are_dropped(tmp_path: Path) -> None:
    header = tarfile.TarInfo("etc/shadow")
    header.uid, header.gid, header.uname, header.gname = 0, 42, "builder", "shadow"
    canonical_tar.write({"etc/shadow": canonical_tar.Member(header)}, tmp_path / "x.tar", EPOCH_S)
    with tarfile.open(tmp_path / "x.tar") as archive:
        member = archive.getmember("etc/shadow")
    assert (member.uid, member.gid, member.uname, member.gname) == (0, 42, "", "")
