# SPDX-License-Identifier: Apache-2.0
"""Heads on streams behind a shared backbone, on a real GPU: their outputs, when each of them ends, and their rates.

The network has two layers instead of twelve, so that its engines are built in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pybench.case import Case  # noqa: E402
from pybench.measure.timing.head_log import NOT_RUN  # noqa: E402
from pybench.measurement.model import open_model  # noqa: E402
from pybench.models import vit_heads  # noqa: E402
from tests.support.making import request_of, run  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")]

VIT = Case(
    workload="infer", model="vit-heads", heads=3, runtime="torch", precision="fp16", batch=1, iterations=20,
    warmup_iterations=3, energy_window_s=0.0, idle_window_s=0.0,
)  # fmt: skip
TOLERANCE = 1e-2  # relative: FP16, with other fusions in other engines
NS_PER_MS = 1e6


@pytest.fixture(scope="module", autouse=True)
def shallow() -> Iterator[None]:
    """Two layers at the usual width."""
    with patch.dict(vit_heads.VitHeads.__init__.__kwdefaults__, {"layers": 2}):
        yield


@pytest.fixture
def images() -> dict[str, Any]:
    return {"images": np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)}


def opened(case: Case) -> Any:
    return open_model(request_of(case)).session


def apart(expected: np.ndarray, found: np.ndarray) -> float:
    assert expected.shape == found.shape
    return float(np.linalg.norm(found.astype(np.float64) - expected) / np.linalg.norm(expected))


# --- torch -----------------------------------------------------------------------------------------------------------


def test_streams_of_torch_compute_what_one_engine_computes_and_each_head_ends(images: dict[str, Any]) -> None:
    whole, streams = (opened(VIT.with_factors(dispatch=name)) for name in ("one-engine", "streams"))
    expected, found = whole.run(images)[0], streams.run(images)[0]
    assert apart(expected, found) < TOLERANCE
    torch.cuda.synchronize()
    ends = streams.module.log.take()
    assert ends.shape == (1, 3)
    assert (ends > 0).all()


def test_a_run_of_torch_on_streams_tells_every_head() -> None:
    result = run(VIT.with_factors(dispatch="streams"))
    whole_ms = result.metrics["latency_p50_ms"].value
    heads_ms = [result.metrics[f"head{number}_latency_p50_ms"].value for number in (1, 2, 3)]
    assert all(0 < head_ms <= 1.05 * whole_ms for head_ms in heads_ms)


# --- TensorRT --------------------------------------------------------------------------------------------------------

STREAMS = VIT.with_factors(runtime="tensorrt", dispatch="streams")
LAUNCHES = ("enqueue", "graph")


@pytest.fixture
def tensorrt() -> None:
    pytest.importorskip("tensorrt")


@pytest.mark.usefixtures("tensorrt")
@pytest.mark.parametrize("launch", LAUNCHES)
def test_engines_on_streams_compute_what_one_engine_computes(launch: str, images: dict[str, Any]) -> None:
    case = STREAMS.with_factors(launch=launch)
    expected = opened(case.with_factors(dispatch="one-engine")).run(images)[0]
    session = opened(case)
    assert apart(expected, session.run(images)[0]) < TOLERANCE
    others = {"images": images["images"][:, :, ::-1].copy()}
    mirrored = session.run(others)[0]
    assert apart(expected, mirrored) > TOLERANCE
    iterate = session.bind(images, transfers=False)  # over what the other images left
    iterate()
    assert session.labels["launch"] == launch
    replayed = [branch.session.read()[0].reshape(1, -1) for branch in session.branches]
    assert apart(expected, np.concatenate(replayed, axis=1)) < TOLERANCE


@pytest.mark.usefixtures("tensorrt")
@pytest.mark.parametrize("launch", LAUNCHES)
def test_heads_end_after_the_backbone_and_before_the_frame(launch: str, images: dict[str, Any]) -> None:
    from pybench.measure import monotonic_ns
    from pybench.runtimes import cuda

    session = opened(STREAMS.with_factors(launch=launch))
    features = session.trunk.buffers[session.trunk.outputs[0].name].address
    assert {branch.session.buffers["features"].address for branch in session.branches} == {features}
    iterate = session.bind(images, transfers=False)
    for _ in range(20):
        iterate()
    session.log.take()
    spans_ns = []
    for _ in range(20):
        begin_ns = monotonic_ns()
        iterate()
        spans_ns.append((begin_ns, monotonic_ns()))
    ends_ns = session.log.take()
    began, ended = cuda.StreamEvent(timed=True), cuda.StreamEvent(timed=True)
    backbone_ms = []
    for _ in range(20):
        began.record(session.trunk.stream)
        session.trunk.enqueue()
        ended.record(session.trunk.stream)
        session.trunk.stream.synchronize()
        backbone_ms.append(began.elapsed_time(ended))
    begins_ns, finals_ns = np.array(spans_ns).T
    assert ends_ns.shape == (20, 3)
    latencies_ms = (ends_ns - begins_ns[:, None]) / NS_PER_MS
    assert latencies_ms.min() > 0.8 * min(backbone_ms)  # replays of a graph have smaller gaps between kernels
    assert (ends_ns < finals_ns[:, None]).all()


@pytest.mark.usefixtures("tensorrt")
@pytest.mark.parametrize("launch", LAUNCHES)
def test_heads_of_engines_run_at_their_rates(launch: str) -> None:
    case = STREAMS.with_factors(
        launch=launch, head_rates_hz="50,25,10", arrivals="fixed", arrival_rate_per_s=50.0, warmup_iterations=0
    )
    result = run(case)
    assert [result.metrics[f"head{number}_rate_per_s"].samples for number in (1, 2, 3)] == [20, 10, 4]
    assert result.metrics["head1_rate_per_s"].value == pytest.approx(50, rel=0.1)
    assert all(0 <= result.metrics[f"head{number}_deadline_miss_ratio"].value <= 1 for number in (1, 2, 3))
    assert result.labels["launch"] == launch


@pytest.mark.usefixtures("tensorrt")
def test_a_head_that_is_not_due_leaves_its_outputs_as_they_were(images: dict[str, Any]) -> None:
    session = opened(STREAMS)
    session.log.rates_hz = (2.0, 1.0, 1.0)
    iterate = session.bind(images, transfers=False)
    before = [branch.session.read()[0] for branch in session.branches]
    session.trunk.write({"images": 2 * images["images"]})
    iterate()
    after = [branch.session.read()[0] for branch in session.branches]
    assert [bool(np.array_equal(*pair)) for pair in zip(before, after, strict=True)] == [False, True, True]
    assert (session.log.take() == NOT_RUN).tolist() == [[False, True, True]]


@pytest.mark.usefixtures("tensorrt")
def test_a_run_audits_every_part_and_tells_every_head() -> None:
    result = run(STREAMS)
    assert result.valid["precision"].value is True, result.labels["precision_facts"]
    assert set(result.labels["precision_facts"]) == {"backbone", "depth", "boxes", "classes"}
    assert all(facts["outputs"]["agree"] for facts in result.labels["precision_facts"].values())
    whole_ms = result.metrics["latency_p50_ms"].value
    heads_ms = [result.metrics[f"head{number}_latency_p50_ms"].value for number in (1, 2, 3)]
    assert all(0 < head_ms <= 1.05 * whole_ms for head_ms in heads_ms)
    assert result.metrics["kernels_count"].value > 10
    assert result.metrics["relative_error_ratio"].value < TOLERANCE


@pytest.mark.usefixtures("tensorrt")
def test_a_fourth_head_is_a_second_context_of_the_first_ones_engine(images: dict[str, Any]) -> None:
    three, four = opened(STREAMS), opened(STREAMS.with_factors(heads=4))
    expected = three.run(images)[0]
    found = four.run(images)[0]
    depth = 196 * 256
    assert np.array_equal(found[:, :depth], found[:, -depth:])
    assert apart(expected, found[:, :-depth]) < 1e-6
    assert four.model_bytes > three.model_bytes
