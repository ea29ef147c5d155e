# SPDX-License-Identifier: Apache-2.0
"""A campaign that an earlier pybench ran, with every channel of a GPU, and what that pybench said of it.

    tests/data/earlier-campaign.tar.xz       the campaign's directory as it was published, without its report
    tests/data/earlier-numbers.json.gz       values, counts, validity and reasons
    tests/data/earlier-intervals.json.gz     bounds, p values and what follows from them, and why they are these

All three were made by commit 91dd70b, before the catalogue: `python -m tests.support.earlier_campaign make FOLDER`.
The first two stay: results that a user has must stay readable, with the same numbers.
Where the method of intervals is changed on purpose, `python -m tests.support.earlier_campaign intervals 'WHY'` makes
the third anew.

The work is real and runs on a CPU. The GPU is replayed: `native/tests/replay_nvml.cpp` plays a recorded trace in NVML's
place, and each worker that measures on the CPU samples that board meanwhile. So the joules are those of a recording,
divided by the samples and tokens of another work: right for reading, meaningless otherwise.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import platform
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.measure.replay import TRACE, UUID, build_replay_library

DATA = Path(__file__).parents[1] / "data"
CAMPAIGN = DATA / "earlier-campaign.tar.xz"
NUMBERS = DATA / "earlier-numbers.json.gz"
INTERVALS = DATA / "earlier-intervals.json.gz"
KEPT = ("plan.yaml", "plan.resolved.json", "artefacts", "runs")  # of the publication

PLAN = f"""\
schema_version: 1
name: earlier
description: Every kind of run that needs no GPU, with the channels of a replayed one
seed: 20260101
repetitions: 5
defaults: {{warmup_iterations: 5, iterations: 40, idle_window_s: 0.3, energy_window_s: 0.7}}
matrix:
  - {{workload: infer, model: digits-cnn, runtime: onnxruntime, precision: [fp32, int8], batch: [1, 32]}}
  - {{workload: infer, model: digits-cnn, runtime: torch, precision: [fp32, int8], batch: 32}}
  - {{workload: infer, model: tinylm-small, runtime: torch, path: [none, hf], seq_len: 16, iterations: 10}}
  - {{workload: accuracy, model: digits-cnn, runtime: onnxruntime, precision: [fp32, int8], batch: 128}}
  - {{workload: tokenize, path: [hf, rust], batch: 4, seq_len: 64, corpus_limit_bytes: 400000, energy_window_s: 0.02}}
  - {{workload: noop, device: {UUID}, energy_window_s: 1.2}}
criteria:
  - name: int8 in place of fp32
    baseline: {{precision: fp32}}
    where: {{model: digits-cnn}}
    accept: {{speedup_min: 1.05, gpu_energy_ratio_max: 1.0, top1_delta_pp_min: -1.0}}
  - name: torch in place of onnxruntime
    baseline: {{runtime: onnxruntime}}
    accept: {{speedup_min: 1.0}}
  - name: tokenizer paths
    baseline: {{path: hf}}
    where: {{workload: tokenize}}
    accept: {{tokens_per_s_ratio_min: 1.0}}
protocol: [welch-mann-whitney, bootstrap-mann-whitney]
"""

# Python's site module runs this in every process. Only a worker that measures gets the board.
WITH_A_BOARD = f"""\
import sys
if "pybench.worker" in sys.orig_argv and "--probe" not in sys.orig_argv:
    from pybench.measurement import recorder
    begin = recorder.Recorder.__init__
    def on_the_board(self, case, device_uuid, **more):
        begin(self, case, {UUID!r}, **more)
    recorder.Recorder.__init__ = on_the_board
"""


def run(*arguments: object) -> str:
    """What a command of this process's pybench prints; AssertionError where it does not succeed."""
    from pybench.cli import main

    with redirect_stdout(io.StringIO()) as printed:
        code = main([str(argument) for argument in arguments])
    assert code == 0, arguments
    return printed.getvalue()


