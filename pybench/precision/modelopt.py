# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's modelopt as a quantiser, in an environment of its own: its onnx and onnxruntime are older than pybench's.

The environment is made once a version from `modelopt.lock` (hashes included) by uv, in the user's cache folder. It
takes about 3 GB, most of it linked to uv's own cache. The quantiser runs there as a process, with JSON in and out.

| asked for | modelopt's | remark |
| --- | --- | --- |
| minmax, entropy | max, entropy | it takes any other word for max, in silence: refused here |
| int8, fp8 | the same | FP8 scales are amax / 127 * 448 / 127: 12.4 times pybench's, by intent (its issue 215) |
| entropy | | the search of its onnxruntime: max, or little less (docs/decisions/012-quantisers.md) |
| +fp16, +bf16 | high_precision_dtype | |
| keep_fp32 | nodes_to_exclude | not quantised; their floating type is that of the rest |

Which other nodes it leaves alone is its own decision, so the file declares no keep-list, and the audit's share judges.

With a `Search` it is modelopt's Autotune that places the pairs: it builds engines, measures them, and keeps the fastest
scheme of each pattern of the graph. Scales are then calibrated, and nodes to keep excluded, as without a search. Last
it measures the file against the one without rounding, and gives back the latter unless rounding gains 2 %.

What it measured of a scheme is kept in the user's cache folder. Its random choices have a fixed seed here, so a search
that was stopped goes the same way again, and builds only what is not measured yet.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from pybench.catalogue.causes import Cause
from pybench.catalogue.precisions import floating_type, quantised_type
from pybench.catalogue.quantisers import QUANTISERS
from pybench.errors import InputError, UnsupportedError
from pybench.onnx_file.graph import read_graph
from pybench.onnx_file.products import DEQUANTISE, MULTIPLYING
from pybench.precision.conversion import matching_nodes
from pybench.precision.execution import Feed
from pybench.precision.int8 import require_finite_scales, require_unquantised
from pybench.precision.modelopt_process import CANNOT_SEARCH
from pybench.precision.network import open_network

VERSION = "0.47.0"
METHODS = QUANTISERS["modelopt"].calibrations
LOCK = Path(__file__).with_name("modelopt.lock")
SCRIPT = Path(__file__).with_name("modelopt_process.py")
COMPLETE = "complete"  # written last into an environment


@dataclass(frozen=True, slots=True)
class Search:
    """How Autotune searches.

    mode: quick, default or extensive: how many schemes it tries of each pattern, and how often it runs each
    tensorrt: the folder that contains the package tensorrt
    platform: that TensorRT's version and the kind of GPU
    gpu_uuid: the GPU that it measures on
    shapes: input -> the shape that it measures with
    """

    mode: str
    tensorrt: Path
    platform: str
    gpu_uuid: str
    shapes: Mapping[str, Sequence[int]]


def quantise(
    source: Path,
    destination: Path,
    precision: str,
    method: str,
    feeds: Sequence[Feed],
    keep_fp32: str | None,
    search: Search | None = None,
) -> dict[str, Any]:
    """Writes the quantised graph of `source`; returns labels: versions, seconds, the kept nodes, and of a search its
    mode, engines, milliseconds and pairs.

    Raises UnsupportedError for a method that modelopt does not have, where its environment cannot be made, and where it
    cannot measure. So it does where modelopt measures that rounding gains nothing. Raises InputError when it cannot
    quantise the file.
    """
    if method not in METHODS:
        raise UnsupportedError(
            f"modelopt does not support calibration: {method}",
            code=Cause.NO_CALIBRATION,
            hint=f"supported: {', '.join(METHODS)}",
        )
    source, destination = source.resolve(), destination.resolve()  # the process runs in a folder of its own
    python = environment()
    network = open_network(source)
    excluded = sorted(matching_nodes(network, keep_fp32))
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".modelopt-") as name:
        folder = Path(name)
        made, answer, request = folder / "model.onnx", folder / "answer.json", folder / "request.json"
        plain = folder / "plain.onnx"  # whose nodes have the names that are excluded
        network.save(plain, {})
        options = _options(precision, method, feeds[0], excluded)
        asked = {
            "options": options,
            "samples": _saved(feeds, folder),
            **{name: str(path) for name, path in (("source", plain), ("destination", made), ("answer", answer))},
            **({} if search is None else {"search": _searched(search, folder, plain, options)}),
        }
        request.write_text(json.dumps(asked))
        seen = {} if search is None else {"CUDA_VISIBLE_DEVICES": search.gpu_uuid}
        _run([str(python), "-I", str(SCRIPT), str(request)], folder, f"{source} cannot be quantised by modelopt", seen)
        said: dict[str, Any] = json.loads(answer.read_text())
        if search is not None:
            said["search"]["pairs"] = _rounding_pairs(made, source, said["search"])
        kept = {node.name for node in network.nodes if node.op_type in MULTIPLYING} & set(excluded)
        require_unquantised(made, kept)
        require_finite_scales(made)
        shutil.copyfile(made, destination)
    return {**said, "kept": dict.fromkeys(excluded, "keep_fp32")}


