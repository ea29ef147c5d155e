# SPDX-License-Identifier: Apache-2.0
"""Rows through JSON: those of today, and one of each kind that was stored at 23 November 2026 and stays."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from pybench.catalogue.catalogue import BUILT_IN, Row
from pybench.catalogue.metrics import Metric
from pybench.catalogue.models import Model
from pybench.catalogue.runtimes import Runtime
from pybench.catalogue.stored import row_from_json, row_to_json
from pybench.catalogue.workloads import Workload

STORED: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data/stored-rows.json").read_text())
OWN: list[Row] = [row for table in BUILT_IN._tables() for row in table.values()]


@pytest.mark.parametrize("row", OWN, ids=lambda row: f"{type(row).__name__}-{row.name}")
def test_a_row_comes_back_from_json(row: Row) -> None:
    assert row_from_json(json.loads(json.dumps(row_to_json(row)))) == row


def test_rows_that_an_earlier_pybench_stored_are_read() -> None:
    rows = [row_from_json(stored) for stored in STORED]
    assert {type(row) for row in rows} == {Workload, Runtime, Model, Metric}
    for stored, row in zip(STORED, rows, strict=True):
        assert known_part(row_to_json(row), stored) == stored


def known_part(now: Any, stored: Any) -> Any:
    """What a row says now of the properties that were stored; later ones, of rows inside it, too, are left out."""
    if isinstance(stored, dict) and isinstance(now, dict):
        return {name: known_part(now[name], value) for name, value in stored.items()}
    if isinstance(stored, list) and isinstance(now, list) and len(now) == len(stored):
        return [known_part(*pair) for pair in zip(now, stored, strict=True)]
    return now


def test_a_property_that_is_not_stored_has_its_default() -> None:
    stored = {"row": "metric", "name": "acme_bytes", "group": "memory and size", "unit": "byte", "better": "lower",
              "label": "Acme", "meaning": "bytes", "rests_on": None}  # fmt: skip
    row = row_from_json(stored)
    assert isinstance(row, Metric)
    assert (row.scale, row.of, row.is_counted) == ("ratio", None, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row": "factor"}, "unknown kind: 'factor'"),
        ({"flavour": "mint"}, "resnet50 has unknown properties: flavour"),
        ({"outputs": "many"}, "resnet50.outputs has another type than the property: 'many'"),
        ({"kind": "smell"}, "resnet50.kind has another type"),
        ({"multiply_adds": float("nan")}, "resnet50.multiply_adds is nan, which is no finite number"),
        ({"training_rate": float("inf")}, "resnet50.training_rate is inf"),
        ({"shape": [3, "wide"]}, "resnet50.shape has another type"),
    ],
)
def test_a_row_that_is_malformed_is_refused_with_its_place(change: dict[str, object], message: str) -> None:
    stored = {**row_to_json(BUILT_IN.models["resnet50"]), **change}
    with pytest.raises(ValueError, match=message):
        row_from_json(stored)


@pytest.mark.parametrize(
    "name", ["", "rows/s", "../../x", "scan\n", "scan,one", "<b>x</b>", "rows@5ms", "Rows", "9rows"]
)
@pytest.mark.parametrize("kind", ["workload", "runtime", "model", "metric"])
def test_a_name_that_is_no_part_of_the_name_of_a_file_is_refused(kind: str, name: str) -> None:
    """A campaign of someone else is read as well, and figures are files with such names."""
    stored = next(row for row in STORED if row["row"] == kind)
    with pytest.raises(ValueError, match=rf"the name {re.escape(repr(name))} is not of a to z, 0 to 9"):
        row_from_json({**stored, "name": name})


def test_names_of_metrics_are_words_as_columns_are() -> None:
    stored = {row["row"]: row for row in STORED}
    assert row_from_json({**stored["model"], "name": "acme-net.v2"}).name == "acme-net.v2"
    with pytest.raises(ValueError, match="the name 'acme-rows' is not of a to z, 0 to 9, _, or"):
        row_from_json({**stored["metric"], "name": "acme-rows"})


def test_a_row_without_a_property_that_has_no_default_is_refused() -> None:
    stored = row_to_json(BUILT_IN.models["resnet50"])
    del stored["head"]
    with pytest.raises(ValueError, match="resnet50 lacks properties: head"):
        row_from_json(stored)


def test_a_row_takes_the_place_of_one_of_its_name() -> None:
    other = Model(name="mlp", kind="vector", build="acme:mlp", input="vectors", outputs=3, head="w", multiply_adds=1.0)
    catalogue = BUILT_IN.with_rows([other])
    assert catalogue.models["mlp"] is other
    assert list(catalogue.models) == list(BUILT_IN.models)
    assert catalogue.added() == (other,)
    assert BUILT_IN.models["mlp"].build == "pybench.models.mlp:Mlp"


def test_rows_of_pybench_itself_are_not_copied() -> None:
    assert BUILT_IN.added() == ()
    assert BUILT_IN.with_rows([]) is BUILT_IN
    assert copy.deepcopy(BUILT_IN) is BUILT_IN
    assert pickle.loads(pickle.dumps(BUILT_IN)) is BUILT_IN
    assert len(pickle.dumps(BUILT_IN)) < 100
