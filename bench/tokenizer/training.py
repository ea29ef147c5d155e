# SPDX-License-Identifier: Apache-2.0
"""Seconds to train a vocabulary, beside Hugging Face's `BpeTrainer`, in interleaved rounds; the files have to be equal.

    python bench/tokenizer/training.py CORPORA [--corpus mix] [--family gpt2] [--vocab-size 32000] [--rounds 5]

Each training runs in a fresh process of this Python, on documents that are in memory already. CPU time is of the whole
process: `BpeTrainer` uses every core, this library one. `peak_mb` is by how much training raised the process's peak of
resident memory. MB are 10^6 bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2]))  # last, so that pybench is the one that is installed

from bench.tokenizer.engines import read_corpus, strings
from bench.tokenizer.side_by_side import ratio
from tests.contract.tokenizer_files import REGEXES

Trained = Callable[[], bytes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--corpus", default="mix")
    parser.add_argument("--family", default="gpt2", choices=list(REGEXES))
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--limit-bytes", type=int, default=48 << 20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", choices=list(ENGINES), help="train once here and print what it took")
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(train_here(options)))
        return
    chance = random.Random(20260101)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in ENGINES}
    for _ in range(options.rounds):
        for name in chance.sample(list(ENGINES), len(ENGINES)):
            found[name].append(run_engine(name))
    if len({one["sha256"] for runs in found.values() for one in runs}) != 1:
        raise SystemExit("the vocabularies differ: nothing to compare")
    for kind in ("cpu_s", "wall_s", "peak_mb"):
        ours, theirs = ([one[kind] for one in found[name]] for name in ENGINES)
        values = {"ours": round(float(np.median(ours)), 2), "hf": round(float(np.median(theirs)), 2)}
        print(json.dumps({"measure": kind, **values, "hf_over_ours": ratio(theirs, ours)}))


def run_engine(engine: str) -> dict[str, Any]:
    command = [sys.executable, "-P", __file__, *sys.argv[1:], "--engine", engine]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{engine} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def train_here(options: argparse.Namespace) -> dict[str, Any]:
    text, offsets = read_corpus(options.corpora / f"{options.corpus}.bin", options.limit_bytes)
    documents = strings(text, offsets)
    train = ENGINES[options.engine](documents, options.family, options.vocab_size)
    peak, cpu, wall = peak_mb(), time.process_time(), time.perf_counter()
    file = train()
    return {
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - wall,
        "peak_mb": peak_mb() - peak,
        "sha256": hashlib.sha256(file).hexdigest(),
    }


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def ours(documents: list[str], family: str, vocab_size: int) -> Trained:
    from pybench_tokenizer import train

    return lambda: train(documents, family=family, vocab_size=vocab_size)


def hugging_face(documents: list[str], family: str, vocab_size: int) -> Trained:
    from tests.contract.tokenizer_judge import trained_by_judge

    return lambda: trained_by_judge(documents, family=family, vocab_size=vocab_size)


ENGINES = {"ours": ours, "hf": hugging_face}

if __name__ == "__main__":
    main()
