# SPDX-License-Identifier: Apache-2.0
"""One corpus in every form, by every path: the same documents, the same ids, the same errors.

The judge is the definition written down once more: each text encoded by Hugging Face tokenizers, by hand packed.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import zstandard

from pybench.errors import InputError
from pybench.preprocess import find_tokenizer, go_rust, open_batches, open_ragged, resolve_corpus
from pybench.preprocess.orchestrator import Orchestrator
from pybench.preprocess.ring import Ring, RingLayout
from tests.contract import tokenizer_files

TOKENIZER = find_tokenizer("tok32k")
PATHS = ("python", "hf", "rust", "go_rust")
PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}
FORMS = [f"{kind}{suffix}" for kind in ("text", "lines") for suffix in PACK]


@cache
def texts() -> tuple[str, ...]:
    """Documents with everything that JSON escapes; some are empty, one is longer than a chunk of the orchestrator's."""
    short = [f'{n} "naïve" \\ 漢字 🎈\tline\n<|endoftext|> x' * (n % 7) for n in range(60)]
    return (*short, "A long one, of many words. " * 20_000, *short)


def write_corpus(root: Path, form: str) -> Path:
    """All texts in one form: a folder of files, or files of JSON lines in a folder."""
    kind, _, suffix = form.partition(".")
    pack = PACK[f".{suffix}" if suffix else ""]
    ending = f".{suffix}" if suffix else ""
    root.mkdir(exist_ok=True)
    if kind == "text":
        for number, text in enumerate(texts()):
            # A plain file of no bytes is no document, while an empty one of another form is numbered: none is empty.
            (root / f"{number:03}.txt{ending}").write_bytes(pack((text or " ").encode()))
        return root
    for part in range(2):
        lines = [
            json.dumps({"id": 1, "text": text or " ", "meta": {"text": "no"}}, ensure_ascii=number % 2 == 0)
            for number, text in enumerate(texts()[part::2])
        ]
        (root / f"{part}.jsonl{ending}").write_bytes(pack("\n\n".join(lines).encode()))
    return root


def in_order(form: str) -> list[str]:
    """The texts in the order in which a form has them."""
    all_texts = [text or " " for text in texts()]
    return all_texts if form.startswith("text") else all_texts[0::2] + all_texts[1::2]


@cache
def encoded(text: str) -> tuple[int, ...]:
    judge = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    return (*judge.encode(text).ids, judge.token_to_id("<|endoftext|>"))


