# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from pybench.errors import DeviceMemoryError, InputError, UsageError
from pybench.preprocess import find_tokenizer, open_batches, resolve_corpus, vocabulary_size

TOK32K = find_tokenizer("tok32k")
IN_PROCESS = ("python", "hf", "rust")
SPECIAL_IN_TEXT = "before<|endoftext|>after\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpus")
    (root / "a.txt").write_text("It's a first document, naïve and short.\n" * 20, "utf-8")
    (root / "b.txt").write_text(SPECIAL_IN_TEXT * 3, "utf-8")
    (root / "c.txt").write_text("中文 и русский   \t\n" * 30, "utf-8")
    return root


def test_the_three_paths_give_equal_batches_of_the_standard_library() -> None:
    corpus = resolve_corpus("python-stdlib", 400_000)
    results = set()
    for path in IN_PROCESS:
        with open_batches(path, TOK32K, corpus, 4, 128) as stream:
            count = sum(1 for _ in stream)
        results.add((stream.ids_sha256, stream.tokens, stream.text_bytes))
        assert stream.tokens == count * 4 * 128
        assert 0 < stream.text_bytes <= corpus.total_bytes
        assert stream.wait_s > 0
    assert len(results) == 1


@pytest.mark.parametrize("path", IN_PROCESS)
def test_batches_are_the_definition_applied_to_the_judges_ids(folder: Path, path: str) -> None:
    import tokenizers

    judge = tokenizers.Tokenizer.from_file(str(TOK32K))
    sequence = []
    for name in ("a.txt", "b.txt", "c.txt"):
        sequence += [*judge.encode((folder / name).read_text("utf-8")).ids, judge.token_to_id("<|endoftext|>")]
    with open_batches(path, TOK32K, resolve_corpus(str(folder)), 2, 16) as stream:
        batches = list(stream)
    full = len(sequence) // 32 * 32
    assert np.concatenate([batch.ravel() for batch in batches]).tolist() == sequence[:full]
    assert stream.ids_sha256 == hashlib.sha256(np.array(sequence[:full], "<u4").tobytes()).hexdigest()
    assert {(batch.dtype, batch.shape) for batch in batches} == {(np.dtype(np.int64), (2, 16))}


@pytest.mark.parametrize("path", IN_PROCESS)
def test_epochs_follow_each_other_without_a_break(folder: Path, path: str) -> None:
    corpus = resolve_corpus(str(folder))
    with open_batches(path, TOK32K, corpus, 1, 1) as once, open_batches(path, TOK32K, corpus, 1, 1, epochs=3) as thrice:
        assert [int(ids[0, 0]) for ids in once] * 3 == [int(ids[0, 0]) for ids in thrice]
    with open_batches(path, TOK32K, corpus, 1, 7, epochs=0) as endless:
        assert len(list(islice(endless, 1000))) == 1000


@pytest.mark.parametrize("path", IN_PROCESS)
def test_a_file_that_stops_being_utf8_is_named_with_the_byte(tmp_path: Path, path: str) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("some text", "utf-8")
    corpus = resolve_corpus(str(tmp_path))
    (tmp_path / "b").write_bytes(b"some \xfftext")
    with (
        open_batches(path, TOK32K, corpus, 1, 100) as stream,
        pytest.raises(InputError, match="b is not UTF-8: byte 5 "),
    ):
        list(stream)


def test_synthetic_ids_come_from_the_seed_and_cover_the_vocabulary(folder: Path) -> None:
    corpus = resolve_corpus(str(folder))
    streams = [open_batches("none", TOK32K, corpus, 8, 512, seed=seed) for seed in (1, 1, 2)]
    first, again, other = (np.stack(list(islice(stream, 50))) for stream in streams)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (first.min(), first.max()) == (0, 31_999)
    assert (streams[0].tokens, streams[0].text_bytes) == (50 * 8 * 512, 0)


def test_waiting_is_the_time_inside_next_and_nothing_else(folder: Path) -> None:
    from pybench.measure.timing.clock import monotonic_ns

    with open_batches("rust", TOK32K, resolve_corpus(str(folder)), 1, 4) as stream:
        begin = monotonic_ns()
        next(stream)
        inside_s = stream.wait_s
        assert 0 < inside_s <= (monotonic_ns() - begin) / 1e9
        assert stream.wait_s == inside_s


def test_hashing_can_be_left_out(folder: Path) -> None:
    with open_batches("rust", TOK32K, resolve_corpus(str(folder)), 1, 4, hash_ids=False) as stream:
        next(stream)
        assert stream.ids_sha256 is None


def test_a_closed_stream_has_no_more_batches(folder: Path) -> None:
    with open_batches("rust", TOK32K, resolve_corpus(str(folder)), 1, 4) as stream:
        next(stream)
    assert list(stream) == []


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 5, 1)])
def test_impossible_numbers_are_a_usage_error(folder: Path, shape: tuple[int, int, int]) -> None:
    batch, seq_len, threads = shape
    with pytest.raises(UsageError):
        open_batches("rust", TOK32K, resolve_corpus(str(folder)), batch, seq_len, threads)


@pytest.mark.parametrize("path", ["none", "rust"])
def test_batches_without_memory_are_told_with_evidence(folder: Path, path: str) -> None:
    with pytest.raises(DeviceMemoryError, match="no memory for") as caught:
        open_batches(path, TOK32K, resolve_corpus(str(folder)), 1 << 30, 1 << 20, 1)
    assert "memory" in caught.value.evidence.lower()


