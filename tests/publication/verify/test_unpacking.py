# SPDX-License-Identifier: Apache-2.0
"""What a stranger's artefact or zip may try. Its digests are all right here: only its contents are malicious."""

from __future__ import annotations

import hashlib
import io
import stat
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from pybench.errors import CorruptError
from pybench.publication import FetchChecks, Limits, RegistryAccess, fetch, parse
from pybench.publication.pack import sums
from tests.publication.conftest import Published
from tests.publication.tampering import (
    CAMPAIGN_LAYER,
    forge,
    forge_contents,
    parts_of,
    rewritten_zip,
    special,
    tar_layer,
)

PLAN = {"plan.yaml": b"name: x\n"}
LISTED = sums.render({"plan.yaml": hashlib.sha256(PLAN["plan.yaml"]).hexdigest()})


def _fetch(place: Path, target: Path, limits: Limits | None = None) -> None:
    fetch(parse(str(place)), target, RegistryAccess(), FetchChecks(limits=limits or Limits()))


def _refuses(place: Path, tmp_path: Path, why: str, limits: Limits | None = None) -> None:
    """It is refused, and nothing is left: neither at the target nor beside it, nor anywhere an attack aimed at."""
    target = tmp_path / "out" / "target"
    with pytest.raises(CorruptError, match=why):
        _fetch(place, target, limits)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (special("runs/link", tarfile.SYMTYPE, "/etc/passwd"), "symbolic link"),
        (special("plan.yaml", tarfile.SYMTYPE, "../../escaped"), "symbolic link"),
        (special("runs/hard", tarfile.LNKTYPE, "plan.yaml"), "hard link"),
        (special("runs/null", tarfile.CHRTYPE), "character device"),
        (special("runs/disk", tarfile.BLKTYPE), "block device"),
        (special("runs/pipe", tarfile.FIFOTYPE), "pipe"),
        (special("runs", tarfile.DIRTYPE), "folder"),
        ((tarfile.TarInfo("../../escaped"), b"x"), "not in its list"),
        ((tarfile.TarInfo("/tmp/escaped"), b"x"), "not in its list"),
        ((tarfile.TarInfo("runs/unlisted"), b"x"), "not in its list"),
        ((tarfile.TarInfo("plan.yaml"), PLAN["plan.yaml"]), "occurs twice"),
        ((tarfile.TarInfo("./plan.yaml"), PLAN["plan.yaml"]), "not in its list"),
        ((tarfile.TarInfo("PLAN.yaml"), PLAN["plan.yaml"]), "not in its list"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_layer_with_anything_but_listed_plain_files_is_refused(
    tmp_path: Path, member: tuple[tarfile.TarInfo, bytes], why: str
) -> None:
    _refuses(forge_contents(tmp_path / "layout", PLAN, [member]), tmp_path, why)


@pytest.mark.parametrize("tar_format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_header_extensions_are_not_even_read(tmp_path: Path, tar_format: int) -> None:
    header = tarfile.TarInfo("runs/" + "x" * 300)
    layer = tar_layer([(header, b"x")], tar_format)
    _refuses(forge(tmp_path / "layout", {CAMPAIGN_LAYER: layer, sums.SUMS: LISTED}), tmp_path, "entry of kind|USTAR")


def test_a_file_with_other_bytes_than_listed_is_refused(tmp_path: Path) -> None:
    layer = tar_layer([(tarfile.TarInfo("plan.yaml"), b"name: y\n")])
    _refuses(
        forge(tmp_path / "layout", {CAMPAIGN_LAYER: layer, sums.SUMS: LISTED}), tmp_path, "does not match the list"
    )


def test_a_listed_file_that_is_not_there_is_refused(tmp_path: Path, published: Published) -> None:
    parts = parts_of(published.layout)
    del parts["report-001.tar.zst"]
    _refuses(forge(tmp_path / "layout", parts), tmp_path, r"report/index\.html of its list of files is not in it")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_layer_that_is_cut_off_is_refused(tmp_path: Path, published: Published, share: float) -> None:
    parts = parts_of(published.layout)
    parts[CAMPAIGN_LAYER] = parts[CAMPAIGN_LAYER][: int(share * len(parts[CAMPAIGN_LAYER]))]
    _refuses(forge(tmp_path / "layout", parts), tmp_path, "cut off|damaged")


def test_a_tar_that_is_cut_off_within_its_frame_is_refused(tmp_path: Path, published: Published) -> None:
    parts = parts_of(published.layout)
    tar = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(parts[CAMPAIGN_LAYER])).read()
    for length in (511, 512, 700, len(tar) // 2):
        parts[CAMPAIGN_LAYER] = zstandard.ZstdCompressor().compress(tar[:length])
        _refuses(forge(tmp_path / f"layout-{length}", parts), tmp_path, "cut off|ends within")


def test_something_behind_the_end_is_refused(tmp_path: Path) -> None:
    tar = (
        zstandard.ZstdDecompressor().stream_reader(io.BytesIO(tar_layer([(tarfile.TarInfo("plan.yaml"), b"")]))).read()
    )
    listed = sums.render({"plan.yaml": hashlib.sha256(b"").hexdigest()})
    layer = zstandard.ZstdCompressor().compress(tar + b"hidden")
    _refuses(forge(tmp_path / "layout", {CAMPAIGN_LAYER: layer, sums.SUMS: listed}), tmp_path, "bytes after its end")


def test_a_bomb_stops_at_the_limit(tmp_path: Path) -> None:
    zeros = bytes(50_000_000)
    layout = forge_contents(tmp_path / "layout", {"runs/a": zeros, "runs/b": zeros}, [])
    assert sum(path.stat().st_size for path in layout.rglob("*") if path.is_file()) < 20_000
    _refuses(layout, tmp_path, "more than 0.06 GB", Limits(bytes=60_000_000))
    _fetch(layout, tmp_path / "allowed", Limits(bytes=100_000_000))


def test_a_size_in_a_header_is_not_believed(tmp_path: Path) -> None:
    layer = tar_layer([(tarfile.TarInfo("plan.yaml"), PLAN["plan.yaml"])])
    tar = bytearray(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(layer)).read())
    tar[124:136] = b"77777777777\0"
    tar[148:156] = b"        "
    tar[148:156] = b"%06o\0 " % sum(tar[:512])
    huge = zstandard.ZstdCompressor().compress(bytes(tar))
    _refuses(forge(tmp_path / "layout", {CAMPAIGN_LAYER: huge, sums.SUMS: LISTED}), tmp_path, "ends within plan.yaml")


def test_a_frame_that_wants_much_memory_is_refused(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=False)
    stream = io.BytesIO()
    with zstandard.ZstdCompressor(compression_params=parameters).stream_writer(stream, closefd=False) as writer:
        writer.write(b"x" * 1000)
    parts = {CAMPAIGN_LAYER: stream.getvalue(), sums.SUMS: LISTED}
    _refuses(forge(tmp_path / "layout", parts), tmp_path, "damaged.*memory")


def test_more_files_than_allowed_are_refused_before_one_is_written(tmp_path: Path) -> None:
    files = {f"runs/{number}": b"" for number in range(20)}
    layout = forge_contents(tmp_path / "layout", files, [])
    _refuses(layout, tmp_path, "20 files; at most 10", Limits(files=10))


# --- zips ------------------------------------------------------------------------------------------------------------


def _add(change: Callable[[zipfile.ZipFile], None], source: Path, target: Path) -> Path:
    rewritten_zip(source, target, {})
    with zipfile.ZipFile(target, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        change(archive)
    return target


def _member(name: str, mode: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.create_system, member.external_attr = 3, mode << 16
    return member


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda zip_: zip_.writestr(_member("runs/l", stat.S_IFLNK | 0o777), "/etc/passwd"), "not a plain file"),
        (lambda zip_: zip_.writestr(_member("runs/d", stat.S_IFCHR | 0o666), ""), "not a plain file"),
        (lambda zip_: zip_.writestr("runs/folder/", ""), "not a plain file"),
        (lambda zip_: zip_.writestr("../escaped", "x"), "not in its list"),
        (lambda zip_: zip_.writestr("/escaped", "x"), "not in its list"),
        (lambda zip_: zip_.writestr("..\\escaped", "x"), "not in its list"),
        (lambda zip_: zip_.writestr("C:/escaped", "x"), "not in its list"),
        (lambda zip_: zip_.writestr("plan.yaml", "x"), "twice"),
        (lambda zip_: zip_.writestr(sums.SUMS, "x"), "twice"),
        (lambda zip_: zip_.writestr("report/more", "x", zipfile.ZIP_LZMA), "unusual way"),
    ],
)
def test_a_zip_with_anything_but_listed_plain_files_is_refused(
    tmp_path: Path, published: Published, change: Callable[[zipfile.ZipFile], None], why: str
) -> None:
    _refuses(_add(change, published.zip, tmp_path / "small.zip"), tmp_path, why)


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"x", "does not match the list"), (None, r"plan\.yaml of its list of files is not in it")],
)
def test_a_zip_with_a_file_changed_or_gone_is_refused(
    tmp_path: Path, published: Published, content: bytes | None, why: str
) -> None:
    _refuses(rewritten_zip(published.zip, tmp_path / "small.zip", {"plan.yaml": content}), tmp_path, why)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_zip_that_is_cut_off_is_refused(tmp_path: Path, published: Published, share: float) -> None:
    content = published.zip.read_bytes()
    (tmp_path / "small.zip").write_bytes(content[: int(share * len(content))])
    _refuses(tmp_path / "small.zip", tmp_path, "not a complete zip")


