# SPDX-License-Identifier: Apache-2.0
"""Replaying captured graphs on a real GPU, the load that pybench makes itself, and the runtime torch-graph."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pybench import _native  # noqa: E402
from pybench.case import Case  # noqa: E402
from pybench.errors import UnsupportedError  # noqa: E402
from pybench.measure import GpuLoad, GraphReplayer, fixed, monotonic_ns, summarise_latency  # noqa: E402
from pybench.models.building import build  # noqa: E402
from pybench.runtimes import torch_graph  # noqa: E402
from pybench.runtimes.session import module_spec  # noqa: E402
from tests.support.making import run  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")]

INFER = Case(workload="infer", model="resnet50", runtime="torch-graph", batch=8, iterations=200)
MILLISECOND = 1_000_000


def captured(work: Callable[[], Any]) -> tuple[Any, Any, GraphReplayer]:
    """The graph of `work`, its stream and its replayer."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    stream.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        output = work()
    stream.synchronize()
    keep = (graph, stream, output, work)
    return graph, stream, GraphReplayer(graph.raw_cuda_graph_exec(), stream.cuda_stream, keep=keep)


@pytest.fixture
def product() -> Callable[[], Any]:
    square = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    return lambda: square @ square


def uuid() -> str:
    return f"GPU-{torch.cuda.get_device_properties(0).uuid}"


# --- graphs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_graph_is_replayed_exactly_as_often_as_it_is_timed(depth: int) -> None:
    counter = torch.zeros(1, device="cuda")
    _, _, replayer = captured(lambda: counter.add_(1))
    before = int(counter.item())
    times = replayer.replay(1000, depth=depth)
    assert len(times) == 1000
    assert int(counter.item()) == before + 1000


def test_the_gpu_times_agree_with_torchs_own_events() -> None:
    square = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)  # a launch takes 3 % of a product of 4096
    graph, stream, replayer = captured(lambda: square @ square)
    replayer.replay(200)
    ours = summarise_latency(replayer.replay(500).latency_ns).p50_s
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(500)]
    with torch.cuda.stream(stream):
        for begin, end in events:
            begin.record()
            graph.replay()
            end.record()
    stream.synchronize()
    theirs = float(np.median([begin.elapsed_time(end) for begin, end in events])) * 1e-3
    assert ours == pytest.approx(theirs, rel=0.03)


def test_the_time_line_is_in_order_and_tied_to_the_raw_clock(product: Callable[[], Any]) -> None:
    _, _, replayer = captured(product)
    times = replayer.replay(500)
    assert times.gpu is not None
    assert np.all(times.gpu.begin_ns[1:] >= times.gpu.end_ns[:-1])
    assert times.gpu.origin_uncertainty_ns < 200_000
    lag_ns = times.end_ns - (times.gpu.origin_ns + times.gpu.end_ns)  # the host sees an end after it happened
    assert lag_ns.min() > -times.gpu.origin_uncertainty_ns - 20_000
    assert np.median(lag_ns) < MILLISECOND
    busy = (times.gpu.end_ns - times.gpu.begin_ns).sum() / (times.gpu.end_ns[-1] - times.gpu.begin_ns[0])
    assert busy > 0.95  # at depth 2 the GPU does not wait for the host


def test_depth_two_overlaps_what_depth_one_waits_for() -> None:
    one = torch.zeros(1, device="cuda")
    _, _, replayer = captured(lambda: [one.add_(1) for _ in range(20)])
    replayer.replay(500)
    deep, alone = replayer.replay(2000), replayer.replay(2000, depth=1)
    assert deep.span_s < alone.span_s
    assert np.mean(deep.begin_ns[1:] < deep.end_ns[:-1]) > 0.99
    assert np.all(alone.begin_ns[1:] >= alone.end_ns[:-1])


def test_arrivals_are_kept_and_latency_counts_from_them(product: Callable[[], Any]) -> None:
    _, _, replayer = captured(product)
    replayer.replay(100)
    times = replayer.replay(300, arrivals=fixed(500.0))
    assert times.due_ns is not None
    assert np.median(times.begin_ns - times.due_ns) < 50_000
    assert summarise_latency(times.latency_ns).p50_s < 2e-3


# --- the load --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0.02, 0.2, 1.0])
@pytest.mark.parametrize("level", [1.0, 0.25])
def test_the_load_lasts_as_long_as_wanted(seconds: float, level: float) -> None:
    with GpuLoad(uuid()) as load:
        runs = [load.run(seconds, level=level) for _ in range(5)]
    errors_ns = [abs(each.end_ns - each.begin_ns - seconds * 1e9) for each in runs]
    assert np.median(errors_ns) < MILLISECOND
    assert np.median([each.slack_ns for each in runs]) < MILLISECOND
    assert np.median([each.gaps_ns / each.busy_ns for each in runs]) < 0.03
    assert all(each.kernels_ns.max() < 5 * MILLISECOND for each in runs)


def test_the_load_draws_power_and_less_of_it_at_a_lower_level() -> None:
    device = next(each for each in _native.open_nvml().devices() if each.uuid == uuid())

    def watts(load: GpuLoad, level: float) -> float:
        thread = threading.Thread(target=load.run, args=(1.5,), kwargs={"level": level})
        thread.start()
        time.sleep(1.2)
        reading = device.power_mw(_native.FIELD_POWER_INSTANT).value
        thread.join()
        assert reading is not None
        return reading / 1000

    time.sleep(1.5)  # the power of what ran before lingers
    idle = device.power_mw(_native.FIELD_POWER_INSTANT).value
    with GpuLoad(uuid()) as load:
        full, quarter = watts(load, 1.0), watts(load, 0.25)
    assert idle is not None
    assert full > quarter > idle / 1000
    assert full > idle / 1000 + 100


