# SPDX-License-Identifier: Apache-2.0
"""A campaign as an Indexed Job of Kubernetes (batch/v1), as YAML to apply. Nothing here talks to a cluster.

Rendered from the API's documentation (kubernetes.io/docs/concepts/workloads/controllers/job): completionMode Indexed,
backoffLimitPerIndex (stable since 1.33), podFailurePolicy.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from pybench import __version__
from pybench.campaign.batch_job import KUBERNETES_FAILURES, KUBERNETES_JOB, KUBERNETES_NODE
from pybench.cluster.site import KubernetesSite
from pybench.errors import EXIT_CHECKPOINTED, EXIT_CORRUPT, EXIT_FAILED, EXIT_USAGE

CONTAINER = "pybench"
# What a pod can be told of itself: its node, and how often its index has failed before (feature
# JobBackoffLimitPerIndex), in the order of KUBERNETES_FAILURES.
_NODE = "spec.nodeName"
_FAILURES = (
    "metadata.annotations['batch.kubernetes.io/job-index-failure-count']",
    "metadata.annotations['batch.kubernetes.io/job-index-ignored-failure-count']",
)
# What another pod would fail at as well: a wrong plan, corrupt files; runs that failed are not repeated unasked.
_FINAL = (EXIT_FAILED, EXIT_USAGE, EXIT_CORRUPT)

_SCRIPT = """\
shards=(%(shards)s)
shard=${shards[$JOB_COMPLETION_INDEX]}
# An eviction begins with SIGTERM: the run at hand is finished, and exit code %(again)s asks for another pod.
evicted=0
trap 'evicted=1' TERM
%(pybench)s run %(directory)s --shard "$shard/%(count)s" --whole-blocks%(arguments)s & child=$!
trap 'kill -USR1 "$child"; caught=1' TERM
[ "$evicted" = 0 ] || kill -USR1 "$child"
while :; do
  caught=0
  wait "$child"
  code=$?
  [ "$caught" = 1 ] || break
done
exit "$code"
"""


def job_yaml(name: str, site: KubernetesSite, shards: Sequence[int], count: int, arguments: Sequence[str]) -> str:
    """The Job that runs these of `count` shards, one an index."""
    buffer = io.StringIO()
    yaml = YAML()
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(job_content(name, site, shards, count, arguments), buffer)
    head = f"# Written by pybench {__version__}, which does not read it back: kubectl apply -f this file"
    return f"{head}\n{buffer.getvalue()}"


def job_content(
    name: str, site: KubernetesSite, shards: Sequence[int], count: int, arguments: Sequence[str]
) -> dict[str, Any]:
    """The Job as plain mappings and lists."""
    pod = site.pod
    metadata = {"name": name, "namespace": pod.namespace, "labels": {"app.kubernetes.io/managed-by": "pybench"}}
    spec = {
        "completionMode": "Indexed",
        "completions": len(shards),
        "parallelism": min(pod.throttle or len(shards), len(shards)),
        "backoffLimitPerIndex": pod.retries,
        "maxFailedIndexes": len(shards),  # a shard that fails does not end the others
        "activeDeadlineSeconds": pod.deadline_s,
        "podReplacementPolicy": "Failed",  # never two pods at one shard
        "podFailurePolicy": {"rules": _failure_rules()},
        "template": {"spec": _pod(name, site, _script(site, shards, count, arguments))},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _given(metadata), "spec": _given(spec)}


def job_name(campaign: str, number: int) -> str:
    """A name that Kubernetes takes: its pods add an index to it, and 63 characters is the most they may have."""
    plain = re.sub(r"[^a-z0-9]+", "-", campaign.lower()).strip("-")
    return f"pb-{plain[:40].rstrip('-')}-{number:02d}"


def _failure_rules() -> list[dict[str, Any]]:
    exit_codes = {"containerName": CONTAINER, "operator": "In", "values": list(_FINAL)}
    return [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},  # an eviction
        {"action": "FailIndex", "onExitCodes": exit_codes},
    ]


def _pod(name: str, site: KubernetesSite, script: str) -> dict[str, Any]:
    pod = site.pod
    resources = {"cpu": pod.cpu, "memory": pod.memory, **({"nvidia.com/gpu": pod.gpus} if pod.gpus else {})}
    container = {
        "name": CONTAINER,
        "image": pod.image,
        "command": ["/bin/bash", "-c", LiteralScalarString(script)],
        "env": _environment(name, site),
        # Equal requests and limits: the class "Guaranteed", which is evicted last and may get CPUs of its own.
        "resources": {"requests": dict(resources), "limits": dict(resources)},
        "volumeMounts": [{"name": "campaigns", "mountPath": pod.mount}],
    }
    return _given(
        {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": pod.checkpoint_s,
            "serviceAccountName": pod.service_account,
            "priorityClassName": pod.priority_class,
            "nodeSelector": dict(pod.node_selector) or None,
            "containers": [container],
            "volumes": [{"name": "campaigns", "persistentVolumeClaim": {"claimName": pod.volume_claim}}],
        }
    )


def _environment(job: str, site: KubernetesSite) -> list[dict[str, Any]]:
    plain = {"PYTHONNOUSERSITE": "1", KUBERNETES_JOB: job, **site.environment}
    fields = {KUBERNETES_NODE: _NODE, **dict(zip(KUBERNETES_FAILURES, _FAILURES, strict=True))}
    return [
        *({"name": name, "value": value} for name, value in plain.items()),
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
    ]


def _script(site: KubernetesSite, shards: Sequence[int], count: int, arguments: Sequence[str]) -> str:
    return _SCRIPT % {
        "shards": " ".join(str(shard) for shard in shards),
        "again": EXIT_CHECKPOINTED,
        "pybench": site.pybench,
        "directory": shlex.quote(site.pod.directory),
        "count": count,
        "arguments": "".join(f" {shlex.quote(argument)}" for argument in arguments),
    }


def _given(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value is not None}
