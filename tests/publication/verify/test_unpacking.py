# SPDX-License-Identifier: Apache-2.0
"""What a stranger's artefact or zip may try. Its digests are all right here: only its contents are malicious."""

from __future__ import annotations

import hashlib
import io
import shutil
import stat
import struct
import tarfile
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    forge_zip,
    lzma_member,
    parts_of,
    rewritten_zip,
    special,
    tar_layer,
)

PLAN = {"plan.yaml": b"name: x\n"}
SAMPLES = {**PLAN, "runs/a": b"".join(b"%d,%d\n" % (n, n * n) for n in range(30))}
BOMB_BYTES = 100_000_000
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
    _refuses(forge(tmp_path / "layout", parts), tmp_path, r"report/index\.html and 1 more of its list")


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


def test_nothing_that_is_unpacked_can_be_executed(tmp_path: Path, published: Published) -> None:
    _fetch(published.zip, tmp_path / "from-zip")
    _fetch(published.layout, tmp_path / "from-layout")
    for folder in ("from-zip", "from-layout"):
        files = [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
        assert len(files) == len(published.package.digests) + 1
        assert not [path for path in files if path.stat().st_mode & 0o111]


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
        (lambda zip_: zip_.writestr(zipfile.ZipInfo(""), "x"), "not in its list"),
        (lambda zip_: zip_.writestr("plan.yaml", "x"), "twice"),
        (lambda zip_: zip_.writestr(sums.SUMS, "x"), "twice"),
        (lambda zip_: zip_.writestr("report/more", "x", zipfile.ZIP_BZIP2), "unusual way"),
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_list_bomb_needs_no_memory_whatever_it_declares(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(bomb, "w", method) as archive:
            archive.writestr(sums.SUMS, bytes(BOMB_BYTES))
            archive.getinfo(sums.SUMS).file_size = 1000
        with _at_most(30_000_000):
            _refuses(bomb, tmp_path, ".")


def test_a_zip_with_any_byte_of_its_directory_changed_gives_one_error_or_the_same_files(tmp_path: Path) -> None:
    good = forge_zip(tmp_path / "good.zip", SAMPLES, {"runs/a": lzma_member(SAMPLES["runs/a"])}).read_bytes()
    for place in range(good.index(b"PK\1\2"), len(good)):
        (tmp_path / "bad.zip").write_bytes(_flipped(good, place))
        _refused_or_equal(tmp_path / "bad.zip", tmp_path)


@pytest.mark.parametrize("header", [b"PK\3\4", b"PK\1\2"])
def test_a_zip_with_a_name_that_is_not_the_utf_8_that_it_says_is_refused(tmp_path: Path, header: bytes) -> None:
    content = bytearray(forge_zip(tmp_path / "bad.zip", PLAN, {}).read_bytes())
    content[content.rindex(b"PK\3\4") + 7] |= 0x08  # names are UTF-8
    content[content.rindex(b"PK\1\2") + 9] |= 0x08
    content[content.index(b"plan.yaml", content.rindex(header))] = 0xFF
    (tmp_path / "bad.zip").write_bytes(content)
    _refuses(tmp_path / "bad.zip", tmp_path, "is not a complete zip file: 'utf-8' codec")


# --- LZMA in zips ----------------------------------------------------------------------------------------------------


def test_a_zip_is_read_whatever_its_members_are_compressed_with(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        files = {**SAMPLES, "runs/empty": b"", "runs/large": bytes(range(250)) * 10_000}
        listed = sums.render({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})
        with zipfile.ZipFile(tmp_path / "one.zip", "w", method) as archive:
            for name, content in {**files, sums.SUMS: listed}.items():
                archive.writestr(name, content)
        _fetch(tmp_path / "one.zip", tmp_path / str(method))
        assert {name: (tmp_path / str(method) / name).read_bytes() for name in files} == files


def test_lzma_without_a_mark_of_its_end_is_read(tmp_path: Path) -> None:
    """7-Zip writes it so: the declared size is where it ends."""
    content = SAMPLES["runs/a"]
    marked = lzma_member(content)
    (length,) = (
        n for n in range(len(marked)) if _decodes_to(marked[:n], content) and not _decodes_to(marked[: n - 1], content)
    )
    _fetch(forge_zip(tmp_path / "one.zip", SAMPLES, {"runs/a": marked[:length]}), tmp_path / "out")
    assert (tmp_path / "out/runs/a").read_bytes() == content


@pytest.mark.parametrize("dictionary_bytes", [(64 << 20) + 1, 128 << 20, (1 << 32) - 1])
def test_a_large_dictionary_is_refused_before_it_is_allocated(tmp_path: Path, dictionary_bytes: int) -> None:
    bad = _with_dictionary(dictionary_bytes)
    with _at_most(10_000_000):
        why = f"bad.zip: 'runs/a' requires {dictionary_bytes} bytes of memory for LZMA; at most 67108864"
        _refuses(forge_zip(tmp_path / "bad.zip", SAMPLES, {"runs/a": bad}), tmp_path, why)


def test_a_dictionary_as_large_as_the_strongest_preset_makes_it_is_read(tmp_path: Path) -> None:
    _fetch(forge_zip(tmp_path / "one.zip", SAMPLES, {"runs/a": _with_dictionary(64 << 20)}), tmp_path / "out")
    assert (tmp_path / "out/runs/a").read_bytes() == SAMPLES["runs/a"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda good: b"", "'runs/a' is cut off within its LZMA header"),
        (lambda good: good[:8], "'runs/a' is cut off within its LZMA header"),
        (lambda good: good[:2] + b"\xff\xff" + good[4:], "LZMA header of 65535 bytes, not 5"),
        (lambda good: good[:4] + b"\xff" + good[5:], "LZMA header that cannot be read"),
        (lambda good: good[:9], "ends within runs/a"),
        (lambda good: good[: len(good) // 2], "ends within runs/a"),
        (lambda good: good[:9] + b"\xff" * 50, "not a complete zip file: Corrupt input data"),
        (lambda good: lzma_member(b"y" * len(SAMPLES["runs/a"])), "runs/a does not match the list"),
    ],
)
def test_bad_lzma_is_refused(tmp_path: Path, change: Callable[[bytes], bytes], why: str) -> None:
    bad = change(lzma_member(SAMPLES["runs/a"]))
    _refuses(forge_zip(tmp_path / "bad.zip", SAMPLES, {"runs/a": bad}), tmp_path, why)


def test_lzma_with_any_byte_changed_gives_one_error_or_the_same_files(tmp_path: Path) -> None:
    good = lzma_member(SAMPLES["runs/a"])
    for place in range(len(good)):
        bad = forge_zip(tmp_path / "bad.zip", SAMPLES, {"runs/a": _flipped(good, place)})
        _refused_or_equal(bad, tmp_path)


def test_an_lzma_bomb_needs_no_memory_whatever_it_declares(tmp_path: Path) -> None:
    bomb = lzma_member(bytes(BOMB_BYTES))
    assert len(bomb) < 100_000
    with _at_most(30_000_000):
        _refuses(forge_zip(tmp_path / "bad.zip", SAMPLES, {"runs/a": bomb}), tmp_path, "runs/a does not match the list")


def _with_dictionary(declared_bytes: int) -> bytes:
    good = lzma_member(SAMPLES["runs/a"])
    return good[:5] + struct.pack("<I", declared_bytes) + good[9:]


def _decodes_to(member: bytes, content: bytes) -> bool:
    decompressor = zipfile.LZMADecompressor()
    return bool(decompressor.decompress(member) == content)


def _flipped(content: bytes, place: int) -> bytes:
    """One byte changed: by its lowest bit, its highest bit, or all of them."""
    return content[:place] + bytes([content[place] ^ (0x01, 0x80, 0xFF)[place % 3]]) + content[place + 1 :]


def _refused_or_equal(place: Path, tmp_path: Path) -> None:
    try:
        _fetch(place, tmp_path / "out/target")
    except CorruptError:
        assert not (tmp_path / "out").exists()
    else:
        assert {name: (tmp_path / "out/target" / name).read_bytes() for name in SAMPLES} == SAMPLES
        shutil.rmtree(tmp_path / "out")


@contextmanager
def _at_most(limit_bytes: int) -> Iterator[None]:
    """Nothing within allocates more. The lzma module allocates its dictionary where Python counts it."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit_bytes
    finally:
        tracemalloc.stop()