def test_the_load_gives_its_memory_back() -> None:
    torch.cuda.synchronize()
    with GpuLoad(uuid()) as load:
        load.run(0.02)
        held, _ = torch.cuda.mem_get_info()
    free, _ = torch.cuda.mem_get_info()
    assert free - held > 200 << 20


def test_the_edges_of_the_load_are_on_the_raw_clock() -> None:
    with GpuLoad(uuid()) as load:
        before_ns = monotonic_ns()
        begin_ns, end_ns = load.run(0.05)
        assert before_ns <= begin_ns < end_ns <= monotonic_ns()
    with pytest.raises(UnsupportedError):
        GpuLoad("GPU-00000000-0000-0000-0000-000000000000")


# --- torch-graph -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16"])
def test_a_captured_module_is_timed_by_the_gpu(precision: str) -> None:
    result = run(INFER.with_factors(precision=precision, energy_window_s=0.5))
    metrics = result.metrics
    assert result.valid["precision"].value is True
    assert result.labels["latency"] == "GPU events around each graph launch, 2 in flight"
    assert set(result.windows) >= {"timing", "timing_depth1", "energy"}
    assert metrics["latency_depth1_p50_ms"].value > 0.9 * metrics["latency_p50_ms"].value
    assert metrics["enqueue_p50_ms"].value < metrics["latency_p50_ms"].value
    without_gaps = 8e3 / metrics["latency_mean_ms"].value  # a host that is held up leaves some
    assert 0.3 * without_gaps < metrics["throughput_samples_per_s"].value <= 1.001 * without_gaps
    assert len(result.tables["iterations"]["gpu_ns"]) == 200


def test_a_cold_cache_costs_time() -> None:
    """A model that mostly reads its weights: ResNet-50 takes 0.1 to 0.7 % longer, and its runs differ by more."""
    case = INFER.with_factors(model="tinylm-small", seq_len=32, batch=1, precision="fp16", energy_window_s=0.5)
    warm, cold = (run(case.with_factors(cache=cache)) for cache in ("warm", "cold"))
    assert "before" in cold.windows
    assert "MiB are written before each iteration" in cold.labels["cache"]
    assert cold.metrics["latency_p50_ms"].value > warm.metrics["latency_p50_ms"].value
    assert cold.metrics["latency_depth1_p50_ms"].value > cold.metrics["latency_p50_ms"].value
    each = {name: found.metrics["gpu_energy_per_sample_j"].value for name, found in (("w", warm), ("c", cold))}
    assert 0.8 * each["w"] < each["c"] < 2 * each["w"]  # the writes alone take more than the difference


def test_a_graph_is_no_slower_than_the_eager_module() -> None:
    graph, eager = (run(INFER.with_factors(runtime=name, batch=1)).metrics for name in ("torch-graph", "torch"))
    assert graph["latency_depth1_p50_ms"].value < eager["latency_p50_ms"].value


def test_a_graph_answers_what_the_module_answers() -> None:
    from pybench.runtimes import torch as eager
    from pybench.runtimes import torch_graph
    from pybench.runtimes.session import module_spec

    kind = eager.set_up("fp32", threads=1, device="cuda")
    spec = module_spec("images", (None, 3, 224, 224), takes_ids=False)
    pixels = np.random.default_rng(0).standard_normal((4, 3, 224, 224), np.float32)
    module = build("resnet50")
    options: dict[str, Any] = {"precision": "fp32", "kind": kind, "deterministic": True}
    expected = eager.open_session(module, spec, **options).run({"images": pixels})[0]
    session = torch_graph.open_session(module, spec, **options)
    np.testing.assert_allclose(session.run({"images": pixels})[0], expected, rtol=1e-3, atol=1e-3)
    again = session.run({"images": pixels[:2]})[0]  # another shape: another graph
    np.testing.assert_allclose(again, expected[:2], rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(session.run({"images": pixels})[0], session.run({"images": pixels})[0])
    assert not np.allclose(session.run({"images": 2 * pixels})[0], expected)  # it reads what it is given


def test_arrivals_reach_a_captured_module() -> None:
    result = run(INFER.with_factors(arrivals="poisson", arrival_rate_per_s=50.0, iterations=100))
    assert "waiting_ns" in result.tables["iterations"]
    assert "latency_depth1_p50_ms" not in result.metrics


def test_copies_are_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        run(INFER.with_factors(transfers=True))
    assert caught.value.reason.stored_code == "no_transfers_in_torch-graph"


def test_text_feeds_a_captured_language_model() -> None:
    case = Case(
        workload="infer", model="tinylm-small", runtime="torch-graph", seq_len=64, batch=2, iterations=20,
        path="rust", corpus_limit_bytes=400_000,
    )  # fmt: skip
    result = run(case)
    assert len(result.labels["ids_sha256"]) == 64
    assert set(result.tables["iterations"]) == {"gap_ns", "host_ns"}  # fetching a batch is in it: the host times


def test_a_replay_leaves_nothing_on_the_device_but_what_the_graph_reads() -> None:
    case = Case(workload="infer", model="digits-cnn", runtime="torch-graph", batch=256, device="cuda")
    spec = module_spec("images", (None, 1, 8, 8), takes_ids=False)
    session = torch_graph.open_case(lambda: build("digits-cnn"), spec, case, 1)
    launch, pictures = session.bind_feed(), np.zeros((256, 1, 8, 8), np.float32)
    launch({"images": pictures})()
    before_bytes = torch.cuda.memory_allocated()
    for _ in range(3):
        launch({"images": pictures})()
    assert torch.cuda.memory_allocated() == before_bytes
    assert session.profile().running
