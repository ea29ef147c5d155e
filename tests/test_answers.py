# SPDX-License-Identifier: Apache-2.0
"""Ids, metrics, idle factors, recipes and support of some thousand cases, against those of commit 91dd70b.

The stored answers were made by `python -m tests.support.answers` before the catalogue, and stay.
A deliberate change is one row of `CHANGES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pybench.campaign import recipe
from pybench.catalogue.models import MODELS
from pybench.catalogue.paths import PATHS
from pybench.catalogue.workloads import AGREEMENT, KERNELS, STEP_PARTS, STEP_PEAK
from tests.support.answers import answers, case_of, read_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One deliberate difference from the stored answers."""

    why: str
    answer: str  # metrics, idle, recipes, made or unsupported
    stored: str | None  # None: `now` is new in a list
    now: str | None  # None: `stored` is gone from a list
    where: Mapping[str, Any] = field(default_factory=dict)  # factors of the cases that it is about
    machine: str | None = None  # of `unsupported`: one of tests.answers.MACHINES; None: all

    def applied(self, stored: Any) -> Any:
        if isinstance(stored, dict):
            return {
                name: self.now if value == self.stored and self.machine in (None, name) else value
                for name, value in stored.items()
            }
        if self.stored is None:
            return sorted({*stored, self.now})
        replaced = [self.now if value == self.stored else value for value in stored]
        return [value for value in replaced if value is not None]


def _yields(why: str, names: Iterable[str], gone: bool = False, **where: Any) -> tuple[Change, ...]:
    """Metrics that are new in the answers, or gone from them."""
    return tuple(
        Change(why=why, answer="metrics", stored=name if gone else None, now=None if gone else name, where=where)
        for name in names
    )


GROUPS = read_stored()
_MODELS = {entry["factors"].get("model") for entries in GROUPS.values() for entry in entries}
_RUNTIMES = {entry["factors"].get("runtime") for entries in GROUPS.values() for entry in entries}
_NOT_REPLAYED = sorted(_RUNTIMES - {None, "tensorrt", "torch-graph"})
_UNTRAINED = sorted(_MODELS - {"digits-cnn"}, key=str)
_OF_PICTURES = sorted(name for name, row in MODELS.items() if name in _MODELS and not row.takes_ids)
_AT_REST = ("gpu_tail_energy_j", "gpu_idle_power_before_w", "gpu_idle_power_after_w")
_TIMES = ("latency_mean_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "cpu_cores_ratio",
          "peak_host_bytes", "peak_device_bytes", "gpu_energy_j", "gpu_net_energy_j", "cpu_energy_j",
          "cpu_energy_estimate_j")  # fmt: skip
_JOINED = ("gpu_slow_p95_energy_j", "gpu_slow_p99_energy_j", "system_energy_j", "cpu_energy_share_ratio")
_IN_USE = ("cpu_utilisation_ratio", "gpu_utilisation_ratio", "module_energy_j")
_PRODUCTS = ("gpu_energy_delay_js", "cpu_energy_delay_js", "module_energy_delay_js")
_OF_NODE = ("node_energy_per_sample_j", "node_energy_delay_js")
_REPLAYED = ("tensorrt", "torch-graph")
# Where iterations of these are no replays, but calls.
_CALLS_OF_REPLAYED: tuple[Mapping[str, Any], ...] = (
    {"transfers": True},
    {"fed": True},
    *({"path": path} for path in ("python", "hf", "rust", "go_rust")),
)
_CALLED = sorted(set(_NOT_REPLAYED) - {"native"})
_GRAPH = ("enqueue_p50_ms", "latency_depth1_p50_ms", "latency_depth1_p99_ms")

_ON_NEITHER = ("fp8", "int8+fp16", "int8+bf16", "fp8+fp16", "fp8+bf16", "amp-fp16", "amp-bf16")
# Where a backend of onnxruntime does not execute a precision. Of two that fit a case, the first counts.
_BACKENDS: tuple[tuple[str, str | None, Mapping[str, Any], tuple[str, ...]], ...] = (
    ("tensorrt", None, {"provider": "tensorrt"}, ("fp8+fp16",)),
    ("cpu", None, {"provider": "cpu"}, ("bf16", "fp8+fp16")),
    ("cpu", None, {"device": "cpu"}, ("bf16", "fp8+fp16")),
    ("cpu", "laptop", {}, ("tf32", "fp16", "bf16", *_ON_NEITHER)),
    ("cuda", "server", {}, ("int8", *_ON_NEITHER)),
)
_CODES = tuple(
    Change(
        why="one reason has one code: the plan's side said `in_onnxruntime` and the run `on_cuda` of the same",
        answer="unsupported",
        stored=f"no_{precision}_in_onnxruntime",
        now=f"no_{precision}_on_{backend}",
        where={"runtime": "onnxruntime", **where},
        machine=machine,
    )
    for backend, machine, where, precisions in _BACKENDS
    for precision in precisions
)

