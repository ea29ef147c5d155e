# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gzip
import hashlib
import os
import sysconfig
from pathlib import Path

import pytest

from pybench.errors import InputError, UsageError
from pybench.preprocess.corpus import resolve_corpus


def write(root: Path, **texts: bytes) -> Path:
    for name, text in texts.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return root


def test_a_folder_is_walked_in_the_order_of_relative_paths(tmp_path: Path) -> None:
    write(tmp_path, b=b"2", a__z=b"1", c__a__x=b"3", c__b=b"44", B=b"0")
    corpus = resolve_corpus(str(tmp_path))
    assert [file.relative_to(tmp_path).as_posix() for file in corpus.files] == ["B", "a/z", "b", "c/a/x", "c/b"]
    assert corpus.total_bytes == 6
    assert [text for _, text in corpus.documents()] == [b"0", b"1", b"2", b"3", b"44"]


def test_empty_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, a=b"x", b=b"")
    write(tmp_path / ".git", c=b"y")
    (tmp_path / ".hidden").write_bytes(b"\xff")
    assert [file.name for file in resolve_corpus(str(tmp_path)).files] == ["a"]


def test_a_file_is_one_document_and_the_hash_is_of_content_only(tmp_path: Path) -> None:
    write(tmp_path, one=b"text", other=b"text")
    corpus, other = resolve_corpus(str(tmp_path / "one")), resolve_corpus(str(tmp_path / "other"))
    assert corpus.sha256 == other.sha256 == hashlib.sha256((4).to_bytes(8, "little") + b"text").hexdigest()


def test_endings_are_read_in_letters_of_either_case(tmp_path: Path) -> None:
    lines = b'{"text": "one"}\n{"text": "two"}\n'
    for name, content in (("a.JSONL", lines), ("b.Jsonl.GZ", gzip.compress(lines)), ("c.NDJson", lines)):
        (tmp_path / name).write_bytes(content)
        assert [text for _, text in resolve_corpus(str(tmp_path / name)).documents()] == [b"one", b"two"], name


def test_the_hash_sees_where_documents_end(tmp_path: Path) -> None:
    first = resolve_corpus(str(write(tmp_path / "first", a=b"ab", b=b"c")))
    second = resolve_corpus(str(write(tmp_path / "second", a=b"a", b=b"bc")))
    assert first.sha256 != second.sha256


def test_a_limit_takes_whole_documents_in_order(tmp_path: Path) -> None:
    write(tmp_path, a=b"123", b=b"456", c=b"7")
    for limit, names in ((3, ["a"]), (5, ["a"]), (6, ["a", "b"]), (7, ["a", "b", "c"]), (99, ["a", "b", "c"])):
        assert [file.name for file in resolve_corpus(str(tmp_path), limit).files] == names
    with pytest.raises(InputError, match="3 bytes, the limit is 2"):
        resolve_corpus(str(tmp_path), 2)


def test_a_file_that_is_not_utf8_is_named_with_the_byte(tmp_path: Path) -> None:
    write(tmp_path, a=b"good", b="naïve".encode("latin1"))
    with pytest.raises(InputError, match=r"/b is not UTF-8: byte 2 ") as caught:
        resolve_corpus(str(tmp_path))
    assert caught.value.hint is not None
    assert "iconv" in caught.value.hint


def test_what_is_behind_the_limit_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, a=b"good", b=b"much longer", c=b"\xff")
    assert resolve_corpus(str(tmp_path), 5).total_bytes == 4


@pytest.mark.parametrize("name", ["absent", "empty_folder", "empty_file"])
def test_missing_and_empty_corpora_are_errors(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty_folder").mkdir()
    (tmp_path / "empty_file").touch()
    with pytest.raises(InputError, match=name) as caught:
        resolve_corpus(str(tmp_path / name))
    assert caught.value.hint is not None


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is not a regular file"):
        resolve_corpus(str(tmp_path))


def test_a_dangling_link_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="link cannot be read"):
        resolve_corpus(str(tmp_path))


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, a=b"x")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert len(resolve_corpus(str(tmp_path)).files) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, a=b"x")
    (tmp_path / "a").chmod(0)
    with pytest.raises(InputError, match="a cannot be read"):
        resolve_corpus(str(tmp_path))


def test_a_file_that_goes_away_later_is_an_error(tmp_path: Path) -> None:
    corpus = resolve_corpus(str(write(tmp_path, a=b"x")))
    (tmp_path / "a").unlink()
    with pytest.raises(InputError, match="a cannot be read"):
        list(corpus.documents())


def test_the_standard_library_is_sources_of_this_interpreter_and_nothing_installed() -> None:
    corpus = resolve_corpus("python-stdlib")
    root = Path(sysconfig.get_path("stdlib"))
    relative = [file.relative_to(root) for file in corpus.files]
    assert Path("argparse.py") in relative
    assert relative == sorted(relative, key=Path.as_posix)
    assert not any({"site-packages", "dist-packages"} & set(path.parts) for path in relative)
    assert {path.suffix for path in relative} == {".py"}
    assert corpus.total_bytes > 5_000_000
    assert (
        resolve_corpus("python-stdlib", 1_000_000).files
        == corpus.files[: len(resolve_corpus("python-stdlib", 1_000_000).files)]
    )


def test_a_rank_that_does_not_exist_or_would_read_nothing_is_refused(tmp_path: Path) -> None:
    corpus = resolve_corpus(str(write(tmp_path, a=b"x", b=b"y")))
    for rank, world in ((-1, 2), (2, 2), (0, 0)):
        with pytest.raises(UsageError, match=f"no rank {rank} of {world}"):
            corpus.share(rank, world)
    with pytest.raises(InputError, match="has 2 documents, too few for rank 2 of 3"):
        corpus.share(2, 3)


def test_documents_without_text_are_numbered_and_passed_over(tmp_path: Path) -> None:
    lines = b'{"text": "a"}\n{"text": ""}\n\n{"text": "b"}\n'
    corpus = resolve_corpus(str(write(tmp_path, x=b"", z=b"c") / "z"))
    assert (corpus.count, corpus.total_bytes) == (1, 1)
    (tmp_path / "y.jsonl").write_bytes(lines)
    corpus = resolve_corpus(str(tmp_path))
    assert (corpus.count, corpus.total_bytes) == (4, 3)
    assert [(str(place).removeprefix(f"{tmp_path}/"), text) for place, text in corpus.documents()] == [
        ("y.jsonl line 1", b"a"),
        ("y.jsonl line 4", b"b"),
        ("z", b"c"),
    ]
    assert [text for _, text in corpus.share(1, 2).documents()] == [b"c"]
