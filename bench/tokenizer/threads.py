# SPDX-License-Identifier: Apache-2.0
"""What a second thread gains: one tokenizer on one half of a text and on both halves at once, pass by pass in turn.

    python bench/tokenizer/threads.py CORPORA [--corpus mix] [--pairs 40] [--threads 2]

A pass gives each thread an equal share of the documents; `one` encodes the first share alone, `all` every share at
once, each in a thread of its own. A cold pass begins with a new tokenizer. Per pair there are two figures. One is the
gain by the wall clock, which others on the machine decide as well. The other is how much longer the first share takes
when the others are at work, by a thread's own CPU time. Others on the machine decide that less (memory and caches are
shared; 1 is no longer at all). Hashing of 16 KiB, run the same way between the passes, shows what the machine gives so
many threads at that time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pybench_tokenizer import Tokenizer

sys.path.append(str(Path(__file__).parents[2]))  # last, so that pybench is the one that is installed

from bench.tokenizer.engines import read_corpus
from bench.tokenizer.side_by_side import VOCABULARY, ratio

# Fits the first cache, and its hash leaves the GIL alone.
HASHED = bytes(16 << 10)
HASHED_TIMES = 4_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--corpus", action="append")
    parser.add_argument("--limit-bytes", type=int, default=16_000_000)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for corpus in options.corpus or ["mix"]:
        text, offsets = read_corpus(options.corpora / f"{corpus}.bin", options.limit_bytes)
        shares = shares_of(text, offsets, options.threads)
        for kind in ("cold", "warm"):
            found = compare(shares, kind, options.pairs)
            print(json.dumps({"corpus": corpus, "pass": kind, "threads": options.threads, **found}), flush=True)


def shares_of(text: bytes, offsets: Any, threads: int) -> list[tuple[bytes, Any]]:
    cuts = [int(np.searchsorted(offsets, len(text) * number // threads)) for number in range(threads + 1)]
    parts = [offsets[begin : end + 1] for begin, end in pairwise(cuts)]
    return [(text[int(part[0]) : int(part[-1])], part - part[0]) for part in parts]


def compare(shares: list[tuple[bytes, Any]], kind: str, pairs: int) -> dict[str, Any]:
    tokenizer = Tokenizer.from_file(VOCABULARY)
    walls: dict[str, list[float]] = {"one": [], "all": [], "hash_one": [], "hash_all": []}
    cpus: dict[str, list[float]] = {"one": [], "all": [], "hash_one": [], "hash_all": []}
    for number in range(pairs + 1):
        for name, count in (("one", 1), ("all", len(shares)), ("hash_one", 1), ("hash_all", len(shares))):
            if kind == "cold" and not name.startswith("hash"):
                tokenizer = Tokenizer.from_file(VOCABULARY)
            if name.startswith("hash"):
                works: list[Callable[[], object]] = [hash_often] * count
            else:
                works = [partial(tokenizer.encode_batch, *share) for share in shares[:count]]
            wall, cpu = at_once(works)
            if number > 0:
                walls[name].append(wall)
                cpus[name].append(cpu)
    return {
        "mb_per_s_of_one": round(len(shares[0][0]) / 1e6 / float(np.median(cpus["one"])), 1),
        # `all` does as many times the work of `one`.
        "wall_gain": [round(len(shares) * value, 3) for value in ratio(walls["one"], walls["all"])],
        "wall_gain_of_hashing": [
            round(len(shares) * value, 3) for value in ratio(walls["hash_one"], walls["hash_all"])
        ],
        "cpu_of_first_share": ratio(cpus["all"], cpus["one"]),
        "cpu_of_hashing": ratio(cpus["hash_all"], cpus["hash_one"]),
    }


def hash_often() -> None:
    for _ in range(HASHED_TIMES):
        hashlib.sha256(HASHED).digest()


def at_once(works: list[Callable[[], object]]) -> tuple[float, float]:
    """Seconds from the start of all to the end of the last, and CPU seconds of the first."""
    begin = threading.Barrier(len(works) + 1)
    cpu_s: dict[int, float] = {}

    def run(number: int) -> None:
        begin.wait()
        began = time.thread_time()
        works[number]()
        cpu_s[number] = time.thread_time() - began

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    begin.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began, cpu_s[0]


if __name__ == "__main__":
    main()