# What was said of a case on the laptop before its path was looked at.
_BEFORE_PATHS = (
    "no_training",
    "no_gpu",
    "no_bf16_in_torch",
    "no_bf16_in_onnxruntime",
    "no_fp8+fp16_in_onnxruntime",
    *(f"no_int8_in_{runtime}" for runtime in ("torch", "torch-compile", "torch-graph")),
    *(f"no_fp8+fp16_in_{runtime}" for runtime in ("torch", "torch-compile", "torch-graph")),
)

_FLOATING = (None, "tf32", "fp16", "bf16", "amp-fp16", "amp-bf16")
_LOWERED = ("fp16", "bf16", "int8", "int8+fp16", "int8+bf16", "fp8", "fp8+fp16", "fp8+bf16")
STORED_RECIPE_VERSION = 8  # whose digests the answers have

# The metrics of a case are now those that its runs store (tests/workloads/test_yields.py).
CHANGES: tuple[Change, ...] = (
    *(
        change
        for workload in ("infer", "train", "h2d", "tokenize", "noop")
        for change in _yields("idle windows tell them", _AT_REST, workload=workload, idle_window_s=None)
    ),
    *_yields("noop measures itself", _TIMES, workload="noop"),
    *_yields("accuracy times nothing", ("peak_host_bytes", "peak_device_bytes"), gone=True, workload="accuracy"),
    *(
        change
        for model in ("tinylm-small", "tinylm-large")
        for change in _yields("tokenize opens a model", ("model_bytes",), workload="tokenize", model=model)
    ),
    *_yields("its session compiles", ("compile_s",), workload="tokenize", runtime="onnxruntime"),
    *_yields("with transfers no graph is replayed", _GRAPH, gone=True, transfers=True),
    *(
        change
        for workload, runtime in (
            ("infer", "tensorrt"),
            ("infer", "onnxruntime"),
            ("infer", "torch-tensorrt"),
            ("tokenize", "onnxruntime"),
            ("infer", "torch"),
            ("infer", "torch-compile"),
            ("infer", "torch-graph"),
            ("tokenize", "torch"),
        )
        for change in _yields("its runtime tells its kernels", KERNELS, workload=workload, runtime=runtime)
    ),
    *(
        change
        for workload in ("infer", "train", "h2d", "tokenize", "noop")
        for change in _yields("the GPU's slow iterations, and both sensors", _JOINED, workload=workload)
    ),
    *(
        change
        for workload in ("infer", "train", "h2d", "tokenize", "noop")
        for change in _yields("what is in use, and the rails of a module", _IN_USE, workload=workload)
    ),
    *(
        change
        for workload in ("infer", "train", "tokenize")
        for change in _yields("the rails of a module", ("module_energy_per_sample_j",), workload=workload)
    ),
    *(
        change
        for workload in ("infer", "train", "h2d", "tokenize", "noop")
        for change in _yields("the counter of a node", ("node_energy_j",), workload=workload)
    ),
    *(
        change
        for where in (
            *({"workload": "infer", "runtime": runtime} for runtime in _CALLED),
            *(
                {"workload": "infer", "runtime": runtime, **calls}
                for runtime in _REPLAYED
                for calls in _CALLS_OF_REPLAYED
            ),
            {"workload": "infer", "runtime": "tensorrt", "launch": "enqueue", "transfers": None},
            *({"workload": workload} for workload in ("train", "h2d", "tokenize", "noop")),
        )
        for change in _yields("the speed of the core that calls", ("core_probe_mean_ms",), **where)
    ),
    *(
        change
        for workload in ("infer", "train", "tokenize")
        for change in _yields("the counter of a node", _OF_NODE, workload=workload)
    ),
    *(
        change
        for workload in ("infer", "train", "tokenize")
        for change in _yields("energy times latency", _PRODUCTS, workload=workload)
    ),
    *(
        change
        for where in (
            {"workload": "train"},
            {"workload": "tokenize"},
            *({"workload": "infer", "model": model} for model in ("tinylm-small", "tinylm-large", "distilbert")),
        )
        for change in _yields(
            "both sensors",
            ("system_energy_per_token_j", "module_energy_per_token_j", "node_energy_per_token_j"),
            **where,
        )
    ),
    *(
        Change(
            why="a missing package comes before what a runtime does not do, and a path's package is one, too",
            answer="unsupported",
            stored=stored,
            now="no_go_rust",
            where={"path": "go_rust"},
            machine="laptop",
        )
        for stored in _BEFORE_PATHS
    ),
    *_CODES,
    Change(why="`fixed_batch` is a new factor, of files", answer="idle", stored=None, now="fixed_batch"),
    *(
        Change(why="labelled arrays are new, and no stored case has some", answer="idle", stored=None, now=name)
        for name in ("task", "output")
    ),
    *(
        Change(why="inference is calibrated on labelled arrays", answer="idle", stored=None, now="data", where=where)
        for where in (
            *({"workload": "infer", "precision": precision} for precision in _FLOATING),
            {"workload": "infer", "quantiser": "qat"},
        )
    ),
    *(
        Change(why="only pictures of folders are cropped, resized and normalised", answer="idle", stored=None, now=name)
        for name in ("crop_share", "interpolation", "normalisation")
    ),
    *(
        Change(why="training takes images, where its model does", answer="idle", stored=None, now=name, where=where)
        for name, where in (
            ("image_limit", {"workload": "train"}),
            *(("images", {"workload": "train", "precision": precision}) for precision in _FLOATING),
        )
    ),
    *(
        Change(why="weights are trained in a choice of precisions", answer="idle", stored=None, now=name, where=where)
        for name in ("trained_in", "training_seed")
        for where in (
            *({"model": model, "checkpoint": None} for model in _UNTRAINED),
            {"workload": "train", "checkpoint": None},
        )
    ),
    *(
        Change(why="pictures have no tokens", answer="idle", stored=None, now="seq_len", where={"model": model})
        for model in _OF_PICTURES
    ),
    Change(why="solvers are new", answer="idle", stored=None, now="solver"),
    Change(why="weights alone are stored in blocks", answer="idle", stored=None, now="block_size"),
    *(
        Change(why="stacks and heads are new, and nothing else has these factors", answer="idle", stored=None, now=name)
        for name in ("block_type", "depth", "width", "heads", "dispatch", "head_rates_hz")
    ),
    *(
        Change(
            why="`inputs` is a new factor, and a path feeds its own ids",
            answer="idle",
            stored=None,
            now="inputs",
            where={"workload": "infer", "model": model, **fed},
        )
        for model in ("tinylm-small", "tinylm-large")
        for fed in ({"fed": True}, *({"path": path} for path in PATHS if path != "none"))
    ),
    *(
        Change(
            why=f"`{name}` is a new factor, of int8 and fp8",
            answer="idle",
            stored=None,
            now=name,
            where={"precision": precision},
        )
        for precision in _FLOATING
        for name in ("scheme", "range", "granularity", "placement", "keep_error_max")
    ),
    Change(why="qat places no pairs", answer="idle", stored=None, now="placement", where={"quantiser": "qat"}),
    *(
        Change(
            why="only int8 has integer codes", answer="idle", stored=None, now="range", where={"precision": precision}
        )
        for precision in ("fp8", "fp8+fp16", "fp8+bf16")
    ),
    *(
        change
        for workload in ("infer", "accuracy")
        for runtime in ("onnxruntime", "tensorrt")
        for precision in _LOWERED
        for change in _yields(
            "how far a file is from FP32", AGREEMENT, workload=workload, runtime=runtime, precision=precision
        )
    ),
    *(
        Change(why="copies in several streams are new", answer="idle", stored=None, now="streams", where=where)
        for where in ({"pinned": None}, {"pinned": True, "non_blocking": None})
    ),
    *(
        Change(why="a cache is emptied between replays alone", answer="idle", stored=None, now="cache", where=where)
        for where in (
            *({"workload": workload} for workload in ("accuracy", "noop", "h2d", "tokenize", "train")),
            *({"runtime": runtime} for runtime in _NOT_REPLAYED),
            *({"path": path} for path in PATHS if path != "none"),
            {"fed": True},
            {"launch": "enqueue"},
            {"transfers": True},
            {"arrivals": "fixed"},
            {"arrivals": "poisson"},
        )
    ),
    *_yields("what the memory of a step is for", (*STEP_PARTS, STEP_PEAK), workload="train"),
    *_yields("a scaled loss skips steps", ("skipped_steps_count",), workload="train", precision="amp-fp16"),
    *(
        Change(
            why="training in BF16 everywhere is new, and what else it cannot do is then told",
            answer="unsupported",
            stored="no_bf16_in_torch",
            now=now,
            where={"workload": "train", "precision": "bf16", "power_limit_w": watts},
            machine=machine,
        )
        for machine, watts, now in (
            ("laptop", 100, "no_gpu"),
            ("laptop", 300, "no_gpu"),
            ("server", 100, "setting_out_of_range"),
            ("server", 300, None),
            (None, None, None),
        )
    ),
)


def expected(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The stored answers with every change that is about this case."""
    found = dict(entry["answers"])
    for change in CHANGES:
        if all(entry["factors"].get(name) == value for name, value in change.where.items()):
            found[change.answer] = change.applied(found[change.answer])
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_every_case_gets_the_answers_that_were_stored(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "RECIPE_VERSION", STORED_RECIPE_VERSION)
    different = []
    for entry in GROUPS[group]:
        now = answers(case_of(entry["factors"]))
        different += [
            (entry["factors"], name, {"stored": value, "now": now[name]})
            for name, value in expected(entry).items()
            if now[name] != value
        ]
    assert different == []


def test_every_change_changes_something() -> None:
    entries = [entry for group in GROUPS.values() for entry in group]
    for change in CHANGES:
        about = [e["answers"] for e in entries if all(e["factors"].get(k) == v for k, v in change.where.items())]
        assert any(change.applied(found[change.answer]) != found[change.answer] for found in about), change.why
