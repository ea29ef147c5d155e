# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from pybench.catalogue.metrics import METRICS, Metric
from pybench.catalogue.rows import Rows
from pybench.catalogue.validities import VALIDITIES
from pybench.errors import UnknownNameError

BY_NAME = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


@BY_NAME
def test_a_row_comes_back_from_json(metric: Metric) -> None:
    assert Metric(**json.loads(json.dumps(asdict(metric)))) == metric


@BY_NAME
def test_a_row_speaks_of_validities_and_metrics_that_there_are(metric: Metric) -> None:
    assert metric.rests_on in (None, *VALIDITIES)
    assert (metric.of is None) is (metric.per is None)
    if metric.of is not None:
        total = METRICS[metric.of]
        assert total.rests_on == metric.rests_on, "a share of a number is no more valid than the number"
        assert total.per is None
    assert (metric.energy is None) is (metric.delay is None)
    if metric.energy is not None and metric.delay is not None:
        assert (METRICS[metric.energy].unit, METRICS[metric.delay].unit, metric.unit) == ("J", "ms", "J s")
        assert set(metric.validities) == {*METRICS[metric.energy].validities, *METRICS[metric.delay].validities}


@BY_NAME
def test_the_name_ends_in_the_unit(metric: Metric) -> None:
    words = {"1": "ratio", "%": "percent", "nat": "nats", "1/s": "per_s", "MB/s": "mb_per_s", "GB/s": "gb_per_s",
             "J/GB": "per_gb_j", "J s": "js", "1/J": "per_s_per_w"}  # fmt: skip
    if metric.name in (
        "perplexity",
        "l1_error",
        "linf_error",
    ):  # neither ratios nor counts: the unit is that of the data
        assert metric.unit == "1"
        return
    assert metric.name.endswith("_" + words.get(metric.unit, metric.unit).lower())


@BY_NAME
def test_a_meaning_can_be_read_alone(metric: Metric) -> None:
    """A report prints the meanings of those metrics that occur, so none may point at the one before."""
    assert not metric.meaning.startswith("the same")
    assert metric.meaning[0].islower() or metric.meaning[0].isdigit()
    assert not metric.meaning.endswith(".")


def test_labels_tell_metrics_apart() -> None:
    labels = [metric.label for metric in METRICS.values()]
    assert len(set(labels)) == len(labels)


def test_a_name_that_no_row_has_is_an_error_of_its_own() -> None:
    with pytest.raises(UnknownNameError, match="no metric 'latency_men_ms'") as found:
        METRICS["latency_men_ms"]
    assert found.value.hint == "did you mean latency_mean_ms?"
    with pytest.raises(UnknownNameError) as found:
        METRICS["zzz"]
    assert (found.value.hint or "").startswith("one of latency_mean_ms, ")
    assert "zzz" not in METRICS
    assert METRICS.get("zzz") is None


def test_two_rows_of_one_name_are_refused() -> None:
    row = METRICS["build_s"]
    with pytest.raises(ValueError, match="two rows"):
        Rows("metric", (row, row))
