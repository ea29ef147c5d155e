# SPDX-License-Identifier: Apache-2.0
"""Whether the tokenizer holds the memory that it states, over a long stream of words that it has never seen.

    python bench/tokenizer/memory.py [--megabytes 1000] [--threads 1]

The text is made as it is read: a block of random words whose letters are exchanged by chance each time, so that every
word is new. Now and then a document is one word of a megabyte, which scratch memory has to be given back for. Resident
memory of this process is read behind every chunk. What may be held: `model_bytes()`, `worker_bytes()` for each thread,
each thread's chunk with its ids, and what merging its longest word took. The last was given back to the C library, but
need not be given back by it. Exits with 1 when it is more.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import string
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from pybench_tokenizer import Tokenizer

sys.path.append(str(Path(__file__).parents[2]))  # last, so that pybench is the one that is installed

from bench.tokenizer.corpora import synthetic_documents
from bench.tokenizer.side_by_side import VOCABULARY

# About a mebibyte, as a chunk of a stream is.
BLOCK_DOCUMENTS = 190
LONG_WORD_EVERY = 50
PAGE_BYTES = resource.getpagesize()
# Ids, links between neighbours, and a heap of candidates, of which a merge takes one and may add two: bytes a byte.
LONG_WORD_FACTOR = 4 + 8 + 2 * 8
# What reading the vocabulary left behind, stacks of threads, and the interpreter's own.
SLACK_BYTES = 8 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000, help="of 10^6 bytes, for each thread")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    block = b"".join(islice(synthetic_documents(np.random.default_rng(1), None), BLOCK_DOCUMENTS))
    before = resident_bytes()
    tokenizer = Tokenizer.from_file(VOCABULARY)
    most: list[int] = []
    threads = [
        threading.Thread(
            target=lambda seed: most.append(encode(tokenizer, block, options.megabytes, seed)), args=(seed,)
        )
        for seed in range(options.threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stated = {
        "model_bytes": tokenizer.model_bytes(),
        "worker_bytes": tokenizer.worker_bytes() * options.threads,
        # The text, the room for an id a byte, and Python's own joining of the chunk's documents.
        "chunk_bytes": options.threads * len(block) * (2 + tokenizer.dtype.itemsize),
        "long_word_bytes": options.threads * len(block) * LONG_WORD_FACTOR,
        "slack_bytes": SLACK_BYTES,
    }
    held = max(most) - before
    print(
        json.dumps({"megabytes": options.megabytes, "held_bytes": held, "stated_bytes": sum(stated.values()), **stated})
    )
    sys.exit(held > sum(stated.values()))


def encode(tokenizer: Tokenizer, block: bytes, megabytes: int, seed: int) -> int:
    """The most memory that the process had behind a chunk."""
    most = 0
    for documents in chunks(block, megabytes, seed):
        tokenizer.encode_batch(documents)
        most = max(most, resident_bytes())
    return most


def chunks(block: bytes, megabytes: int, seed: int) -> Iterator[list[bytes]]:
    chance = random.Random(seed)
    letters = string.ascii_lowercase
    for number in range(megabytes * 1_000_000 // len(block)):
        if number % LONG_WORD_EVERY == LONG_WORD_EVERY - 1:
            yield [bytes(chance.choices(letters.encode(), k=1000)) * (len(block) // 1000)]
            continue
        exchanged = bytes.maketrans(letters.encode(), "".join(chance.sample(letters, len(letters))).encode())
        yield block.translate(exchanged).splitlines(keepends=True)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE_BYTES


if __name__ == "__main__":
    main()
