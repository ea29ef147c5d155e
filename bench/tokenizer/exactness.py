# SPDX-License-Identifier: Apache-2.0
"""Proof by search that ids are those of Hugging Face tokenizers 0.23: a million texts and more, each in every way.

    python bench/tokenizer/exactness.py [--family gpt2 ...] [--vocabulary pairs|trained ...] [--every 1]
                                        [--fuzzed 300000] [--seed 20260101]

The texts: every Unicode scalar value in two contexts, and every fourth in ten more; runs of every length; long words;
random UTF-8, letters and awkward parts (tests/contract/tokenizer_texts.py). Hugging Face tokenizers encodes each once.
This library encodes each through Python, then, by the example `check_ids`, at every level of instructions that the
machine has. It does so with no cache, one of two entries and one of 2^19; one text in fifty also at each of 64
alignments. Vocabularies: `pairs`, in which any two bytes merge, so that every cut between words shows; `trained`, of
32,000 tokens, learned by the rule from Python's library.

Exits with 1 when a text gets other ids.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray
from pybench_tokenizer import Tokenizer, train

sys.path.append(str(Path(__file__).parents[2]))  # last, so that pybench is the one that is installed

from bench.tokenizer.through_go import built_example
from tests.contract import tokenizer_texts
from tests.contract.tokenizer_files import REGEXES, write_tokenizer_json

SURROGATES = tokenizer_texts.SURROGATES
# Hugging Face tokenizers keeps an object for each text of a batch.
BATCH = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", action="append", choices=list(REGEXES))
    parser.add_argument("--vocabulary", action="append", choices=["pairs", "trained"])
    parser.add_argument("--every", type=int, default=1, help="only each n-th scalar value")
    parser.add_argument("--fuzzed", type=int, default=300_000, help="random texts")
    parser.add_argument("--seed", type=int, default=20260101)
    options = parser.parse_args()
    texts = [*scalars(options.every), *runs(), *long_words(options.seed)]
    texts += tokenizer_texts.fuzzed(options.fuzzed, options.seed)
    different = False
    with tempfile.TemporaryDirectory() as folder:
        for family in options.family or list(REGEXES):
            for kind in options.vocabulary or ["pairs", "trained"]:
                print(f"{family} {kind}: {len(texts)} texts", flush=True)
                vocabulary = write_vocabulary(Path(folder), family, kind)
                different |= compare(Path(folder), vocabulary, texts)
    sys.exit(different)


def scalars(every: int) -> Iterator[str]:
    codes = [code for code in range(0, sys.maxunicode + 1, every) if code not in SURROGATES]
    yield from (f"a{chr(code)} {chr(code)}" for code in codes)
    yield from tokenizer_texts.scalars_in_many_contexts(4 * every, 4 * every, scalars_per_text=64)


def runs() -> Iterator[str]:
    lengths = [*range(1, 140), 191, 192, 193, 255, 256, 257, 511, 1000, 4097]
    for unit in (" ", "a", "A", "=", "\n", "\r\n", "\t", "é", "中", "0", "ab", " a", "-", "'s", "/", "🙂", "\u0301"):
        yield from (unit * length for length in lengths)


def long_words(seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    for alphabet in ("abcdefghijklmnopqrstuvwxyz", "ab", "etaoin", "абвгд", "的一是不了", "ABab", "0123456789"):
        for length in (*range(10, 80), 127, 128, 129, 500, 5_000, 20_000):
            yield "".join(chance.choices(alphabet, k=length))


def write_vocabulary(folder: Path, family: str, kind: str) -> Path:
    path = folder / f"{family}-{kind}.json"
    if kind == "pairs":
        return write_tokenizer_json(path, family)
    library = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    path.write_bytes(train((file.read_bytes() for file in library), vocab_size=32_000, family=family))
    return path


def compare(folder: Path, vocabulary: Path, texts: list[str]) -> bool:
    """Whether any text gets other ids in any way."""
    expected, offsets = judged(vocabulary, texts)
    ids, id_offsets = Tokenizer.from_file(vocabulary).encode_batch(texts)
    same = np.array_equal(ids, expected) and np.array_equal(id_offsets, offsets)
    print(f"  through Python: {'the same ids' if same else 'DIFFERENT IDS'}, {len(expected)} of them", flush=True)
    encoded = [text.encode() for text in texts]
    write(folder / "texts", np.cumsum([len(text) for text in encoded]), b"".join(encoded))
    write(folder / "ids", offsets[1:], expected.tobytes())
    done = subprocess.run([built_example("check_ids"), vocabulary, folder / "texts", folder / "ids"], check=False)
    return not same or done.returncode != 0


def judged(vocabulary: Path, texts: Iterable[str]) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Ids end to end, and where those of each text begin."""
    judge, rest = tokenizers.Tokenizer.from_file(str(vocabulary)), iter(texts)
    parts, lengths = [], [0]
    while batch := list(islice(rest, BATCH)):
        encodings = judge.encode_batch_fast(batch, add_special_tokens=False)
        parts += [np.array(one.ids, "<u4") for one in encodings]
        lengths += [len(one.ids) for one in encodings]
    return np.concatenate(parts), np.cumsum(lengths, dtype=np.uint64)


def write(path: Path, ends: NDArray[np.uint64], content: bytes) -> None:
    path.write_bytes(np.array([len(ends), *ends], "<u8").tobytes() + content)


if __name__ == "__main__":
    main()
