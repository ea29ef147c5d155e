# SPDX-License-Identifier: Apache-2.0
"""What a workload may hand over: anything that readers of a campaign would refuse fails the run, by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybench.campaign.layout import SUMMARY
from pybench.catalogue.metrics import METRICS
from pybench.errors import UnknownNameError
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Result
from pybench.worker.storing import store

METRIC = "latency_mean_ms"
TIMING = {"timing": {"begin_ns": 0, "end_ns": 9, "iterations": 7}}
SEVEN = {"iterations": {"gap_ns": np.arange(7), "length_ns": np.ones(7)}}


def refused(result: Any, folder: Path) -> str:
    with pytest.raises((TypeError, ValueError, UnknownNameError)) as caught:
        store(result, folder, METRICS, is_run=True)
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
