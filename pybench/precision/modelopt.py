# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's modelopt as a quantiser, in an environment of its own: its onnx and onnxruntime are older than pybench's.

The environment is made once a version from `modelopt.lock` (hashes included) by uv, in the user's cache folder, and
holds about 3 GB, most of it linked to uv's own cache. The quantiser runs there as a process, with JSON in and out.

| asked for | modelopt's | remark |
| --- | --- | --- |
| minmax, entropy | max, entropy | it takes any other word for max, in silence: refused here |
| int8, fp8 | the same | FP8 scales are amax / 127 * 448 / 127: 12.4 times pybench's, by intent (its issue 215) |
| entropy | | the search of its onnxruntime: max, or little less (docs/decisions/012-quantisers.md) |
| +fp16, +bf16 | high_precision_dtype | |
| keep_fp32 | nodes_to_exclude | not quantised; their floating type is that of the rest |

Which other nodes it leaves alone is its own decision, so the file declares no keep-list, and the audit's share judges.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pybench.catalogue.precisions import floating_type, quantised_type
from pybench.catalogue.quantisers import QUANTISERS
from pybench.errors import InputError, UnsupportedError
from pybench.onnx_file.products import MULTIPLYING
from pybench.precision.conversion import matching_nodes
from pybench.precision.execution import Feed
from pybench.precision.int8 import require_finite_scales, require_unquantised
from pybench.precision.network import open_network

VERSION = "0.47.0"
METHODS = QUANTISERS["modelopt"].calibrations
LOCK = Path(__file__).with_name("modelopt.lock")
SCRIPT = Path(__file__).with_name("modelopt_process.py")
COMPLETE = "complete"  # written last into an environment


def quantise(
    source: Path, destination: Path, precision: str, method: str, feeds: Sequence[Feed], keep_fp32: str | None
) -> dict[str, Any]:
    """Writes the quantised graph of `source`; returns labels: versions, seconds, the kept nodes.

    Raises UnsupportedError for a method that modelopt does not have, or where its environment cannot be made,
    InputError when it cannot quantise the file.
    """
    if method not in METHODS:
        raise UnsupportedError(
            f"modelopt does not support calibration: {method}",
            code="no_calibration",
            hint=f"supported: {', '.join(METHODS)}",
        )
    source, destination = source.resolve(), destination.resolve()  # the process runs in a folder of its own
    python = environment()
    network = open_network(source)
    excluded = sorted(matching_nodes(network, keep_fp32))
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".modelopt-") as name:
        folder = Path(name)
        samples, answer, request = folder / "samples.npz", folder / "answer.json", folder / "request.json"
        arrays: dict[str, Any] = {key: np.concatenate([feed[key] for feed in feeds]) for key in feeds[0]}
        np.savez(samples, **arrays)
        options = {
            "quantize_mode": quantised_type(precision),
            "high_precision_dtype": floating_type(precision),
            "calibration_method": METHODS[method],
            "calibration_shapes": ",".join(f"{key}:{'x'.join(map(str, feeds[0][key].shape))}" for key in feeds[0]),
            "nodes_to_exclude": [f"^{re.escape(node)}$" for node in excluded],
        }
        plain = folder / "plain.onnx"  # whose nodes have the names that are excluded
        network.save(plain, {})
        content = {"source": plain, "samples": samples, "destination": folder / "model.onnx", "answer": answer}
        request.write_text(json.dumps({"options": options} | {key: str(path) for key, path in content.items()}))
        _run([str(python), "-I", str(SCRIPT), str(request)], folder, f"{source} cannot be quantised by modelopt")
        kept = {node.name for node in network.nodes if node.op_type in MULTIPLYING} & set(excluded)
        require_unquantised(folder / "model.onnx", kept)
        require_finite_scales(folder / "model.onnx")
        shutil.copyfile(folder / "model.onnx", destination)
        said: dict[str, Any] = json.loads(answer.read_text())
    return {**said, "kept": dict.fromkeys(excluded, "keep_fp32")}


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
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "pybench" / f"modelopt-{VERSION}-python{sys.version_info.major}.{sys.version_info.minor}"


def _make(folder: Path, python: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        raise UnsupportedError(
            "modelopt needs an environment of its own, and uv to make it", code="no_modelopt",
            hint="install uv (pip install uv), or use quantiser: pybench",
        )  # fmt: skip
    steps = (
        [uv, "venv", "--quiet", "--clear", "--no-config", "--python", sys.executable, str(folder)],
        [uv, "pip", "install", "--quiet", "--require-hashes", "--python", str(python), "--requirement", str(LOCK)],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UnsupportedError(
                f"modelopt's environment cannot be made ({_last_words(done.stderr)})", code="no_modelopt",
                hint=f"making it requires network access once; its folder is {folder}",
            )  # fmt: skip
    (folder / COMPLETE).touch()


def _run(command: list[str], folder: Path, failure: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(f"{failure} ({_last_words(done.stderr)})", hint="use quantiser: pybench")


def _last_words(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "it says nothing"
