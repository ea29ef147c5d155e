# SPDX-License-Identifier: Apache-2.0
"""What Python costs around a forward pass: onnxruntime, native and torch side by side in one process, in turns.

    python -m bench.native.side_by_side --blocks 15 --iterations 2000

All three read the same text by the path go_rust and run the same weights with as many threads. A block is one window of
each runtime, in an order that rotates; the ratio and the difference of medians is taken within a block. Prints one JSON
object: logits, ms an iteration and tokens a second of each, native against onnxruntime, and the machine's load.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from pybench import measure
from pybench.case import Case
from pybench.catalogue.models import MODELS
from pybench.measurement.feed import open_feed
from pybench.measurement.model import OpenedModel, open_model
from pybench.measurement.result import RunRequest
from pybench.models.building import build
from pybench.models.export import export_onnx

RUNTIMES = ("onnxruntime", "native", "torch")
CONFIDENCE = 0.95


@dataclass
class Side:
    """One runtime and the text that it is fed; its 5th percentile, median and mean iteration of each block, in ns."""

    opened: OpenedModel
    work: measure.Replayer
    p05_ns: list[float] = field(default_factory=list)  # what other load disturbs least
    p50_ns: list[float] = field(default_factory=list)
    mean_ns: list[float] = field(default_factory=list)

    def window(self, iterations: int, *, counts: bool = True) -> None:
        times = self.work.replay(iterations).host_ns
        if counts:
            p05_ns, p50_ns = np.quantile(times[:, 1] - times[:, 0], (0.05, 0.5))
            self.p05_ns.append(float(p05_ns))
            self.p50_ns.append(float(p50_ns))
            self.mean_ns.append(float(times[-1, 1] - times[0, 0]) / len(times))


def open_sides(onnx: Path, options: argparse.Namespace, stack: contextlib.ExitStack) -> dict[str, Any]:
    """Sides by runtime, fed; and the logits of each on one batch, taken before."""
    ids = np.random.default_rng(1).integers(0, 32_000, (options.batch, options.seq_len))
    sides, logits = {}, {}
    for runtime in RUNTIMES:
        case = Case(
            workload="infer", model=options.model, runtime=runtime, path="go_rust", batch=options.batch,
            seq_len=options.seq_len, corpus_limit_bytes=8_000_000, threads=options.threads, device="cpu",
        )  # fmt: skip
        request = RunRequest(case, block=1, attempt=1, seed=1, artefacts={"model": onnx}, files={})
        feed = stack.enter_context(open_feed(request))
        opened = open_model(request, vocabulary=feed.vocabulary)
        logits[runtime] = opened.session.run({opened.session.inputs[0].name: ids})[0]
        sides[runtime] = Side(opened, measure.as_replayer(feed.feeding(opened, case)))
    return {"sides": sides, "logits": logits}


def interval(values: Sequence[float]) -> list[float]:
    """Mean, and the ends of its 95 % interval by Student's t."""
    half = student.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return [round(float(np.mean(values) + side * half), 4) for side in (0, -1, 1)]


def cost_us(python_ns: Sequence[float], native_ns: Sequence[float]) -> list[float]:
    """Block by block."""
    return interval([(a - b) * 1e-3 for a, b in zip(python_ns, native_ns, strict=True)])


def measured(onnx: Path, options: argparse.Namespace) -> dict[str, Any]:
    with contextlib.ExitStack() as stack:
        made = open_sides(onnx, options, stack)
        sides: dict[str, Side] = made["sides"]
        for side in sides.values():
            side.window(max(1, options.iterations // 5), counts=False)
        for block in range(options.blocks):
            for turn in range(len(RUNTIMES)):
                sides[RUNTIMES[(block + turn) % len(RUNTIMES)]].window(options.iterations)
    tokens = options.batch * options.seq_len
    native, python = sides["native"], sides["onnxruntime"]
    expected = made["logits"]["torch"]
    return {
        "model": options.model,
        "batch": options.batch,
        "seq_len": options.seq_len,
        "threads": options.threads,
        "blocks": options.blocks,
        "iterations_a_window": options.iterations,
        "largest_logit": round(float(np.abs(expected).max()), 4),
        "logits_native_minus_onnxruntime": float(
            np.abs(made["logits"]["native"] - made["logits"]["onnxruntime"]).max()
        ),
        "logits_native_minus_torch": float(np.abs(made["logits"]["native"] - expected).max()),
        **{
            runtime: {
                "p05_us": round(float(np.median(side.p05_ns)) * 1e-3, 2),
                "p50_us": round(float(np.median(side.p50_ns)) * 1e-3, 2),
                "tokens_per_s": round(tokens * 1e9 / float(np.median(side.mean_ns))),
            }
            for runtime, side in sides.items()
        },
        "python_costs_p05_us": cost_us(python.p05_ns, native.p05_ns),
        "python_costs_p50_us": cost_us(python.p50_ns, native.p50_ns),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="tinylm-tiny")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq-len", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--iterations", type=int, default=2000, help="of a window")
    options = parser.parse_args(arguments)
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="pybench-native-") as folder:
        onnx = Path(folder) / "model.onnx"
        export_onnx(build(options.model), MODELS[options.model], onnx, {})
        found = measured(onnx, options)
    load = {"load_before": load_before, "load_after": os.getloadavg()[0], "cpus": len(os.sched_getaffinity(0))}
    print(json.dumps(found | load, indent=1))


if __name__ == "__main__":
    main()
