# SPDX-License-Identifier: Apache-2.0
"""The path `go_rust` as an equal of the others, and how its program is found. The ring itself: tests/contract."""

from __future__ import annotations

import gc
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from pybench.errors import InputError, PybenchError, UnsupportedError, UsageError
from pybench.preprocess import find_tokenizer, open_batches, program, resolve_corpus
from pybench.preprocess.program import NAME, VARIABLE, find_orchestrator

pytestmark = pytest.mark.process  # the orchestrator

TOKENIZER = find_tokenizer("tok32k")


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "texts"
    made.mkdir()
    for number in range(20):
        (made / f"{number:02}.txt").write_text(f"Document {number}: naïve 漢字, x = {number} ** 2\n\n" * (number + 1))
    return made


@pytest.mark.parametrize("epochs", [1, 3])
def test_it_delivers_what_the_path_rust_delivers(folder: Path, epochs: int) -> None:
    corpus = resolve_corpus(str(folder))
    results = []
    for path in ("rust", "go_rust"):
        with open_batches(path, TOKENIZER, corpus, 4, 32, 2, epochs=epochs) as stream:
            batches = list(stream)
            results.append((np.concatenate(batches), stream.tokens, stream.text_bytes, stream.ids_sha256))
        assert {(ids.dtype, ids.shape) for ids in batches} == {(np.dtype(np.int64), (4, 32))}
        assert stream.wait_s > 0
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert results[0][1:] == results[1][1:]


def test_batches_belong_to_the_caller_and_the_hash_can_be_left_out(folder: Path) -> None:
    with open_batches("go_rust", TOKENIZER, resolve_corpus(str(folder)), 1, 16, 1, hash_ids=False) as stream:
        first = next(stream)
        before = first.copy()
        for ids in stream:
            ids[:] = -1
        assert stream.ids_sha256 is None
    np.testing.assert_array_equal(first, before)


def test_a_corpus_shorter_than_a_batch_gives_none(folder: Path) -> None:
    with open_batches("go_rust", TOKENIZER, resolve_corpus(str(folder)), 1000, 1000, 1) as stream:
        assert list(stream) == []
        assert (stream.tokens, stream.text_bytes) == (0, 0)


@pytest.mark.parametrize("text", ["", "{", '{"model": {"type": "Unigram", "vocab": {}}}'])
def test_a_bad_tokenizer_is_an_input_error_that_names_it(folder: Path, tmp_path: Path, text: str) -> None:
    bad = tmp_path / "bad tokenizer.json"
    bad.write_text(text)
    with pytest.raises(InputError, match=r"bad tokenizer\.json"):
        open_batches("go_rust", bad, resolve_corpus(str(folder)), 1, 16, 1)


def test_a_batch_over_a_slot_is_unsupported(folder: Path) -> None:
    with pytest.raises(UnsupportedError, match="268435456 ids"):
        open_batches("go_rust", TOKENIZER, resolve_corpus(str(folder)), 1 << 20, 1 << 20, 1)


def test_failing_and_closing_leave_no_file_descriptor_behind(folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    corpus = resolve_corpus(str(folder))
    gc.collect()  # what other tests left
    before = os.listdir("/proc/self/fd")
    with open_batches("go_rust", TOKENIZER, corpus, 1, 16, 1) as stream:
        next(stream)
    del stream
    with pytest.raises(InputError):
        open_batches("go_rust", bad, corpus, 1, 16, 1)
    assert os.listdir("/proc/self/fd") == before


def test_the_variable_comes_first_then_the_folder_of_this_python_then_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {name: tmp_path / name for name in ("variable", "python", "path")}
    for made in folders.values():
        made.mkdir()
    programs = {name: executable(made / NAME) for name, made in folders.items()}
    monkeypatch.setattr(sys, "executable", str(folders["python"] / "python"))
    monkeypatch.setitem(sys.modules, "pybench_orchestrator", None)  # its wheel is not installed
    environment = {VARIABLE: str(programs["variable"]), "PATH": str(folders["path"])}
    assert find_orchestrator(environment) == programs["variable"]
    del environment[VARIABLE]
    assert find_orchestrator(environment) == programs["python"]
    programs["python"].unlink()
    assert find_orchestrator(environment) == programs["path"]
    programs["path"].unlink()
    with pytest.raises(UnsupportedError, match="neither installed nor next to") as caught:
        find_orchestrator(environment)
    assert caught.value.reason.stored_code == "orchestrator_missing"
    assert "make setup" in str(caught.value)


def test_a_variable_that_names_no_program_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for value in (tmp_path / "gone", tmp_path / "text", tmp_path):
        with pytest.raises(UsageError, match="not a program"):
            find_orchestrator({VARIABLE: str(value)})


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/bin/sh\necho first >&2; echo last words >&2; exit 7\n", "(?s)exit code 7.*first.*last words"),
        ("#!/bin/sh\nkill -SEGV $$\n", "killed by SIGSEGV"),
        ("#!/bin/sh\necho not json; exit 0\n", "exit code 0"),
        ("#!/nonexistent/interpreter\n", "cannot start"),
    ],
)
def test_a_program_that_is_not_the_orchestrator_is_explained(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    monkeypatch.setenv(VARIABLE, str(executable(tmp_path / "impostor", script)))
    with pytest.raises(PybenchError, match=message):
        open_batches("go_rust", TOKENIZER, resolve_corpus(str(folder)), 1, 16, 1)


def test_a_program_that_closes_its_ring_and_stays_is_killed_and_named_for_that(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"#!{sys.executable}\nimport os, time\nos.closerange(3, 1024)\ntime.sleep(600)\n"
    monkeypatch.setenv(VARIABLE, str(executable(tmp_path / "stuck", script)))
    monkeypatch.setattr(program, "PATIENCE_S", 0.1)
    with pytest.raises(PybenchError, match=r"stayed 0\.1 s beyond its ring"):
        open_batches("go_rust", TOKENIZER, resolve_corpus(str(folder)), 1, 16, 1)
