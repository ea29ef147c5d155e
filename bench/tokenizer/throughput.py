# SPDX-License-Identifier: Apache-2.0
"""MB/s of the Rust tokenizer and of Hugging Face tokenizers, one thread each, through Python, in one run.

    python bench/tokenizer/throughput.py [--corpus NAME] [--limit-bytes N] [--pairs N]

Every pair runs, in random order, one pass of each: Rust with a new cache (cold) and over the same text once more
(warm); Hugging Face (`encode_batch_fast`, a new tokenizer each time). Rust takes one buffer with offsets and gives
arrays, Hugging Face takes a list of str and gives Encoding objects: each is called in the way it offers. Time is CPU
time of the calling thread, so that other load on the machine weighs less. The ratio's interval is a percentile
bootstrap over pairs (Efron and Tibshirani 1993).

Ids are compared before anything is timed. It does not measure reading files, several threads, or packing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import time
from collections.abc import Callable

import numpy as np
import pybench_tokenizer
import tokenizers

from pybench.preprocess import find_tokenizer, resolve_corpus

os.environ["TOKENIZERS_PARALLELISM"] = "false"
VOCABULARY = find_tokenizer("tok32k")
RESAMPLES = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default="python-stdlib")
    parser.add_argument("--limit-bytes", type=int, default=4_000_000)
    parser.add_argument("--pairs", type=int, default=30)
    arguments = parser.parse_args()
    corpus = resolve_corpus(arguments.corpus, arguments.limit_bytes)
    documents = [text for _, text in corpus.documents()]
    require_equal_ids(documents)
    seconds = measure_pairs(documents, arguments.pairs)
    rates = {name: corpus.total_bytes / np.array(values) / 1e6 for name, values in seconds.items()}
    report = {
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs",
        "versions": {"pybench-tokenizer": pybench_tokenizer.build_id(), "tokenizers": tokenizers.__version__},
        "corpus": {"name": corpus.name, "bytes": corpus.total_bytes, "sha256": corpus.sha256},
        "cache_entries": pybench_tokenizer.CACHE_ENTRIES,
        "pairs": arguments.pairs,
        "load_average": os.getloadavg()[0],
        "mb_per_s": {name: summarise(values) for name, values in rates.items()},
        "ratio_to_hf": {name: ratio(rates[name], rates["hf"]) for name in ("rust_cold", "rust_warm")},
    }
    print(json.dumps(report, indent=2))


def require_equal_ids(documents: list[bytes]) -> None:
    ids, _ = pybench_tokenizer.Tokenizer.from_file(VOCABULARY).encode_batch(*joined(documents))
    judge = tokenizers.Tokenizer.from_file(str(VOCABULARY))
    encodings = judge.encode_batch_fast([document.decode() for document in documents], add_special_tokens=False)
    expected = [id_ for encoding in encodings for id_ in encoding.ids]
    if ids.tolist() != expected:
        raise SystemExit("the ids differ: nothing to compare")


def joined(documents: list[bytes]) -> tuple[bytes, np.ndarray]:
    return b"".join(documents), np.cumsum([0, *map(len, documents)], dtype=np.uint64)


def measure_pairs(documents: list[bytes], pairs: int) -> dict[str, list[float]]:
    text, offsets = joined(documents)
    strings = [document.decode() for document in documents]
    seconds: dict[str, list[float]] = {"rust_cold": [], "rust_warm": [], "hf": []}

    def rust() -> None:
        ours = pybench_tokenizer.Tokenizer.from_file(VOCABULARY)
        seconds["rust_cold"].append(cpu_seconds(lambda: ours.encode_batch(text, offsets)))
        seconds["rust_warm"].append(cpu_seconds(lambda: ours.encode_batch(text, offsets)))

    def hf() -> None:
        theirs = tokenizers.Tokenizer.from_file(str(VOCABULARY))
        seconds["hf"].append(cpu_seconds(lambda: theirs.encode_batch_fast(strings, add_special_tokens=False)))

    chance = random.Random(20260101)
    for _ in range(pairs):
        for measure in chance.sample((rust, hf), 2):
            measure()
    return seconds


def cpu_seconds(call: Callable[[], object]) -> float:
    begin = time.thread_time()
    result = call()
    elapsed = time.thread_time() - begin
    del result  # freeing is not encoding
    return elapsed


def summarise(values: np.ndarray) -> dict[str, float]:
    return {name: round(float(f(values)), 2) for name, f in (("median", np.median), ("min", np.min), ("max", np.max))}


def ratio(ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    """Median of the paired ratios, with its 95 % interval."""
    paired = ours / theirs
    generator = np.random.default_rng(20260101)
    medians = np.median(generator.choice(paired, (RESAMPLES, len(paired))), axis=1)
    lower, upper = np.percentile(medians, (2.5, 97.5))
    return {name: round(float(v), 1) for name, v in (("median", np.median(paired)), ("lower", lower), ("upper", upper))}


if __name__ == "__main__":
    main()
