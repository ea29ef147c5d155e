# SPDX-License-Identifier: Apache-2.0
"""MB/s of this tokenizer and of its peers through Python, cold and warm, in interleaved rounds of one run.

    python bench/tokenizer/corpora.py CORPORA
    bench/tokenizer/peers.sh PEERS WHEEL
    python bench/tokenizer/side_by_side.py PEERS CORPORA [--corpus mix] [--engine ours --engine hf1 ...] [--rounds 30]

A round runs every engine once, in random order, each in a fresh process bound to one CPU. Its first pass over the text
is cold, the median of the passes behind that is warm. All have to give the same ids. Ratios are paired within rounds;
their intervals are percentile bootstraps over rounds (Efron and Tibshirani 1993). MB are 10^6 bytes.

An engine's time is the CPU time of its process, all its threads together. Other work on the machine still shows,
through the caches: read ratios, not rates.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY = ROOT / "pybench/preprocess/tok32k_gpt2.json"
ENGINES = Path(__file__).with_name("engines.py")
RESAMPLES = 10_000
Rates = dict[str, dict[str, list[float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peers", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--vocabulary", type=Path, default=VOCABULARY)
    parser.add_argument("--corpus", action="append")
    parser.add_argument("--engine", action="append")
    parser.add_argument("--limit-bytes", type=int, default=16_000_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})
    engines = options.engine or ["ours", "gigatoken", "fastokens", "hf1"]
    for corpus in options.corpus or ["mix", "multi", "zipf", "rand"]:
        rates, facts = measure(options, corpus, engines)
        print(json.dumps({"corpus": corpus, **facts, "engines": summarise(rates)}), flush=True)


def measure(options: argparse.Namespace, corpus: str, engines: list[str]) -> tuple[Rates, dict[str, Any]]:
    rates: Rates = {name: {"cold": [], "warm": []} for name in engines}
    chance = random.Random(20260101)
    facts: dict[str, Any] = {}
    for _ in range(options.rounds):
        for name in chance.sample(engines, len(engines)):
            result = run_engine(options, corpus, name)
            found = {"bytes": result["bytes"], "ids_sha256": result["sha256"]}
            if (facts := facts or found) != found:
                raise SystemExit(f"{name} gives other ids on {corpus}: nothing to compare")
            cold, *warm = (result["bytes"] / seconds / 1e6 for seconds in result["seconds"])
            rates[name]["cold"].append(cold)
            rates[name]["warm"].append(float(np.median(warm)))
    return rates, facts


def run_engine(options: argparse.Namespace, corpus: str, engine: str) -> dict[str, Any]:
    environment = os.environ | {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    python = options.peers / engine.removesuffix("-list") / "bin/python"
    text = options.corpora / f"{corpus}.bin"
    command = [python, ENGINES, engine, options.vocabulary, text, options.limit_bytes, options.passes]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{engine} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def summarise(rates: Rates) -> dict[str, Any]:
    """Rates, and the ratio of the first engine's to each other's."""
    first, *_ = rates
    summary: dict[str, Any] = {}
    for name, of_engine in rates.items():
        summary[name] = {}
        for kind, values in of_engine.items():
            summary[name][kind] = {"mb_per_s": round(float(np.median(values)), 1)}
            if name != first:
                summary[name][kind][f"{first}_over_this"] = ratio(rates[first][kind], values)
    return summary


def ratio(ours: list[float], theirs: list[float]) -> list[float]:
    """Median of the paired ratios, and its 95 % interval."""
    paired = np.array(ours) / np.array(theirs)
    resampled = np.random.default_rng(20260101).choice(paired, (RESAMPLES, len(paired)))
    bounds = np.percentile(np.median(resampled, axis=1), (2.5, 97.5))
    return [round(float(value), 3) for value in (np.median(paired), *bounds)]


if __name__ == "__main__":
    main()