def test_an_unknown_path_names_those_there_are(folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_batches("perl", TOK32K, resolve_corpus(str(folder)), 1, 1)
    assert "go_rust" in str(caught.value)


def change(tmp_path: Path, **parts: object) -> Path:
    file = json.loads(TOK32K.read_text("utf-8"))
    for name, value in parts.items():
        file["model" if name in file["model"] else name] = (
            {**file["model"], name: value} if name in file["model"] else value
        )
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(file), "utf-8")
    return path


@pytest.mark.parametrize("path", IN_PROCESS)
def test_a_tokenizer_without_an_end_of_text_token_is_refused(tmp_path: Path, folder: Path, path: str) -> None:
    text = TOK32K.read_text("utf-8").replace("<|endoftext|>", "<|somethingelse|>")
    mine = tmp_path / "mine.json"
    mine.write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"mine\.json has no token <\|endoftext\|>"):
        open_batches(path, mine, resolve_corpus(str(folder)), 1, 1)


@pytest.mark.parametrize("path", [*IN_PROCESS, "none"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"null", b'{"model": {}}', b"[" * 100_000])
def test_a_malformed_tokenizer_is_an_input_error(tmp_path: Path, folder: Path, path: str, content: bytes) -> None:
    mine = tmp_path / "mine.json"
    mine.write_bytes(content)
    with pytest.raises(InputError, match=r"mine\.json"):
        open_batches(path, mine, resolve_corpus(str(folder)), 1, 1)


@pytest.mark.parametrize("path", IN_PROCESS)
def test_a_truncated_tokenizer_is_an_input_error(tmp_path: Path, folder: Path, path: str) -> None:
    json_bytes = TOK32K.read_bytes()
    mine = tmp_path / "mine.json"
    for end in range(1, len(json_bytes) - 2, 300_007):
        mine.write_bytes(json_bytes[:end])
        with pytest.raises(InputError, match=r"mine\.json"):
            open_batches(path, mine, resolve_corpus(str(folder)), 1, 1)


@pytest.mark.parametrize("path", ["python", "rust"])
@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("normalizer", {"type": "NFC"}),
        ("pre_tokenizer", {"type": "Whitespace"}),
        ("pre_tokenizer", None),
        ("pre_tokenizer", {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}),
        ("padding", {"strategy": "BatchLongest"}),
        ("dropout", 0.5),
        ("type", "Unigram"),
        ("end_of_word_suffix", "</w>"),
    ],
)
def test_what_a_path_does_not_implement_is_refused_with_a_way_out(
    tmp_path: Path, folder: Path, path: str, part: str, value: object
) -> None:
    mine = change(tmp_path, **{part: value})
    with pytest.raises(InputError, match=r"mine\.json is not supported") as caught:
        open_batches(path, mine, resolve_corpus(str(folder)), 1, 1)
    assert "path hf" in str(caught.value)


def test_a_unigram_tokenizer_is_taken_by_path_hf_and_named_by_python(tmp_path: Path, folder: Path) -> None:
    scores = [["<unk>", 0.0], ["a", -1.0], ["s", -2.0]]
    model = {"type": "Unigram", "unk_id": 0, "vocab": scores, "byte_fallback": False}
    file = json.loads(TOK32K.read_text("utf-8")) | {"model": model, "pre_tokenizer": None, "decoder": None}
    file["added_tokens"][0]["id"] = len(scores)
    mine, corpus = tmp_path / "mine.json", resolve_corpus(str(folder))
    mine.write_text(json.dumps(file), "utf-8")
    assert vocabulary_size(mine) == 4
    with open_batches("hf", mine, corpus, 1, 8) as stream:
        assert {int(id_) for ids in stream for id_ in ids.ravel()} == {0, 1, 2, 3}
    with pytest.raises(InputError, match="is not supported: its model is Unigram"):
        open_batches("python", mine, corpus, 1, 8)
    with pytest.raises(InputError, match="is not supported"):
        open_batches("rust", mine, corpus, 1, 8)


def test_the_judges_path_takes_documents_whole_whatever_the_file_says(tmp_path: Path, folder: Path) -> None:
    truncation = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    mine, corpus = change(tmp_path, truncation=truncation), resolve_corpus(str(folder))
    with open_batches("hf", mine, corpus, 1, 8) as cut, open_batches("rust", TOK32K, corpus, 1, 8) as whole:
        assert [ids.tolist() for ids in cut] == [ids.tolist() for ids in whole]


def test_readable_python_refuses_merges_out_of_order(tmp_path: Path, folder: Path) -> None:
    merges = json.loads(TOK32K.read_text("utf-8"))["model"]["merges"]
    mine = change(tmp_path, merges=merges[::-1])
    with pytest.raises(InputError, match="joins a token that no merge before it makes"):
        open_batches("python", mine, resolve_corpus(str(folder)), 1, 1)


def test_the_built_in_tokenizer_and_paths_are_found(tmp_path: Path) -> None:
    assert vocabulary_size(TOK32K) == 32_000
    assert find_tokenizer(str(TOK32K)) == TOK32K
    with pytest.raises(InputError, match="absent") as caught:
        find_tokenizer(str(tmp_path / "absent"))
    assert "tok32k" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "forbidden"), [("rust", "tokenizers"), ("python", "tokenizers"), ("none", "pybench_tokenizer")]
)
def test_a_path_imports_only_what_it_needs(folder: Path, path: str, forbidden: str) -> None:
    code = (
        "import sys; from pybench.preprocess import *\n"
        f"corpus = resolve_corpus({str(folder)!r})\n"
        f"next(open_batches({path!r}, find_tokenizer('tok32k'), corpus, 1, 4))\n"
        f"assert not {{{forbidden!r}, 'torch', 'polars'}} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
