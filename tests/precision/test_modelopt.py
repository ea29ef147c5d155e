# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.errors import UnsupportedError
from pybench.precision import modelopt
from pybench.precision.audit import audit_onnx
from tests.precision import graphs
from tests.support.making import artefacts_of

pytestmark = pytest.mark.process  # a stand-in for uv


MADE = (modelopt.folder_of_environment() / modelopt.COMPLETE).exists()


@pytest.mark.slow
@pytest.mark.skipif(not MADE, reason="modelopt's environment is not made on this machine (3 GB, once)")
@pytest.mark.parametrize("precision", ["int8+fp16", "fp8"])
def test_modelopt_quantises_in_an_environment_of_its_own(precision: str, tmp_path: Path) -> None:
    source = graphs.saved(graphs.residual_block(), tmp_path / "fp32.onnx")
    feeds = [graphs.images((4, 3, 8, 8), seed) for seed in range(2)]
    labels = modelopt.quantise(source, tmp_path / "q.onnx", precision, "minmax", feeds, "b2")
    assert labels["versions"]["nvidia-modelopt"] == modelopt.VERSION
    assert labels["kept"] == {"b2": "keep_fp32"}
    found = audit_onnx(tmp_path / "q.onnx", precision)
    assert found.valid, found
    assert found.facts["quantised_nodes"] < found.facts["multiplying_nodes"]
    assert {path.name for path in tmp_path.iterdir()} == {"fp32.onnx", "q.onnx"}  # nothing half made is left


STANDS_IN = """#!/bin/sh
for request; do :; done
exec '{python}' - "$request" <<'END'
import json, shutil, sys
request = json.load(open(sys.argv[1]))
shutil.copyfile(request["source"], request["destination"])
json.dump({{"inputs": len(open(request["samples"], "rb").read())}}, open(request["answer"], "w"))
END
"""


def test_relative_paths_reach_the_process_which_runs_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In modelopt's place: a program that reads and writes what the request names."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = modelopt.folder_of_environment()
    python = made / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(STANDS_IN.format(python=sys.executable))
    python.chmod(0o755)
    (made / modelopt.COMPLETE).touch()
    monkeypatch.chdir(tmp_path)
    graphs.saved(graphs.residual_block(), Path("fp32.onnx"))
    feeds = [graphs.images((4, 3, 8, 8))]
    labels = modelopt.quantise(Path("fp32.onnx"), Path("q.onnx"), "int8", "minmax", feeds, None)
    assert labels["inputs"] > 4 * 3 * 8 * 8 * 4
    assert (tmp_path / "q.onnx").exists()


@pytest.mark.parametrize("method", ["percentile", "moving-average"])
def test_a_method_that_modelopt_would_take_for_another_is_refused(method: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        modelopt.quantise(tmp_path / "a.onnx", tmp_path / "b.onnx", "int8", method, [], None)
    assert refusal.value.code == "no_calibration"


def test_without_uv_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match="uv to make it") as refusal:
        modelopt.environment()
    assert refusal.value.code == "no_modelopt"


def test_without_the_network_it_says_what_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A uv that makes the environment but cannot install; nothing passes for complete afterwards."""
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\n[ "$1" = venv ] && exit 0\necho "error: could not connect" >&2\nexit 2\n')
    uv.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(UnsupportedError, match="could not connect"):
        modelopt.environment()
    assert not (modelopt.folder_of_environment() / modelopt.COMPLETE).exists()


def test_the_lock_pins_the_version_with_hashes() -> None:
    lines = modelopt.LOCK.read_text()
    assert f"nvidia-modelopt=={modelopt.VERSION}" in lines
    pinned = re.findall(r"^([a-z0-9_.-]+)==\S+", lines, re.MULTILINE)
    assert len(pinned) > 30
    assert lines.count("--hash=sha256:") >= len(pinned)


def test_the_quantiser_is_a_factor_that_reaches_modelopt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every way through the recipe ends at the environment, which is refused here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    case = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8", quantiser="modelopt")
    with pytest.raises(UnsupportedError, match="modelopt needs an environment"):
        artefacts_of(case)
