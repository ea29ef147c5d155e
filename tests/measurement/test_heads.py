# SPDX-License-Identifier: Apache-2.0
"""Metrics of heads: rates, latencies and missed deadlines from their ends, and what a run stores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybench import workloads
from pybench.case import Case
from pybench.case.yields import metrics_of
from pybench.catalogue.heads import ModelParts, head_metrics, role_of
from pybench.measure import CallReplayer
from pybench.measure.timing.head_log import NOT_RUN, HeadLog
from pybench.measurement.audits import GRAPH_FILE
from pybench.measurement.doubts import AGREEMENT_KEY
from pybench.measurement.heads import metrics_of_heads
from pybench.measurement.result import RunRequest
from pybench.models import vit_heads
from pybench.runtimes.session import TensorSpec
from tests.support.making import run
from tests.support.reasons import codes_of

MS = 1_000_000
VIT = Case(
    workload="infer", model="vit-heads", heads=2, runtime="torch", device="cpu", batch=1, threads=2, iterations=4,
    warmup_iterations=1, idle_window_s=0.0,
)  # fmt: skip


def test_a_heads_latency_counts_from_the_arrival_and_its_deadline_is_its_period() -> None:
    begins_ns = np.array([0, 100, 200, 300], np.int64) * MS
    ends_ns = np.array([[40, 90], [160, NOT_RUN], [250, 420], [330, NOT_RUN]], np.int64) * MS
    ends_ns[ends_ns < 0] = NOT_RUN
    metrics = metrics_of_heads(VIT, begins_ns, ends_ns, timed_s=0.5, rates_hz=(20.0, 5.0))
    assert metrics["head1_rate_per_s"].value == 8.0
    assert metrics["head2_rate_per_s"].value == 4.0
    assert metrics["head1_latency_p50_ms"].value == pytest.approx(45.0)  # of 40, 60, 50 and 30
    assert metrics["head1_deadline_miss_ratio"].value == 0.25  # 60 ms, where 50 are a period
    assert metrics["head2_deadline_miss_ratio"].value == 0.5  # 220 ms, where 200 are a period
    assert "head1_deadline_miss_ratio" not in metrics_of_heads(VIT, begins_ns, ends_ns, 0.5, None)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same network, narrow and shallow, so that a run takes no time."""
    monkeypatch.setattr(vit_heads.VitHeads.__init__, "__kwdefaults__", {"width": 64, "layers": 1})


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("dispatch", ["sequential", "one-engine", "streams"])
def test_a_run_stores_the_metrics_of_each_head(dispatch: str) -> None:
    case = VIT.with_factors(dispatch=dispatch)
    result = run(case)
    names = set(head_metrics(2, has_deadlines=False))
    assert names == {name for name in result.metrics if name.startswith("head")}
    assert names <= metrics_of(case)
    latencies = [result.metrics[f"head{number}_latency_p50_ms"].value for number in (1, 2)]
    whole_ms = result.metrics["latency_p50_ms"].value
    assert all(0 < latency <= whole_ms for latency in latencies)
    assert result.metrics["head2_rate_per_s"].value == pytest.approx(
        result.metrics["throughput_samples_per_s"].value, rel=1e-6
    )
    assert result.labels["heads"] == "depth, boxes"
    if dispatch == "sequential":
        assert latencies[0] < latencies[1]


@pytest.mark.usefixtures("narrow")
def test_heads_with_rates_run_at_them_and_tell_misses() -> None:
    case = VIT.with_factors(
        dispatch="streams", head_rates_hz="20,10", arrivals="fixed", arrival_rate_per_s=20.0, iterations=8
    )
    result = run(case)
    assert [result.metrics[f"head{number}_rate_per_s"].samples for number in (1, 2)] == [8, 4]
    assert 0 <= result.metrics["head1_deadline_miss_ratio"].value <= 1


class NoEngines:
    """As a session of parts, without engines: heads end in the order of their numbers."""

    device, device_uuid, model_bytes, compile_s = "cpu", None, 40, None
    inputs = (TensorSpec("images", np.dtype(np.float32), (1, 3, 4, 4)),)

    def __init__(self, given: Mapping[str, Path], parts: ModelParts, case: Case) -> None:
        assert list(given) == list(parts.names)
        self.labels: dict[str, Any] = {"launch": case.launch}
        self.metadata: dict[str, str] = {}
        self.log = HeadLog(len(parts.branches))

    def bind_replay(self, inputs: Any, *, transfers: bool) -> CallReplayer:
        assert self.log.rates_hz is not None  # graphs are captured for what is due

        def frame() -> None:
            for number in self.log.begin():
                self.log.end(number)

        return CallReplayer(frame)


def test_a_run_of_parts_opens_their_engines_and_takes_the_ends_of_heads_from_their_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = VIT.with_factors(
        runtime="tensorrt", device="auto", dispatch="streams", precision="fp16", head_rates_hz="50,25",
        arrivals="fixed", arrival_rate_per_s=50.0,
    )  # fmt: skip
    monkeypatch.setattr("pybench.runtimes.tensorrt.parts.open_parts", NoEngines)
    assert case.parts is not None
    for number, name in enumerate(case.parts.names):
        (tmp_path / name).mkdir()
        agreement = {"relative_error_ratio": 0.1 * number}
        graph = {"metadata": {AGREEMENT_KEY: json.dumps(agreement)}, "outputs": {"agree": True}}
        (tmp_path / name / GRAPH_FILE).write_text(json.dumps(graph))
    engines = {role_of(name): tmp_path / name / "model.engine" for name in case.parts.names}
    result = workloads.run(RunRequest(case=case, block=0, attempt=1, seed=1, artefacts=engines, files={}))
    assert [result.metrics[f"head{number}_rate_per_s"].samples for number in (1, 2)] == [4, 2]
    assert result.metrics["relative_error_ratio"].value == pytest.approx(0.2)
    assert "`boxes`" in str(result.metrics["relative_error_ratio"].method)
    assert codes_of(result.valid["precision"].reasons) == ("audit_failed",)  # there are no engines to audit