def test_a_zip_with_a_bit_changed_is_refused(tmp_path: Path, published: Published) -> None:
    with zipfile.ZipFile(published.zip) as archive:
        largest = max(archive.infolist(), key=lambda member: member.compress_size)
    content = bytearray(published.zip.read_bytes())
    content[largest.header_offset + len(largest.FileHeader()) + largest.compress_size // 2] ^= 1
    (tmp_path / "small.zip").write_bytes(content)
    _refuses(tmp_path / "small.zip", tmp_path, ".")


def test_a_zip_whose_list_has_any_byte_changed_is_refused(tmp_path: Path, published: Published) -> None:
    with zipfile.ZipFile(published.zip) as archive:
        member = archive.getinfo(sums.SUMS)
    begin = member.header_offset + 30 + len(member.filename)
    content = bytearray(published.zip.read_bytes())
    for place in range(begin, begin + member.compress_size - 4):  # behind the last letter nothing is read
        content[place] ^= 0x10
        (tmp_path / "small.zip").write_bytes(content)
        _refuses(tmp_path / "small.zip", tmp_path, "not a complete zip|does not match the list|no list")
        content[place] ^= 0x10


def test_a_zip_bomb_stops_at_the_limit_whatever_it_declares(tmp_path: Path) -> None:
    zeros = bytes(30_000_000)
    listed = sums.render({"runs/a": hashlib.sha256(zeros).hexdigest()})
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(sums.SUMS, listed)
        archive.writestr("runs/a", zeros)
    _refuses(bomb, tmp_path, "more than 0.01 GB", Limits(bytes=10_000_000))
    content = bytearray(bomb.read_bytes())  # the same with a small size declared, in both of its headers
    for at in range(len(content) - 4):
        if content[at : at + 4] == struct.pack("<I", len(zeros)):
            content[at : at + 4] = struct.pack("<I", 1000)
    bomb.write_bytes(content)
    _refuses(bomb, tmp_path, ".", Limits(bytes=10_000_000))


def test_nothing_that_is_unpacked_can_be_executed(tmp_path: Path, published: Published) -> None:
    _fetch(published.zip, tmp_path / "from-zip")
    _fetch(published.layout, tmp_path / "from-layout")
    for folder in ("from-zip", "from-layout"):
        files = [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
        assert len(files) == len(published.package.digests) + 1
        assert not [path for path in files if path.stat().st_mode & 0o111]