def flat(documents: list[str]) -> list[int]:
    return [id_ for text in documents for id_ in encoded(text)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", PATHS)
def test_every_path_gives_the_judges_ids_of_every_form(tmp_path: Path, form: str, path: str) -> None:
    corpus = resolve_corpus(str(write_corpus(tmp_path / "corpus", form)))
    assert corpus.count == len(texts())
    expected = flat(in_order(form))
    with open_batches(path, TOKENIZER, corpus, 4, 64, 3) as stream:
        got = np.concatenate([ids.ravel() for ids in stream])
    assert got.tolist() == expected[: len(expected) // 256 * 256]
    assert 0 < stream.text_bytes <= corpus.total_bytes == sum(len(text.encode()) for text in in_order(form))


@pytest.mark.parametrize("path", [path for path in PATHS if path != "python"])
def test_a_vocabulary_in_llama_3s_form_gives_the_judges_ids_on_every_path(tmp_path: Path, path: str) -> None:
    """Its rule, its token at the end of a text, and one at the begin that only its post-processor sets."""
    text = TOKENIZER.read_text("utf-8").replace("<|endoftext|>", "<|end_of_text|>")
    file = json.loads(text) | {"pre_tokenizer": tokenizer_files.pre_tokenizer("llama3")}
    end = {"SpecialToken": {"id": "<|end_of_text|>", "type_id": 0}}
    special = {"<|end_of_text|>": {"id": "<|end_of_text|>", "ids": [0], "tokens": ["<|end_of_text|>"]}}
    pieces = [end, {"Sequence": {"id": "A", "type_id": 0}}]
    file["post_processor"] = {"type": "TemplateProcessing", "single": pieces, "pair": pieces, "special_tokens": special}
    own = tmp_path / "llama3.json"
    own.write_text(json.dumps(file), "utf-8")
    judge = tokenizers.Tokenizer.from_file(str(own))
    documents = [judge.encode(one, add_special_tokens=False).ids for one in in_order("text")]
    expected = [id_ for ids in documents for id_ in (*ids, judge.token_to_id("<|end_of_text|>"))]
    with open_batches(path, own, resolve_corpus(str(write_corpus(tmp_path / "corpus", "text"))), 4, 64, 3) as stream:
        got = np.concatenate([ids.ravel() for ids in stream])
    assert got.tolist() == expected[: len(expected) // 256 * 256]


@pytest.mark.parametrize("form", ["text", "lines.gz"])
@pytest.mark.parametrize("path", PATHS)
def test_ranks_read_every_document_once_on_every_path(tmp_path: Path, form: str, path: str) -> None:
    corpus = resolve_corpus(str(write_corpus(tmp_path / "corpus", form)))
    documents = in_order(form)
    for rank in range(3):
        with open_batches(path, TOKENIZER, corpus.share(rank, 3), 1, 16, 2, epochs=2) as stream:
            got = np.concatenate([ids.ravel() for ids in stream])
        expected = flat(documents[rank::3]) * 2
        assert got.tolist() == expected[: len(expected) // 16 * 16]


@pytest.mark.parametrize("path", ["rust", "go_rust"])
def test_a_limit_cuts_inside_a_file_of_lines(tmp_path: Path, path: str) -> None:
    root = write_corpus(tmp_path / "corpus", "lines.zst")
    corpus = resolve_corpus(str(root), limit_bytes=2000)
    with open_batches(path, TOKENIZER, corpus, 1, 8) as stream:
        got = np.concatenate([ids.ravel() for ids in stream])
    expected = flat(in_order("lines")[: corpus.count])
    assert got.tolist() == expected[: len(expected) // 8 * 8]
    assert corpus.total_bytes <= 2000


@pytest.mark.parametrize("path", PATHS)
def test_ragged_batches_are_equal_rows_on_every_path(tmp_path: Path, path: str) -> None:
    corpus = resolve_corpus(str(write_corpus(tmp_path / "corpus", "lines")))
    rows = [
        ids[begin : begin + 50]
        for text in in_order("lines")
        for ids in [encoded(text)]
        for begin in range(0, len(ids), 50)
    ]
    got = []
    for batch in open_ragged(path, TOKENIZER, corpus, 7, 50, 2):
        assert batch.offsets[0] == 0
        assert len(batch.ids) == batch.offsets[-1]
        got += [tuple(row.tolist()) for row in np.split(batch.ids, batch.offsets[1:-1])]
        assert len(batch.offsets) == 8 or len(got) == len(rows)
    assert got == rows
    assert batch.text_bytes == corpus.total_bytes


def test_a_ragged_stream_that_is_left_early_ends_its_orchestrator(tmp_path: Path) -> None:
    corpus = resolve_corpus(str(write_corpus(tmp_path / "corpus", "text")))
    before = os.listdir("/proc/self/fd")
    batches = open_ragged("go_rust", TOKENIZER, corpus, 7, 50, 2, epochs=0)
    assert len(list(islice(batches, 3))) == 3
    batches.close()  # type: ignore[attr-defined]
    assert os.listdir("/proc/self/fd") == before


BAD_LINES = {
    '{"text": "x"}\nwords': "line 2 is not a JSON object",
    "[1]": "line 1 is not a JSON object",
    '\n{"text": NaN}': "line 2 is not a JSON object",
    '{"b": 1, "a": 2}': r"line 1 has no field text \(it has: a, b\)",
    '{"text": 5}': "line 1: field text is not a string",
    '{"text": "\\ud83c"}': "line 1: field text contains half a surrogate pair",
}


@pytest.mark.parametrize("lines", BAD_LINES)
@pytest.mark.parametrize("path", ["python", "go_rust"])
def test_a_bad_line_is_the_same_error_in_python_and_in_go(tmp_path: Path, lines: str, path: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"text": "good"}\n' * (lines.count("\n") + 1))
    corpus = resolve_corpus(str(file))
    file.write_text(lines)
    with (
        pytest.raises(InputError, match=f"x.jsonl {BAD_LINES[lines]}") as caught,
        open_batches(path, TOKENIZER, corpus, 1, 2) as stream,
    ):
        list(stream)
    assert caught.value.hint
    with pytest.raises(InputError, match=f"x.jsonl {BAD_LINES[lines]}"):
        resolve_corpus(str(file))


@pytest.mark.parametrize(
    ("name", "kind"), [("x.gz", "gzip"), ("x.jsonl.gz", "gzip"), ("x.zst", "zstd"), ("x.jsonl.zst", "zstd")]
)
@pytest.mark.parametrize("path", ["python", "go_rust"])
def test_a_file_that_was_cut_off_is_the_same_error_in_python_and_in_go(
    tmp_path: Path, name: str, kind: str, path: str
) -> None:
    file, words = tmp_path / name, np.random.default_rng(1).integers(0, 10_000, 5_000)
    line = json.dumps({"text": " ".join(map(str, words))}).encode()
    whole = PACK[file.suffix](line)
    file.write_bytes(whole)
    corpus = resolve_corpus(str(file))
    file.write_bytes(whole[: len(whole) // 2])
    with (
        pytest.raises(InputError, match=f"{name} is not a complete {kind} file: it is incomplete") as caught,
        open_batches(path, TOKENIZER, corpus, 1, 2) as stream,
    ):
        list(stream)
    assert caught.value.hint
    with pytest.raises(InputError, match=f"{name} is not a complete {kind} file: it is incomplete"):
        resolve_corpus(str(file))


def without_header(whole: bytes) -> bytes:
    return b"words" + whole


def with_another_checksum(whole: bytes) -> bytes:
    return whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:]


def with_another_middle(whole: bytes) -> bytes:
    middle = len(whole) // 2
    return whole[:middle] + bytes(50) + whole[middle + 50 :]


REASONS: dict[tuple[str, Callable[[bytes], bytes]], tuple[str, str]] = {
    ("x.gz", without_header): (r"Not a gzipped file \(b'wo'\)", "gzip: invalid header"),
    ("x.gz", with_another_checksum): ("CRC check failed", "gzip: invalid checksum"),
    ("x.gz", with_another_middle): ("Error -3 while decompressing data", "flate: corrupt input"),
    ("x.zst", without_header): ("zstd decompressor error: Unknown frame descriptor", "invalid input: magic number"),
}


@pytest.mark.parametrize(("name", "damage"), REASONS)
@pytest.mark.parametrize("path", ["python", "go_rust"])
def test_of_a_damaged_file_both_say_why_it_is_none(
    tmp_path: Path, name: str, damage: Callable[[bytes], bytes], path: str
) -> None:
    file, words = tmp_path / name, np.random.default_rng(1).integers(0, 10_000, 5_000)
    whole = PACK[file.suffix](" ".join(map(str, words)).encode())
    file.write_bytes(whole)
    corpus = resolve_corpus(str(file))
    file.write_bytes(damage(whole))
    reason = REASONS[name, damage][path == "go_rust"]
    kind = {".gz": "gzip", ".zst": "zstd"}[file.suffix]
    with (
        pytest.raises(InputError, match=f"{name} is not a complete {kind} file: {reason}"),
        open_batches(path, TOKENIZER, corpus, 1, 2) as stream,
    ):
        list(stream)


NAMES = [".gz", ".zst", "..gz", "x..zst", ".jsonl", ".jsonl.gz", ".ndjson.zst", "x.gz.zst", "x.GZ", "x.Jsonl.Zst", "gz"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", ["python", "go_rust"])
def test_a_name_means_the_same_in_python_and_in_go_also_where_it_is_all_ending(
    tmp_path: Path, name: str, path: str
) -> None:
    text = "the words of a document " * 20
    ending = next((ending for ending in (".gz", ".zst") if name.lower().endswith(ending)), "")
    lines = name.lower().removesuffix(ending).endswith((".jsonl", ".ndjson"))
    file = tmp_path / name
    file.write_bytes(PACK[ending]((json.dumps({"text": text}) if lines else text).encode()))
    with open_batches(path, TOKENIZER, resolve_corpus(str(file)), 1, 8) as stream:
        got = np.concatenate([ids.ravel() for ids in stream])
    expected = flat([text])
    assert got.tolist() == expected[: len(expected) // 8 * 8]


def test_the_orchestrator_finds_folders_and_reads_standard_input_by_itself(tmp_path: Path) -> None:
    root = write_corpus(tmp_path / "corpus", "lines.gz")
    expected = flat(in_order("lines"))
    flags = go_rust.tokenizer_flags(TOKENIZER, 2, 1)
    for inputs, stdin in (
        (["--input", str(root)], None),
        (["--input", str(root / "0.jsonl.gz"), "--input", "-", "--stdin-as", "x.jsonl.gz"], root / "1.jsonl.gz"),
    ):
        with Ring(RingLayout(1, 64, 4)) as ring:
            reader = ring.reader()
            with open(stdin or os.devnull, "rb") as file:
                orchestrator = Orchestrator(ring, (), [*flags, *inputs], file.fileno())
            reader.wait_ready()
            got: list[int] = []
            while (slot := reader.next()) is not None:
                got += slot.ids.ravel().tolist()
                reader.give_back(slot.index)
            counters = orchestrator.finish()
            orchestrator.close()
        assert got == expected[: len(expected) // 64 * 64]
        assert counters.documents == len(texts())
        assert counters.read_bytes > counters.text_bytes > 0
