# SPDX-License-Identifier: Apache-2.0
"""The rendered Job against Kubernetes' own schema of batch/v1, and its script under bash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from pybench.cluster.kubernetes import job_name, job_yaml
from pybench.cluster.site import KubernetesSite, Pod
from tests.support.waiting import wait_for

SCHEMA = json.loads((Path(__file__).parent / "kubernetes-job-1.37.schema.json").read_text())
IMAGE = f"registry.example.org/pybench@sha256:{'0' * 64}"
SMALLEST = {
    "image": IMAGE,
    "volume_claim": "campaigns",
    "mount": "/c",
    "directory": "/c/first",
    "cpu": "8",
    "memory": "8Gi",
}
EVERYTHING = {
    **SMALLEST,
    "namespace": "bench",
    "gpus": 1,
    "throttle": 2,
    "retries": 3,
    "checkpoint_s": 120,
    "deadline_s": 3600,
    "service_account": "runner",
    "priority_class": "batch",
    "node_selector": {"nvidia.com/gpu.product": "H100"},
}


def rendered(pod: dict[str, Any], shards: list[int], count: int, *arguments: str, **keys: Any) -> dict[str, Any]:
    site = KubernetesSite(pod=Pod(**pod), **keys)
    content: dict[str, Any] = YAML(typ="safe").load(job_yaml("pb-trial-01", site, shards, count, arguments))
    return content


@pytest.mark.parametrize("pod", [SMALLEST, EVERYTHING])
def test_the_job_is_one_that_kubernetes_knows(pod: dict[str, Any]) -> None:
    jsonschema.validate(rendered(pod, [1, 2, 5], 5, "--filter", "batch>=8", environment={"A": "1"}), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**rendered(pod, [1], 1), "sepc": {}}, SCHEMA)


def test_each_index_is_a_shard_and_fails_by_itself() -> None:
    spec = rendered(EVERYTHING, [1, 2, 5], 5)["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 2)
    assert (spec["backoffLimitPerIndex"], spec["maxFailedIndexes"]) == (3, 3)
    container = spec["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == container["resources"]["requests"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 120


def test_a_pod_that_is_evicted_finishes_its_run_and_asks_for_another(tmp_path: Path) -> None:
    said = tmp_path / "said"
    pybench = tmp_path / "pybench"
    pybench.write_text(
        f"#!/bin/bash\ntrap 'echo usr1 >> {said}; exit 75' USR1\necho \"$*\" >> {said}\n"
        "for i in {1..1000}; do sleep 0.1; done\n"
    )
    pybench.chmod(0o755)
    spec = rendered(SMALLEST, [3, 7], 9, "--filter", "batch>=8", pybench=str(pybench))["spec"]
    command = spec["template"]["spec"]["containers"][0]["command"]
    with subprocess.Popen(command, env={**os.environ, "JOB_COMPLETION_INDEX": "1"}) as process:
        wait_for(said.exists)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 75
    assert said.read_text().splitlines() == ["run /c/first --shard 7/9 --whole-blocks --filter batch>=8", "usr1"]


@pytest.mark.parametrize(
    ("campaign", "name"),
    [
        ("precision-resnet50", "pb-precision-resnet50-03"),
        ("My_Plan.v2", "pb-my-plan-v2-03"),
        ("x" * 64, f"pb-{'x' * 40}-03"),
    ],
)
def test_a_campaigns_name_becomes_one_that_kubernetes_takes(campaign: str, name: str) -> None:
    assert job_name(campaign, 3) == name
