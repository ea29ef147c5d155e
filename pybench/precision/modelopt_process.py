# SPDX-License-Identifier: Apache-2.0
"""Runs inside modelopt's own environment, as a script: `python modelopt_process.py REQUEST`, a JSON file.

The request names the graph, the samples (npz, an array an input), where to write, and modelopt's options; what came of
it is written to the file that it names. Imports nothing of pybench, which that environment does not have.

A request may contain a `search`: modelopt's Autotune then builds engines with the user's TensorRT and measures them.
Each latency is noted in a file, and a search that was stopped finds them there: it tries the same schemes again.
Ends with CANNOT_SEARCH, and one line on stderr, where TensorRT cannot measure.
"""

import hashlib
import importlib
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

CANNOT_SEARCH = 3
_GUARDED = {"calibrated_baseline": "floating_ms", "calibrated_candidate": "quantised_ms"}  # its files, measured last


def main(request_path: str) -> None:
    request = json.loads(Path(request_path).read_text())
    search = request.get("search")
    if search is not None:
        sys.path.append(search["packages"])
        refusal = why_not()
        if refusal is not None:
            print(refusal, file=sys.stderr)
            sys.exit(CANNOT_SEARCH)
    import numpy as np
    from modelopt.onnx.quantization import quantize

    found: dict[str, Any] = {}
    options = request["options"] if search is None else request["options"] | _autotune(search, found)
    samples = np.load(request["samples"])
    begin = time.monotonic()
    quantize(
        request["source"],
        calibration_data={name: samples[name] for name in samples.files},
        calibration_eps=["cpu"],
        output_path=request["destination"],
        log_level="ERROR",
        **options,
    )
    answer: dict[str, Any] = {"quantise_s": time.monotonic() - begin, "versions": _versions()}
    if search is not None:
        answer["versions"]["tensorrt"] = importlib.import_module("tensorrt").__version__
        answer["search"] = found
    Path(request["answer"]).write_text(json.dumps(answer))


def why_not() -> str | None:
    """Why Autotune cannot measure in this process; None: it can."""
    try:
        tensorrt = importlib.import_module("tensorrt")
    except (ImportError, OSError) as error:
        return f"TensorRT cannot be imported there: {error}"
    if not hasattr(tensorrt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH"):
        return f"its Autotune works with TensorRT 10, and this is {tensorrt.__version__}"
    import torch

    return None if torch.cuda.is_available() else f"torch {torch.__version__} finds no GPU there"


def _autotune(search: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The options of a search in one of Autotune's modes. `found`: filled while it measures."""
    from modelopt.onnx.quantization.autotune import autotuner_base, workflows
    from modelopt.onnx.quantization.autotune.utils import MODE_PRESETS

    preset = MODE_PRESETS[search["mode"]]
    found.update(mode=search["mode"], **preset)
    autotuner_base.random = Repeatable(0)
    watch(workflows, search["shapes"], found, Latencies(Path(search["latencies"])))
    return {
        "autotune": True,
        "autotune_output_dir": search["folder"],
        "autotune_num_schemes_per_region": preset["schemes_per_region"],
        "autotune_warmup_runs": preset["warmup_runs"],
        "autotune_timing_runs": preset["timing_runs"],
        # Its usual cache in /tmp is of any GPU and version: it takes one that does not match.
        "autotune_timing_cache": str(Path(search["folder"]) / "timing.cache"),
    }


class Repeatable(random.Random):
    """In place of the module `random`: the same schemes each time, if latencies are the same."""

    def sample(self, population: Sequence[Any], k: int, *, counts: Iterable[int] | None = None) -> list[Any]:
        """Of a list that Autotune makes of a set, whose order differs between processes."""
        return super().sample(sorted(population, key=repr), k, counts=counts)


class Latencies:
    """What engines took, by the bytes of their graph: a line for each in a file that outlives the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:  # a process was killed as it wrote
            os.truncate(path, len(whole))
        stored = [json.loads(line) for line in whole.splitlines()]
        self._known: dict[str, float] = {each["graph"]: each["milliseconds"] for each in stored}

    def of(self, graph: str) -> float | None:
        return self._known.get(graph)

    def add(self, graph: str, milliseconds: float) -> None:
        """Stored when this returns."""
        self._known[graph] = milliseconds
        with open(self._path, "a") as file:
            file.write(json.dumps({"graph": graph, "milliseconds": milliseconds}) + "\n")
            file.flush()
            os.fsync(file.fileno())


def watch(workflows: Any, shapes: dict[str, list[int]], found: dict[str, Any], latencies: Latencies) -> None:
    """Makes Autotune measure with these shapes, not with a batch of 1, and notes in `found` what it measured.

    latencies: asked before a scheme is measured, and told afterwards; what failed is tried again
    found: `engines_measured`, `engines_recalled`, `engines_failed`, and milliseconds of the last file with rounding and
    without, which its guard compares and which are always measured; None: that file could not be measured.
    """
    start = workflows.init_benchmark_instance
    found.update(engines_measured=0, engines_recalled=0, engines_failed=0, **dict.fromkeys(_GUARDED.values()))

    def started(*arguments: Any, **options: Any) -> Any:
        benchmark = start(*arguments, **options)
        if benchmark is None:  # which quantize() tells of
            return None
        for name, shape in shapes.items():
            benchmark.set_shapes(name, shape, shape, shape)
        measure = benchmark.run

        def run(model: Any, *arguments: Any, **options: Any) -> float:
            guarded = _GUARDED.get(Path(model).stem) if isinstance(model, str) else None
            graph = hashlib.sha256(Path(model).read_bytes() if isinstance(model, str) else model).hexdigest()
            known = latencies.of(graph) if guarded is None else None
            if known is not None:
                found["engines_recalled"] += 1
                return known
            latency_ms = float(measure(model, *arguments, **options))
            measured = math.isfinite(latency_ms)
            found["engines_measured" if measured else "engines_failed"] += 1
            if guarded is not None:
                found[guarded] = latency_ms if measured else None
            elif measured:
                latencies.add(graph, latency_ms)
            return latency_ms

        benchmark.run = run
        return benchmark

    workflows.init_benchmark_instance = started


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("nvidia-modelopt", "onnx", "onnxruntime-gpu")}


if __name__ == "__main__":
    main(sys.argv[1])
