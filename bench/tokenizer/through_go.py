# SPDX-License-Identifier: Apache-2.0
"""What it costs to call the tokenizer from Go: the same chunks through Go's boundary and inside Rust, in pairs.

    python bench/tokenizer/through_go.py CORPORA [--corpus mix] [--pairs 100] [--cpu 1]

Two processes bound to one CPU take turns, pass by pass. `encoderate` of orchestrator-go opens the installed shared
object as the orchestrator does, and the example `encode_rate` of tokenizer-rs links the library. Both take chunks of 1
MiB, as the orchestrator cuts them, with one buffer for ids. A cold pass begins with an empty cache. A pair is one pass
of each, in random order; ratios are Go's rate to Rust's within a pair, with the interval of side_by_side.py. CPU time
is of the whole process, so what Go's runtime does beside the calls counts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pybench_tokenizer

sys.path.append(str(Path(__file__).parents[2]))  # last, so that pybench is the one that is installed

from bench.tokenizer.side_by_side import ROOT, VOCABULARY, ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--corpus", action="append")
    parser.add_argument("--limit-bytes", type=int, default=16_000_000)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--cache-entries", type=int, default=pybench_tokenizer.CACHE_ENTRIES)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        commands = build(Path(folder))
        os.sched_setaffinity(0, {options.cpu})
        for corpus in options.corpus or ["mix", "rand"]:
            print(json.dumps({"corpus": corpus, **compare(commands, corpus, options)}), flush=True)


def build(folder: Path) -> dict[str, list[str]]:
    """The command of each program, up to the corpus."""
    go = folder / "encoderate"
    subprocess.run(
        ["go", "build", "-trimpath", "-o", go, "./internal/tokenizer/encoderate"],
        cwd=ROOT / "orchestrator-go",
        env=os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"},
        check=True,
    )
    return {
        "go": [str(go), str(pybench_tokenizer.object_path()), str(VOCABULARY)],
        "rust": [built_example("encode_rate"), str(VOCABULARY)],
    }


def built_example(name: str) -> str:
    """The program of an example of tokenizer-rs."""
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--example", name, "--message-format", "json"]
    done = subprocess.run(command, cwd=ROOT / "tokenizer-rs", stdout=subprocess.PIPE, check=True)
    messages = map(json.loads, done.stdout.splitlines())
    (built,) = (found["executable"] for found in messages if found.get("target", {}).get("name") == name)
    return str(built)


def compare(commands: dict[str, list[str]], corpus: str, options: argparse.Namespace) -> dict[str, Any]:
    chance = random.Random(20260101)
    arguments = [str(options.corpora / f"{corpus}.bin"), str(options.limit_bytes), str(options.cache_entries)]
    seconds: dict[str, dict[str, list[float]]] = {name: {} for name in commands}
    facts: dict[str, int] = {}
    programs = {name: start([*command, *arguments]) for name, command in commands.items()}
    for kind in ("cold", "warm"):
        for number in range(options.pairs + 1):
            for name in chance.sample(list(programs), len(programs)):
                found = one_pass(programs[name], kind)
                of_pass = {"bytes": found["bytes"], "ids": found["ids"]}
                if (facts := facts or of_pass) != of_pass:
                    raise SystemExit(f"{name} gives another number of ids: {of_pass}, not {facts}")
                for clock in ("cpu", "wall"):
                    if number > 0:  # the first touches every page
                        seconds[name].setdefault(f"{kind}_{clock}", []).append(found[f"{clock}_s"])
    for program in programs.values():
        program.communicate()
    summary = {
        kind: {
            "rust_mb_per_s": round(facts["bytes"] / 1e6 / float(np.median(rust)), 1),
            "go_over_rust": ratio(rust, seconds["go"][kind]),
        }
        for kind, rust in seconds["rust"].items()
    }
    return {**facts, "pairs": options.pairs, **summary}


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def one_pass(program: subprocess.Popen[str], kind: str) -> dict[str, Any]:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(f"{kind}\n")
    program.stdin.flush()
    answer: dict[str, Any] = json.loads(program.stdout.readline())
    return answer


if __name__ == "__main__":
    main()
