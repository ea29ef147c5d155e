# SPDX-License-Identifier: Apache-2.0
"""One engine in a process of its own: encodes a corpus several times and prints each time and a hash of the ids.

    PYTHON engines.py ENGINE VOCABULARY CORPUS LIMIT_BYTES PASSES

Each engine is called in the fastest way that its Python package offers, on what that takes. Making that input is not
timed, nor is freeing the result or bringing it into one form for the hash. Needs numpy and the engine, not pybench.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[], Any]
Flatten = Callable[[Any], Any]
# Not in any corpus.
SEPARATOR = "\x01\x02\x03\x04"


def main() -> None:
    engine, vocabulary, corpus, limit, passes = sys.argv[1:6]
    text, offsets = read_corpus(Path(corpus), int(limit))
    run, flatten = ENGINES[engine](Path(vocabulary), text, offsets)
    seconds, digest = [], ""
    # A process shares its CPU with others, so its own time counts.
    clock = time.process_time
    for number in range(int(passes)):
        begin = clock()
        result = run()
        seconds.append(clock() - begin)
        if number == 0:
            digest = hashlib.sha256(np.ascontiguousarray(flatten(result), "<u4").tobytes()).hexdigest()
        del result
    print(json.dumps({"bytes": len(text), "seconds": seconds, "sha256": digest}))


def read_corpus(path: Path, limit: int) -> tuple[bytes, Any]:
    """Whole documents of at most that many bytes together, and where each begins."""
    offsets = np.fromfile(path.with_suffix(".off"), "<u8")
    offsets = offsets[: int(np.searchsorted(offsets, limit, "right"))]
    with path.open("rb") as file:
        return file.read(int(offsets[-1])), offsets


def pieces(text: bytes, offsets: Any) -> list[bytes]:
    bounds = offsets.tolist()
    return [text[begin:end] for begin, end in pairwise(bounds)]


def strings(text: bytes, offsets: Any) -> list[str]:
    return [piece.decode() for piece in pieces(text, offsets)]


def ours(vocabulary: Path, text: bytes, offsets: Any) -> tuple[Run, Flatten]:
    import pybench_tokenizer

    tokenizer = pybench_tokenizer.Tokenizer.from_file(vocabulary)
    return lambda: tokenizer.encode_batch(text, offsets), lambda result: result[0]


def ours_from_list(vocabulary: Path, text: bytes, offsets: Any) -> tuple[Run, Flatten]:
    import pybench_tokenizer

    tokenizer = pybench_tokenizer.Tokenizer.from_file(vocabulary)
    documents = strings(text, offsets)
    return lambda: tokenizer.encode_batch(documents), lambda result: result[0]


def hugging_face(vocabulary: Path, text: bytes, offsets: Any) -> tuple[Run, Flatten]:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(vocabulary))
    documents = strings(text, offsets)
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    return (
        lambda: encode(documents, add_special_tokens=False),
        lambda result: np.concatenate([np.array(one.ids, "<u4") for one in result]),
    )


def tiktoken(vocabulary: Path, text: bytes, offsets: Any) -> tuple[Run, Flatten]:
    import tiktoken as module

    ranks, specials = read_ranks(vocabulary)
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    encoding = module.Encoding("peer", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
    documents = strings(text, offsets)
    return lambda: [encoding.encode_ordinary(one) for one in documents], np.concatenate


def read_ranks(vocabulary: Path) -> tuple[dict[bytes, int], dict[str, int]]:
    file = json.loads(vocabulary.read_text("utf-8"))
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
    specials = {token["content"]: token["id"] for token in file["added_tokens"]}
    vocab = file["model"]["vocab"].items()
    return {bytes(byte_of[one] for one in token): id_ for token, id_ in vocab if token not in specials}, specials


def fastokens(vocabulary: Path, text: bytes, offsets: Any) -> tuple[Run, Flatten]:
    import fastokens as module

    tokenizer = module.Tokenizer.from_file(str(vocabulary))
    documents = strings(text, offsets)
    return lambda: tokenizer.encode_batch_flat(documents), lambda result: np.frombuffer(result[0], "<u4")


def gigatoken(vocabulary: Path, text: bytes, offsets: Any) -> tuple[Run, Flatten]:
    import awkward
    import gigatoken as module

    source = module.BytesSource(SEPARATOR.encode().join(pieces(text, offsets)), SEPARATOR)
    tokenizer = module.Tokenizer(str(vocabulary))
    return lambda: tokenizer.encode_batch(source), lambda result: np.asarray(awkward.flatten(result))


ENGINES = {
    "ours": ours,
    "ours-list": ours_from_list,
    "hf": hugging_face,
    "hf1": hugging_face,
    "tiktoken": tiktoken,
    "fastokens": fastokens,
    "gigatoken": gigatoken,
}

if __name__ == "__main__":
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    main()
