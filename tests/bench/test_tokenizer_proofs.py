# SPDX-License-Identifier: Apache-2.0
"""Smaller slices of what bench/tokenizer proves at length: memory over a stream, and ids in every way."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", str(ROOT / "bench" / "tokenizer" / f"{program}.py"), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stream_of_new_words_takes_the_memory_that_is_stated(threads: int) -> None:
    done = run("memory", "--megabytes", str(64 // threads), "--threads", str(threads))
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    # Half of it is in use: a bound so far off that it could not be passed would be no bound.
    assert found["stated_bytes"] / 3 < found["held_bytes"] <= found["stated_bytes"]


def test_the_judges_ids_come_at_every_level_with_every_cache_and_at_every_alignment() -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    done = run("exactness", "--every", "500", "--fuzzed", "1500", "--vocabulary", "pairs")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert sum("the same ids" in line for line in lines) == 3
    # Three rules, three caches, scalar and whatever else the machine has.
    ways = [line for line in lines if "at 64 alignments, 0 different" in line]
    assert len(ways) >= 9
    assert len(ways) % 9 == 0
