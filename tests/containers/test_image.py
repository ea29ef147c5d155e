# SPDX-License-Identifier: Apache-2.0
"""The whole image: the same digests from two folders under two environments, and the quickstart plan runs in it.

Takes minutes and gigabytes, so it runs only when asked for: PYBENCH_TEST_CONTAINER=1.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ASKED_FOR = os.environ.get("PYBENCH_TEST_CONTAINER") == "1"
pytestmark = [
    pytest.mark.container,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not ASKED_FOR, reason="takes minutes: PYBENCH_TEST_CONTAINER=1"),
    pytest.mark.skipif(os.geteuid() != 0, reason="building a root file system needs root"),
]


def build(sources: Path, output: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    program = [sys.executable, str(sources / "containers" / "build.py"), "--tier", "slim"]
    command = [*program, "--output", str(output), *arguments]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads((output / "pybench-slim.json").read_text())
    return record


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, containers: Path) -> Path:
    output = tmp_path_factory.mktemp("image")
    build(containers.parent, output)
    return output


def test_a_second_build_in_a_hostile_environment_has_the_same_digests(image: Path, containers: Path) -> None:
    verify = [sys.executable, containers / "verify.py", "--tier", "slim", "--images", image]
    done = subprocess.run(verify, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("same ") == 3


@pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed")
def test_the_quickstart_runs_in_it_as_an_ordinary_user_on_a_read_only_root(
    image: Path, tmp_path: Path, containers: Path
) -> None:
    results = tmp_path / "results"
    command = [containers / "run", "--tier", "slim", "--images", image, "--results", results]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    digest = json.loads((image / "pybench-slim.json").read_text())["sha256"]["oci_manifest"]
    environments = sorted((results / "quickstart" / "runs").glob("*/*/*/environment.json"))
    assert environments
    assert {json.loads(path.read_text())["image_digest"] for path in environments} == {f"sha256:{digest}"}
    assert {path.stat().st_uid for path in environments} == {1000}
    # Without torch its cells are unsupported; the tokenizer's four paths run.
    records = (results / "quickstart" / "runs").glob("*/*/*/run.json")
    outcomes = [json.loads(path.read_text())["outcome"] for path in records]
    assert set(outcomes) == {"ok", "unsupported"}
    assert outcomes.count("ok") >= 4