def _options(precision: str, method: str, feed: Feed, excluded: Sequence[str]) -> dict[str, Any]:
    """modelopt's own. `feed`: the inputs of one calibration run."""
    return {
        "quantize_mode": quantised_type(precision),
        "high_precision_dtype": floating_type(precision),
        "calibration_method": METHODS[method],
        "calibration_shapes": ",".join(f"{key}:{'x'.join(map(str, array.shape))}" for key, array in feed.items()),
        "nodes_to_exclude": [f"^{re.escape(node)}$" for node in excluded],
    }


def _saved(feeds: Sequence[Feed], folder: Path) -> str:
    """The samples in one file, an array an input."""
    arrays: dict[str, Any] = {key: np.concatenate([feed[key] for feed in feeds]) for key in feeds[0]}
    np.savez(folder / "samples.npz", **arrays)
    return str(folder / "samples.npz")


def _searched(search: Search, folder: Path, plain: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """The search as the process is told of it. Of the folder that contains TensorRT it finds nothing else."""
    packages, output = folder / "packages", folder / "search"
    packages.mkdir()
    output.mkdir()
    for path in search.tensorrt.glob("tensorrt*"):
        (packages / path.name).symlink_to(path)
    same = {
        "mode": search.mode,
        "shapes": {name: list(shape) for name, shape in search.shapes.items()},
    }
    asked = {**same, "options": options, "platform": search.platform, "graph": sha256(plain.read_bytes()).hexdigest()}
    latencies = _cache() / "searches" / f"{sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]}.jsonl"
    latencies.parent.mkdir(parents=True, exist_ok=True)
    return {**same, "packages": str(packages), "folder": str(output), "latencies": str(latencies)}


def _rounding_pairs(path: Path, source: Path, found: Mapping[str, Any]) -> int:
    """The pairs of Q/DQ in a file, counted by their second halves. Raises UnsupportedError where there is none."""
    pairs = sum(node.op == DEQUANTISE for node in read_graph(path).nodes)
    if pairs:
        return pairs
    floating, quantised = (
        "no latency" if found[name] is None else f"{found[name]:.4g} ms" for name in ("floating_ms", "quantised_ms")
    )
    raise UnsupportedError(
        f"modelopt's Autotune leaves {source} without rounding: it measured {quantised} with, {floating} without",
        code=Cause.QUANTISING_NOT_FASTER,
        hint="use quantiser: modelopt or pybench, or the floating-point precision",
    )


def environment() -> Path:
    """The Python of modelopt's environment, which is made when it is missing. Raises UnsupportedError."""
    folder = folder_of_environment()
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two campaigns must not make it at once; goes with the process
        if not (folder / COMPLETE).exists():
            _make(folder, python)
    return python


def folder_of_environment() -> Path:
    return _cache() / f"modelopt-{VERSION}-python{sys.version_info.major}.{sys.version_info.minor}"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pybench"


def _make(folder: Path, python: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        raise UnsupportedError(
            "modelopt needs an environment of its own, and uv to make it",
            code=Cause.NO_PACKAGE,
            names=("modelopt",),
            hint="install uv (pip install uv), or use quantiser: pybench",
        )
    steps = (
        [uv, "venv", "--quiet", "--clear", "--no-config", "--python", sys.executable, str(folder)],
        [uv, "pip", "install", "--quiet", "--require-hashes", "--python", str(python), "--requirement", str(LOCK)],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UnsupportedError(
                f"modelopt's environment cannot be made ({_last_words(done.stderr)})",
                code=Cause.NO_PACKAGE,
                names=("modelopt",),
                hint=f"making it requires network access once; its folder is {folder}",
            )
    (folder / COMPLETE).touch()


def _run(command: list[str], folder: Path, failure: str, added: dict[str, str]) -> None:
    """`added`: further variables of its environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | added
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == CANNOT_SEARCH:
        raise UnsupportedError(
            f"modelopt's process cannot measure ({_last_words(done.stderr)})",
            code=Cause.NO_SEARCH,
            hint="install TensorRT 10 and a driver for CUDA 13 (docs/user/tensorrt.md), or use quantiser: modelopt",
        )
    if done.returncode != 0:
        raise InputError(f"{failure} ({_last_words(done.stderr)})", hint="use quantiser: pybench")


def _last_words(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "it says nothing"
