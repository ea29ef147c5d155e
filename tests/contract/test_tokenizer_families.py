# SPDX-License-Identifier: Apache-2.0
"""Each splitting rule against its judge, by a vocabulary that shows where a text was cut."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tokenizers
from pybench_tokenizer import ArgumentError, FormatError, Tokenizer, UnsupportedError

from pybench.preprocess.corpus import resolve_corpus
from pybench.preprocess.vocabulary import find_tokenizer
from tests.contract import tokenizer_files, tokenizer_texts
from tests.contract.test_tokenizer_exactness import encoded, first_difference, judged

FAMILIES = list(tokenizer_files.REGEXES)
WIDTHS = {"narrow": tokenizer_files.NARROW_PAIRS, "wide": tokenizer_files.WIDE_PAIRS}


@pytest.fixture(scope="module", params=[(family, width) for family in FAMILIES for width in WIDTHS], ids="-".join)
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    family, width = request.param
    path = tmp_path_factory.mktemp(family) / "tokenizer.json"
    tokenizer_files.write_tokenizer_json(path, family, WIDTHS[width])
    return Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(str(path))


Both = tuple[Tokenizer, tokenizers.Tokenizer]


def difference(both: Both, texts: Sequence[str]) -> str | None:
    tokenizer, judge = both
    return first_difference(texts, encoded(tokenizer, texts), judged(judge, texts))


def test_fuzzed_strings_are_cut_as_the_judge_cuts_them(both: Both) -> None:
    assert difference(both, tokenizer_texts.fuzzed(8_000, seed=17)) is None


def test_fuzzed_strings_end_to_end_are_cut_as_the_judge_cuts_them(both: Both) -> None:
    texts = tokenizer_texts.fuzzed(8_000, seed=18)
    joined = ["".join(texts[start : start + 100]) for start in range(0, len(texts), 100)]
    assert difference(both, joined) is None


def test_runs_of_every_length_are_cut_as_the_judge_cuts_them(both: Both) -> None:
    units = (" ", "a", "=", "\n", "é", "0", "\t\n", " a", "A", "'s", "\u3000", ";\n/", "中", " \n")
    texts = [unit * length for unit in units for length in (*range(1, 70), 127, 128, 129, 191, 254, 255, 256, 1000)]
    assert difference(both, texts) is None


@pytest.mark.parametrize("both", [(family, "narrow") for family in FAMILIES], ids="-".join, indirect=True)
def test_every_scalar_value_in_context_is_cut_as_the_judge_cuts_it(both: Both, request: pytest.FixtureRequest) -> None:
    """By o200k, whose classes are the finest, all but most letters without case and unassigned ones.

    The judge would take a minute for those. All rules share one table, and test_tokenizer_exactness.py has every scalar
    value by GPT-2's. By the others the ends of each class and samples.
    """
    every, every_plain = (1, 7) if "o200k" in request.node.callspec.id else (31, 31)
    assert difference(both, list(tokenizer_texts.scalars_in_many_contexts(every, every_plain))) is None


def test_source_text_is_cut_as_the_judge_cuts_it(both: Both) -> None:
    corpus = resolve_corpus("python-stdlib", limit_bytes=1_000_000)
    assert difference(both, [text.decode() for _, text in corpus.documents()]) is None


def test_removing_what_lies_between_matches_is_isolating_them(tmp_path: Path) -> None:
    path = tokenizer_files.write_tokenizer_json(tmp_path / "isolated.json", "llama3")
    file = json.loads(path.read_text("utf-8"))
    file["pre_tokenizer"]["pretokenizers"][0] |= {"behavior": "Removed", "invert": True}
    removed = tmp_path / "removed.json"
    removed.write_text(json.dumps(file), "utf-8")
    texts = tokenizer_texts.fuzzed(2_000, seed=19)
    judge = tokenizers.Tokenizer.from_file(str(removed))
    assert first_difference(texts, encoded(Tokenizer.from_file(removed), texts), judged(judge, texts)) is None


def test_every_split_of_every_token_and_ignore_merges_give_the_judges_ids(tmp_path: Path) -> None:
    """As in files that were made from tiktoken's, Llama 3's among them, which also sets a token before each text."""
    file = json.loads(find_tokenizer("tok32k").read_text("utf-8"))
    vocabulary: dict[str, int] = file["model"]["vocab"]
    by_id = sorted(vocabulary, key=vocabulary.__getitem__)
    splits = [[(token[:at], token[at:]) for at in range(1, len(token))] for token in by_id]
    merges = [pair for of_token in splits for pair in of_token if pair[0] in vocabulary and pair[1] in vocabulary]
    assert len(merges) > len(file["model"]["merges"])
    file["model"] |= {"merges": merges, "ignore_merges": True}
    file["pre_tokenizer"] = tokenizer_files.pre_tokenizer("llama3")
    begin, text = {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    special = {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}
    template = {"single": [begin, text], "pair": [begin, text], "special_tokens": {"<|endoftext|>": special}}
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    processors = [byte_level, {"type": "TemplateProcessing", **template}]
    file["post_processor"] = {"type": "Sequence", "processors": processors}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    texts = tokenizer_texts.fuzzed(8_000, seed=20)
    judge = tokenizers.Tokenizer.from_file(str(path))
    assert first_difference(texts, encoded(Tokenizer.from_file(path), texts), judged(judge, texts)) is None


def test_an_unknown_regex_is_named(tmp_path: Path) -> None:
    path = tokenizer_files.write_tokenizer_json(tmp_path / "tokenizer.json", "llama3")
    path.write_text(path.read_text("utf-8").replace("{1,3}", "{1,4}"), "utf-8")
    with pytest.raises(UnsupportedError, match=r"pre_tokenizer Split by .*only the regular expressions of GPT-2"):
        Tokenizer.from_file(path)


# --- rank files: tiktoken is the judge ---

TIKTOKEN_RULES = {
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
    "llama3": tokenizer_files.LLAMA3,
    "cl100k": tokenizer_files.CL100K,
    "o200k": tokenizer_files.O200K,
}
SPECIALS = {"<|endoftext|>": 70_000, "<|end|>": 70_002}


def tiktoken_encoding(family: str, ranks: dict[bytes, int]) -> tiktoken.Encoding:
    return tiktoken.Encoding(
        "judge", pat_str=TIKTOKEN_RULES[family], mergeable_ranks=ranks, special_tokens=dict(SPECIALS)
    )


@pytest.mark.parametrize("family", TIKTOKEN_RULES)
def test_a_rank_file_gives_tiktokens_ids(family: str, tmp_path: Path) -> None:
    path = tokenizer_files.write_ranks(tmp_path / "pairs.tiktoken", tokenizer_files.ranks())
    judge = tiktoken_encoding(family, tokenizer_files.ranks())
    plain, special = Tokenizer.from_ranks(path, family), Tokenizer.from_ranks(path, family, SPECIALS)
    texts = tokenizer_texts.fuzzed(8_000, seed=21)
    texts += [text + end for text in texts[:500] for end in ("\n  ", "  ", "\n\n", " \n", "<|end|>\n ")]
    expected = [judge.encode_ordinary(text) for text in texts]
    assert first_difference(texts, encoded(plain, texts), expected) is None
    expected = [judge.encode(text, allowed_special="all") for text in texts]
    assert first_difference(texts, encoded(special, texts), expected) is None


def test_a_trained_vocabulary_as_a_rank_file_gives_the_ids_of_its_tokenizer_json(tmp_path: Path) -> None:
    trained = Tokenizer.from_file(find_tokenizer("tok32k"))
    ranks = {trained.decode([id_]): id_ - 1 for id_ in range(1, trained.vocab_size)}
    path = tokenizer_files.write_ranks(tmp_path / "trained.tiktoken", ranks)
    texts = tokenizer_texts.fuzzed(4_000, seed=22)
    found = encoded(Tokenizer.from_ranks(path, "gpt2", {"<|endoftext|>": 31_999}), texts)
    expected = [[(id_ - 1) % 32_000 for id_ in ids] for ids in encoded(trained, texts)]
    assert first_difference(texts, found, expected) is None


def test_what_is_wrong_with_a_rank_file_or_its_rule_is_named(tmp_path: Path) -> None:
    path = tokenizer_files.write_ranks(tmp_path / "bytes.tiktoken", tokenizer_files.ranks(0))
    with pytest.raises(UnsupportedError, match=r'bytes\.tiktoken: splitting rule "p50k"; only gpt2, llama3'):
        Tokenizer.from_ranks(path, "p50k")
    with pytest.raises(FormatError, match="which another token has"):
        Tokenizer.from_ranks(path, "cl100k", {"<x>": 7})
    impossible: list[Any] = [-1, 2**32, 1.5, "1"]
    for number in impossible:
        with pytest.raises(ArgumentError, match=f"special token '<x>' has the id {number!r}"):
            Tokenizer.from_ranks(path, "cl100k", {"<x>": number})
    path.write_bytes(path.read_bytes() + b"YWJj 256\n")
    with pytest.raises(UnsupportedError, match=r'self-consistent: no two tokens of lower rank make "abc"'):
        Tokenizer.from_ranks(path, "cl100k")
