# SPDX-License-Identifier: Apache-2.0
"""A small campaign with what a publication has to look after: an artefact, claims, personal data, foreign files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pybench.campaign.layout import SCHEMA_VERSION
from pybench.campaign.storage import write_json, write_text
from pybench.case import Case
from pybench.publication.pack.report_parts import ReportParts
from tests.support.campaigns import CampaignBuilder, finish_again

HOST = "node17.cluster.example.org"
SHORT_HOST = "vm"
USER = "lovelace"
IMAGE = f"sha256:{'ab' * 32}"
ARTEFACT = "c" * 64
WEIGHTS = b"weights of a network" * 1000
FP32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8 = FP32.with_factors(precision="int8")


def environment(host: str) -> dict[str, Any]:
    """As `pybench.worker.environment` writes it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "host": host,
        "kernel": "6.1.0-28-amd64",
        "machine": "x86_64",
        "cpu": "Example CPU 9000",
        "python": "3.11.2",
        "pybench": "0.1.0",
        "native_build_id": "5" * 64,
        "packages": {"numpy": "2.4.6", "onnxruntime": "1.23.0+cu128"},
        "device": "cpu",
        "measuring": {"gpu": {"uuid": "GPU-1", "driver_version": "580.95.05"}, "begin_ns": 1},
        "image_digest": IMAGE,
    }


def build_small(folder: Path, *, blocks: int = 2, missing: int = 0) -> CampaignBuilder:
    """Two cases in `blocks` blocks on two hosts; the last `missing` runs of INT8 did not run."""
    builder = CampaignBuilder(
        folder,
        [FP32, INT8],
        repetitions=blocks,
        name="small",
        declared={"baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.1}},
        plan_text=f"# by {USER}, see /home/{USER}/notes.txt\nschema_version: 1\nname: small\n",
    )
    for block in range(1, blocks + 1):
        for case, latency in ((FP32, 1.0), (INT8, 0.6)):
            if case is INT8 and block > blocks - missing:
                continue
            host = HOST if block % 2 else SHORT_HOST
            run = builder.run(case, block, {"latency_mean_ms": latency + block / 100}, environment=environment(host))
            log = f"loaded /cluster/home/{USER}/nets/net.onnx on {host}\nwritten to /scratch/{USER}/tmp\n"
            log += "".join(f"step {number}\n" for number in range(600))  # a file that archives compress with LZMA
            write_text(run.file("stderr.log"), log)
            finish_again(run.path)
            write_json(run.claim, {"schema_version": 1, "host": host, "boot_id": "b", "pid": 1})
    _add_artefact(builder)
    return builder


def _add_artefact(builder: CampaignBuilder) -> None:
    making = builder.run(FP32, 900, {"model_bytes": 20_000.0}, environment=environment(HOST))
    folder = builder.campaign.artefact(ARTEFACT)
    folder.parent.mkdir()
    making.path.rename(folder)
    making.path.parent.rmdir()
    (folder / "case.json").unlink()
    (folder / "iterations.csv").unlink()
    (folder / "weights.pt").write_bytes(WEIGHTS)
    (folder / "layers.json").write_text('{"Layers": []}')
    write_json(folder / "recipe.json", {"schema_version": 1, "recipe": {"kind": "checkpoint", "parameters": {}}})
    made = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("weights.pt", "layers.json")}
    run = json.loads((folder / "run.json").read_text())
    write_json(folder / "run.json", {**run, "case_id": ARTEFACT, "block": 0, "made": made})
    finish_again(folder)


def render_nothing(folder: Path, parts: ReportParts) -> None:
    """One page and one table that depend on the runs: what packing needs to know of a report is its files."""
    (folder / "report" / "tables").mkdir(parents=True)
    hosts = sorted(json.loads(path.read_text())["host"] for path in folder.glob("runs/**/environment.json"))
    (folder / "report" / "tables" / "hosts.csv").write_text("".join(f"{host},1.5\n" for host in ("host", *hosts)))
    if parts is ReportParts.ALL:
        (folder / "report" / "index.html").write_text(f"<p>{hosts}</p>")
