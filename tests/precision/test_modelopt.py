# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest

from pybench.artefacts import quantised
from pybench.artefacts.request import MakeRequest
from pybench.case import Case
from pybench.errors import InputError, UnsupportedError
from pybench.precision import modelopt, modelopt_process
from pybench.precision.audit import audit_onnx
from pybench.precision.network import open_network
from pybench.precision.placement import Quantisation
from pybench.precision.qdq import quantise
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


def put_in_place_of_modelopt(program: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    made = modelopt.folder_of_environment()
    python = made / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(program)
    python.chmod(0o755)
    (made / modelopt.COMPLETE).touch()


def test_relative_paths_reach_the_process_which_runs_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In modelopt's place: a program that reads and writes what the request names."""
    put_in_place_of_modelopt(STANDS_IN.format(python=sys.executable), monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    graphs.saved(graphs.residual_block(), Path("fp32.onnx"))
    feeds = [graphs.images((4, 3, 8, 8))]
    labels = modelopt.quantise(Path("fp32.onnx"), Path("q.onnx"), "int8", "minmax", feeds, None)
    assert labels["inputs"] > 4 * 3 * 8 * 8 * 4
    assert (tmp_path / "q.onnx").exists()


SEARCHES = """#!/bin/sh
for request; do :; done
exec '{python}' - "$request" <<'END'
import json, os, shutil, sys
request = json.load(open(sys.argv[1]))
search = request["search"]
shutil.copyfile("{quantised}" or request["source"], request["destination"])
found = {{"mode": search["mode"], "floating_ms": 1.25, "quantised_ms": None}}
seen = {{name: sorted(os.listdir(search[name])) for name in ("packages", "folder")}}
seen |= {{"shapes": search["shapes"], "gpu": os.environ["CUDA_VISIBLE_DEVICES"]}}
json.dump({{"search": found, "seen": seen}}, open(request["answer"], "w"))
END
"""


@pytest.fixture
def search(tmp_path: Path) -> modelopt.Search:
    """With a folder of packages in which TensorRT is one of several."""
    for name in ("tensorrt", "tensorrt_libs", "onnx"):
        (tmp_path / "site" / name).mkdir(parents=True)
    return modelopt.Search("default", tmp_path / "site", "TensorRT 10.6.0 on A", "GPU-7", {"x": (4, 3, 8, 8)})


def test_a_search_sees_tensorrt_alone_and_tells_what_it_placed(
    search: modelopt.Search, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, feeds = graphs.saved(graphs.residual_block(), tmp_path / "fp32.onnx"), [graphs.images((4, 3, 8, 8))]
    by_hand = tmp_path / "by-hand.onnx"
    network = open_network(source)
    ranges = graphs.ranges_of(graphs.residual_block(), *feeds)
    placement, _ = quantise(network, ranges, Quantisation("int8", "fp32", None))
    network.save(by_hand, {})
    put_in_place_of_modelopt(SEARCHES.format(python=sys.executable, quantised=by_hand), monkeypatch, tmp_path)
    labels = modelopt.quantise(source, tmp_path / "q.onnx", "int8", "minmax", feeds, None, search)
    assert labels["seen"] == {
        "packages": ["tensorrt", "tensorrt_libs"], "folder": [], "shapes": {"x": [4, 3, 8, 8]}, "gpu": "GPU-7",
    }  # fmt: skip
    assert labels["search"]["mode"] == "default"
    assert labels["search"]["pairs"] == quantised_pairs(by_hand) > len(placement.readers)


def quantised_pairs(path: Path) -> int:
    return sum(node.op_type == "DequantizeLinear" for node in onnx.load(path).graph.node)


def test_a_search_that_gives_back_a_file_without_rounding_is_no_int8(
    search: modelopt.Search, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, feeds = graphs.saved(graphs.residual_block(), tmp_path / "fp32.onnx"), [graphs.images((4, 3, 8, 8))]
    put_in_place_of_modelopt(SEARCHES.format(python=sys.executable, quantised=""), monkeypatch, tmp_path)
    with pytest.raises(UnsupportedError, match=r"measured no latency with, 1\.25 ms without") as refusal:
        modelopt.quantise(source, tmp_path / "q.onnx", "int8", "minmax", feeds, None, search)
    assert refusal.value.reason.stored_code == "quantising_not_faster"
    assert not (tmp_path / "q.onnx").exists()


def test_the_maker_hands_over_the_gpu_of_the_platform_the_shapes_of_the_case_and_where_tensorrt_lies(
    search: modelopt.Search, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the real process, with a TensorRT that says what it was told; up to where modelopt would begin."""
    told = "import json, sys; search = json.load(open(sys.argv[1]))['search']\n"
    told += (
        "raise ImportError(f\"{search['mode']} {search['shapes']} {__import__('os').environ['CUDA_VISIBLE_DEVICES']}\")"
    )
    package = tmp_path / "site" / "tensorrt" / "__init__.py"
    package.write_text(told)
    monkeypatch.setitem(sys.modules, "tensorrt", SimpleNamespace(__version__="10.6.0", __file__=str(package)))
    devices = [{"name": "GPU B", "uuid": "GPU-1"}, {"name": "GPU A", "uuid": "GPU-2"}]
    monkeypatch.setattr("pybench.runtimes.cuda.devices", lambda: devices)
    put_in_place_of_modelopt(f'#!/bin/sh\nexec {sys.executable} "$@"\n', monkeypatch, tmp_path)
    source = graphs.saved(graphs.residual_block(), tmp_path / "fp32.onnx")
    parameters = {
        "model": "own.onnx", "precision": "int8", "quantiser": "modelopt-autotune", "scheme": "symmetric",
        "calibration": "minmax", "calibration_images": 4, "images": None, "images_sha256": None, "keep_fp32": None,
        "search": "default", "platform": "TensorRT 10.6.0 on GPU A", "batch": 4, "seq_len": None,
    }  # fmt: skip
    request = MakeRequest("onnx-quantised", parameters, {"onnx": source}, {})
    with pytest.raises(UnsupportedError, match=r"default \{'x': \[4, 3, 8, 8\]\} GPU-2"):
        quantised.make(request, tmp_path / "q.onnx")
    elsewhere = replace(request, parameters={**parameters, "platform": "TensorRT 10.6.0 on GPU C"})
    with pytest.raises(UnsupportedError, match="no GPU here for TensorRT 10") as refusal:
        quantised.make(elsewhere, tmp_path / "q.onnx")
    assert refusal.value.reason.stored_code == "no_gpu"


@pytest.mark.parametrize(
    ("tensorrt", "why"),
    [
        ("raise ImportError('no libnvinfer')", "TensorRT cannot be imported there: no libnvinfer"),
        ("class NetworkDefinitionCreationFlag: STRONGLY_TYPED = 0", "works with TensorRT 10, and this is 11.4.0"),
    ],
)
def test_the_real_process_refuses_a_tensorrt_that_it_cannot_measure_with(
    tensorrt: str, why: str, search: modelopt.Search, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "site" / "tensorrt" / "__init__.py").write_text(f"__version__ = '11.4.0'\n{tensorrt}\n")
    source, feeds = graphs.saved(graphs.residual_block(), tmp_path / "fp32.onnx"), [graphs.images((4, 3, 8, 8))]
    put_in_place_of_modelopt(f'#!/bin/sh\nexec {sys.executable} "$@"\n', monkeypatch, tmp_path)
    with pytest.raises(UnsupportedError, match=why) as refusal:
        modelopt.quantise(source, tmp_path / "q.onnx", "int8", "minmax", feeds, None, search)
    assert refusal.value.reason.stored_code == "no_search"


class Workflows:
    """In place of Autotune's module: what starts a benchmark, which here takes its latencies from a list."""

    def __init__(self, latencies_ms: list[float]) -> None:
        self.latencies_ms, self.shapes = latencies_ms, {}  # type: tuple[list[float], dict[str, tuple[list[int], ...]]]

    def init_benchmark_instance(self, **options: int) -> Workflows:
        self.options = options
        return self

    def set_shapes(self, name: str, *shapes: list[int]) -> None:
        self.shapes[name] = shapes

    def run(self, model: str | bytes, log_file: str, flush_timing_cache: bool = False) -> float:
        return self.latencies_ms.pop(0)


def test_a_search_measures_at_the_case_s_shapes_and_what_the_guard_compared_is_told(tmp_path: Path) -> None:
    found: dict[str, object] = {}
    baseline, last, rounded = (tmp_path / f"{name}.onnx" for name in ("baseline", *modelopt_process._GUARDED))
    for path in (baseline, last, rounded):
        path.write_bytes(b"the same graph")
    workflows = Workflows([3.0, float("inf"), 2.0, 1.5, float("inf")])
    latencies = modelopt_process.Latencies(tmp_path / "latencies.jsonl")
    modelopt_process.watch(workflows, {"x": [8, 3, 8, 8]}, found, latencies)
    benchmark = workflows.init_benchmark_instance(warmup_runs=50)
    assert workflows.options == {"warmup_runs": 50}
    assert workflows.shapes == {"x": ([8, 3, 8, 8],) * 3}
    models = (str(baseline), b"a scheme", b"a scheme", b"a scheme", str(last))
    assert [benchmark.run(model, "log") for model in models] == [3.0, float("inf"), 2.0, 2.0, 1.5]
    assert benchmark.run(str(rounded), "log", flush_timing_cache=True) == float("inf")
    assert found == {
        "engines_measured": 3, "engines_recalled": 1, "engines_failed": 2, "floating_ms": 1.5, "quantised_ms": None,
    }  # fmt: skip


def test_latencies_outlive_the_process_and_half_a_line_of_a_killed_one_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "latencies.jsonl"
    first = modelopt_process.Latencies(path)
    first.add("a", 1.5)
    first.add("b", 2.5)
    path.write_bytes(path.read_bytes() + b'{"graph": "c", "mill')
    again = modelopt_process.Latencies(path)
    assert [again.of(graph) for graph in "abc"] == [1.5, 2.5, None]
    again.add("c", 3.5)
    assert [modelopt_process.Latencies(path).of(graph) for graph in "abc"] == [1.5, 2.5, 3.5]


SEARCHES_WITHOUT_A_GPU = """
import hashlib, importlib.machinery, os, sys
from types import SimpleNamespace
modelopt_process = importlib.machinery.SourceFileLoader("modelopt_process", {process!r}).load_module()
from modelopt.onnx.quantization.autotune import workflows

class Benchmark:
    engines = 0
    def set_shapes(self, *arguments):
        pass
    def run(self, model, *arguments, **options):
        Benchmark.engines += 1
        if Benchmark.engines > {engines}:
            os.kill(os.getpid(), 9)
        graph = open(model, "rb").read() if isinstance(model, str) else model
        if isinstance(model, str) and "calibrated" in model:  # so that the guard lets rounding pass
            return 1.0 if b"QuantizeLinear" in graph else 2.0
        return 1 + hashlib.sha256(graph).digest()[0] / 256

def started(*arguments, **options):
    workflows._benchmark_instance = Benchmark()
    return workflows._benchmark_instance

workflows.init_benchmark_instance = started
modelopt_process.why_not = lambda: None
sys.modules["tensorrt"] = SimpleNamespace(__version__="10.6.0")
modelopt_process.main(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not MADE, reason="modelopt's environment is not made on this machine (3 GB, once)")
def test_a_search_that_was_killed_goes_the_same_way_again_and_measures_only_the_rest(
    search: modelopt.Search, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the real Autotune. In place of engines: a latency that follows from the graph's bytes."""
    source, feeds = graphs.saved(graphs.residual_block(), tmp_path / "fp32.onnx"), [graphs.images((4, 3, 8, 8))]
    made = modelopt.folder_of_environment()
    script = tmp_path / "search.py"
    monkeypatch.setattr(modelopt, "SCRIPT", script)

    def searched(cache: str, engines: int) -> tuple[dict[str, object], bytes]:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        if not modelopt.folder_of_environment().exists():
            modelopt.folder_of_environment().parent.mkdir(parents=True)
            modelopt.folder_of_environment().symlink_to(made)
        script.write_text(SEARCHES_WITHOUT_A_GPU.format(process=modelopt_process.__file__, engines=engines))
        labels = modelopt.quantise(source, tmp_path / "q.onnx", "int8", "minmax", feeds, None, search)
        return labels["search"], (tmp_path / "q.onnx").read_bytes()

    whole, file = searched("whole", 10**6)
    with pytest.raises(InputError):
        searched("killed", 7)
    rest, again = searched("killed", 10**6)
    assert whole["engines_measured"] > 20
    assert rest["engines_measured"] == whole["engines_measured"] - 7
    assert rest["engines_recalled"] == whole["engines_recalled"] + 7
    assert again == file


@pytest.mark.parametrize("method", ["percentile", "moving-average"])
def test_a_method_that_modelopt_would_take_for_another_is_refused(method: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        modelopt.quantise(tmp_path / "a.onnx", tmp_path / "b.onnx", "int8", method, [], None)
    assert refusal.value.reason.stored_code == "no_calibration"


def test_without_uv_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match="uv to make it") as refusal:
        modelopt.environment()
    assert refusal.value.reason.stored_code == "no_modelopt"


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
