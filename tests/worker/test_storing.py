# SPDX-License-Identifier: Apache-2.0
"""What a workload may hand over: anything that readers of a campaign would refuse fails the run, by its name."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybench.campaign.layout import SUMMARY
from pybench.case import Case
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.plugins import Plugin
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.errors import UnknownNameError
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Result
from pybench.worker.storing import store

INFER = Case(workload="infer", model="mlp", runtime="torch")
METRIC = "latency_mean_ms"
TIMING = {"timing": {"begin_ns": 0, "end_ns": 9, "iterations": 7}}
SEVEN = {"iterations": {"gap_ns": np.arange(7), "length_ns": np.ones(7)}}


def refused(result: Any, folder: Path) -> str:
    with pytest.raises((TypeError, ValueError, UnknownNameError)) as caught:
        store(result, folder, METRICS, INFER)
    assert not (folder / SUMMARY).exists(), "nobody may take what was refused for a result"
    return str(caught.value)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, "what the workload returned is of type NoneType, not a Result"),
        (Result(metrics={METRIC: 2.5}), f"metric {METRIC} is of type float, not a Quantity"),
        (Result(metrics={METRIC: Quantity(value=True)}), f"{METRIC}: value is of type bool, not a number"),
        (Result(metrics={METRIC: Quantity(value="2")}), f"{METRIC}: value is of type str, not a number"),
        (Result(metrics={METRIC: Quantity(value=np.ones(2))}), f"{METRIC}: value is of type ndarray, not a number"),
        (Result(metrics={METRIC: Quantity(value=1.0, u_standard=np.nan)}), f"{METRIC}: u_standard is nan"),
        (Result(metrics={METRIC: Quantity()}), f"{METRIC} has neither a value nor a reason"),
        (Result(windows={"timing": 7}), "window timing is of type int, not a dict of begin_ns, end_ns and iterations"),
        (Result(windows=TIMING), "iterations.csv has no rows, but the result counts 7"),
        (Result(windows=TIMING, tables={"iterations": {"gap_ns": np.arange(6)}}), "iterations.csv has 6 rows, but"),
        (Result(labels={"share": float("nan")}), "label share: Out of range float values are not JSON compliant"),
        (Result(labels={"share": np.float32(1)}), "label share: Object of type float32 is not JSON serializable"),
        (Result(tables={"iteration": {}}), "table of a run"),
    ],
)  # fmt: skip
def test_what_readers_would_refuse_fails_the_run_by_its_name(tmp_path: Path, result: Any, said: str) -> None:
    assert said in refused(result, tmp_path)


def test_the_making_of_an_artefact_keeps_no_tables(tmp_path: Path) -> None:
    trained = Result(metrics={"top1_percent": Quantity(value=90.0, samples=450)})
    assert "predictions.csv has no rows, but the result counts 450" in refused(trained, tmp_path)
    store(trained, tmp_path, METRICS)
    assert (tmp_path / SUMMARY).exists()


def test_scalars_of_numpy_are_numbers_and_any_label_may_be_named_fit(tmp_path: Path) -> None:
    metrics = {
        METRIC: Quantity(value=np.float32(2.5), u_standard=np.float64(0.5)),
        "model_bytes": Quantity(value=np.int64(9)),
    }
    store(Result(metrics=metrics, windows=TIMING, tables=SEVEN, labels={"fit": "good"}), tmp_path, METRICS)
    stored = json.loads((tmp_path / SUMMARY).read_text())["metrics"]
    assert (stored[METRIC]["value"], stored[METRIC]["u_standard"], stored["model_bytes"]["value"]) == (2.5, 0.5, 9)


# --- metrics of a package --------------------------------------------------------------------------------------------

ACME = Plugin(name="acme", distribution="acme-bench", version="1", package="acme_bench", sha256="0" * 64)
ROWS = replace(METRICS["text_mb_per_s"], name="rows_per_s", plugin=ACME)
JOULES = replace(METRICS["gpu_energy_per_sample_j"], name="joules_a_row", plugin=ACME)
YIELDS = ("latency_mean_ms", "gpu_energy_j", "peak_device_bytes", ROWS.name, JOULES.name)
SCAN = Case(
    workload="scan",
    catalogue=BUILT_IN.with_rows(
        [ROWS, JOULES, replace(BUILT_IN.workloads["noop"], name="scan", plugin=ACME, yields=YIELDS)]
    ),
)
ONE = Quantity(value=1.0)


def store_scan(folder: Path, **metrics: Quantity) -> None:
    store(Result(metrics=metrics), folder, SCAN.catalogue.metrics, SCAN)


def test_what_a_package_yields_may_lack_what_sensors_tell_and_have_what_pybench_measures(tmp_path: Path) -> None:
    store_scan(tmp_path, latency_mean_ms=ONE, rows_per_s=ONE, latency_p99_ms=ONE, peak_host_bytes=ONE)
    assert json.loads((tmp_path / SUMMARY).read_text())["metrics"]["rows_per_s"]["value"] == 1.0


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"latency_mean_ms": ONE}, "scan yields rows_per_s, and its result does not have it: return it, or a Quantity"),
        ({"rows_per_s": ONE}, "scan yields latency_mean_ms, and its result does not have it"),
        ({"rows_per_second": ONE}, "scan returned rows_per_second, which its row does not yield: name it in `yields`"),
        ({"top1_percent": ONE}, "scan returned top1_percent, which its row does not yield: name it in `yields`"),
    ],
)
def test_a_package_returns_what_its_row_yields_and_nothing_else(
    tmp_path: Path, metrics: dict[str, Quantity], said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        store_scan(tmp_path, **metrics)
    assert not (tmp_path / SUMMARY).exists()


def test_a_promised_value_that_is_missing_has_a_reason(tmp_path: Path) -> None:
    unknown = Quantity(reasons=(Reason(ReasonCode.OTHER, names=("empty_table",)),))
    store_scan(tmp_path, latency_mean_ms=ONE, rows_per_s=unknown)
    assert json.loads((tmp_path / SUMMARY).read_text())["metrics"]["rows_per_s"]["reason"] == "empty_table"