def make(folder: Path) -> None:
    """Runs the campaign in `folder`, publishes it, and stores it with what is said of it. Takes some ten minutes."""
    site = folder / "site"
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text(WITH_A_BOARD)
    (folder / "plan.yaml").write_text(PLAN)
    trace = shutil.copytree(TRACE, folder / "trace")
    board = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")])),
        "PYBENCH_NVML_LIBRARY": str(build_replay_library(folder)),
        "PYBENCH_REPLAY_TRACE": str(trace),
        "PYBENCH_BOARD_STATE": str(folder / "boards"),
    }
    with patch.dict(os.environ, board):
        run("run", folder / "plan.yaml", "--out", folder / "campaign")
    hidden = ("--redact", str(folder), "--redact", platform.release())
    run("publish", folder / "campaign", "--archive", folder / "campaign.zip", *hidden)
    run("fetch", folder / "campaign.zip", "--out", folder / "fetched")
    store(folder / "fetched")


def store(published: Path) -> None:
    """Packs the campaign, and what the pybench of this process says of it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(path for name in KEPT for path in [published / name, *(published / name).rglob("*")]):
            if path.is_file():
                entry = tarfile.TarInfo(path.relative_to(published).as_posix())
                entry.size = path.stat().st_size
                archive.addfile(entry, io.BytesIO(path.read_bytes()))
    CAMPAIGN.write_bytes(lzma.compress(packed.getvalue(), preset=9))
    numbers, intervals = said_of(published)
    _write(NUMBERS, numbers)
    _write(INTERVALS, {"why": "as commit 91dd70b computed them", "values": intervals})


def unpack(folder: Path) -> Path:
    """The campaign's directory."""
    folder.mkdir()
    with tarfile.open(CAMPAIGN) as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None
            path = folder / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
    return folder


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return content


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_bytes(gzip.compress(json.dumps(content, separators=(",", ":")).encode(), 9, mtime=0))


# --- what is said of it --------------------------------------------------------------------------------------------

_OF_INTERVALS = {"p_value", "p_adjusted", "p_equivalence", "p_tukey", "smallest_detectable", "absolute_95", "verdict",
                 "why", "own_verdict", "paired"}  # fmt: skip
_PROSE = {"meaning", "threats"}  # may be written better


def said_of(campaign: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Path -> value of everything in `pybench analyse --json`, and of each run's outcome and validity; then the same of
    intervals and of what follows from them."""
    from pybench.catalogue.validities import VALIDITIES
    from pybench.dataset import load

    names = ["case_id", "block", "outcome", "reason", "device", *(f"valid_{name}" for name in VALIDITIES)]
    names += [f"reasons_{name}" for name in VALIDITIES]
    runs = {f"{row['case_id'][:12]} {row['block']}": row for row in load(campaign).runs.select(names).to_dicts()}
    everything = {"runs": runs, "analysis": json.loads(run("analyse", campaign, "--json"))}
    numbers, intervals = {}, {}
    for path, value, of_interval in _leaves(everything, "", False):
        (intervals if of_interval else numbers)[path] = value
    return numbers, intervals


def _leaves(content: Any, path: str, of_interval: bool) -> Iterator[tuple[str, Any, bool]]:
    if isinstance(content, list) and content:
        content = dict(enumerate(content))
    if not isinstance(content, dict):
        yield path, content, of_interval
        return
    is_estimate = {"value", "lower", "upper", "method"} <= content.keys()
    for name, value in content.items():
        if name not in _PROSE:
            about = of_interval or name in _OF_INTERVALS or (is_estimate and name in ("lower", "upper", "method"))
            yield from _leaves(value, f"{path}/{name}" if path else name, about)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    elif sys.argv[1] == "store":
        store(Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            _write(INTERVALS, {"why": sys.argv[2], "values": said_of(unpack(Path(scratch) / "campaign"))[1]})
