# SPDX-License-Identifier: Apache-2.0
"""pybench where TensorRT is not installed, too old or broken, and no GPU is shown: everything imports, plans are read
and tried, and `doctor` says what is missing. Each in a process of its own, as a user starts it."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pybench

# What `import tensorrt` finds instead.
ABSENT = "raise ModuleNotFoundError(\"No module named 'tensorrt'\", name='tensorrt')\n"
BROKEN = "raise ImportError('libnvinfer.so.10: cannot open shared object file: No such file or directory')\n"
OLD = "__version__ = '10.5.0'\n"

PLAN = """
schema_version: 1
name: engines
repetitions: 2
matrix:
  - workload: infer
    model: resnet50
    runtime: tensorrt
    precision: [fp32, tf32, fp16, int8+fp16, fp8+fp16]
    batch: [1, 8]
"""


def started(folder: Path, tensorrt: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with this as its module `tensorrt`, and shown no GPU."""
    (folder / "tensorrt.py").write_text(tensorrt)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")]), str(Path(pybench.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run([sys.executable, "-P", *words], capture_output=True, text=True, env=environment, timeout=240)


@pytest.mark.slow
def test_every_module_imports(tmp_path: Path) -> None:
    names = [each.name for each in pkgutil.walk_packages(pybench.__path__, "pybench.")]
    assert "pybench.runtimes.tensorrt.session" in names
    own = [name for name in names if not name.endswith("__main__")]
    script = f"import importlib, sys\nfor name in {own!r}: importlib.import_module(name)\n"
    done = started(tmp_path, ABSENT, "-c", script + "assert 'tensorrt' not in sys.modules")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_doctor_says_what_engines_lack_and_how_to_get_it(tmp_path: Path) -> None:
    done = started(tmp_path, ABSENT, "-m", "pybench.cli", "doctor", "--json")
    assert done.returncode == 0, done.stderr
    findings = {each["what"]: each for each in json.loads(done.stdout)["findings"]}
    engines, gpu = findings["TensorRT engines"], findings["engines on a GPU"]
    assert engines["detail"] == "TensorRT cannot be imported (No module named 'tensorrt')"
    assert "docs/user/tensorrt.md" in engines["hint"]
    assert (gpu["status"], "driver" in gpu["hint"]) == ("no", True)


@pytest.mark.parametrize(
    ("tensorrt", "why"),
    [
        (BROKEN, "TensorRT cannot be imported (libnvinfer.so.10: cannot open shared object file: No such file"),
        (OLD, "TensorRT 10.5.0 is not known to this pybench"),
    ],
    ids=["broken", "old"],
)
def test_a_tensorrt_that_cannot_be_used_is_told_from_none(tmp_path: Path, tensorrt: str, why: str) -> None:
    asked = "import json; from pybench.worker.probe import probe; print(json.dumps(probe(['tensorrt'])['tensorrt']))"
    done = started(tmp_path, tensorrt, "-c", asked)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["available"]
    assert found["why"].startswith(why)


@pytest.mark.slow
def test_a_plan_of_engines_is_read_and_each_cell_says_what_it_lacks(tmp_path: Path) -> None:
    plan = tmp_path / "engines.yaml"
    plan.write_text(PLAN)
    assert started(tmp_path, ABSENT, "-m", "pybench.cli", "validate", str(plan)).returncode == 0
    out = tmp_path / "results"
    done = started(tmp_path, ABSENT, "-m", "pybench.cli", "run", str(plan), "--dry-run", "--out", str(out))
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert said.count("[unsupported: tensorrt cannot be used here") == 10
    assert not out.exists()
