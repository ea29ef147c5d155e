# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema: the committed copy is the generated one, and it agrees with what is loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pybench.case.factors import FACTORS
from pybench.catalogue.criteria import CRITERIA
from pybench.document import read_document
from pybench.plan import Plan, plan_schema

ROOT = Path(__file__).parents[2]
PLANS = [*sorted((ROOT / "plans").glob("*.yaml")), ROOT / "pybench/plan/starter.yaml"]


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    return jsonschema.Draft202012Validator(plan_schema())


def test_the_schema_names_its_dialect_and_every_factor_and_criterion() -> None:
    schema = plan_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "pybench plan"
    entry = schema["$defs"]["Entry"]["properties"]
    assert set(FACTORS) < set(entry)
    assert set(schema["$defs"]["Accept"]["properties"]) == set(CRITERIA)
    drawn = schema["$defs"]["Curve"]["properties"]["metric"]["anyOf"][0]["enum"]
    published = schema["$defs"]["References"]
    at_bounds = {"goodput_ratio", "goodput_samples_per_s", "slo_attainment_delta", "slo_attainment"}
    assert {"speedup", "latency_mean_ms"} < set(drawn)
    assert not at_bounds & set(drawn)
    assert {"speedup", "latency_mean_ms"} | at_bounds < set(published["properties"])
    for name, factor in FACTORS.items():
        assert entry[name]["description"].startswith(factor.meaning)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_every_plan_of_ours_is_valid_by_the_schema(validator: Any, path: Path) -> None:
    validator.validate(read_document(path).root.plain())


@pytest.mark.parametrize(
    ("entry", "valid"),
    [
        ({"workload": "noop"}, True),
        ({"workload": ["noop", "h2d"], "threads": [1, None]}, True),
        ({"model": "path/to/own.onnx"}, True),
        ({"affinity": 3}, True),
        ({"zip": {"batch": [1, 2]}, "include": [{"batch": 1}], "exclude": None}, True),
        ({"workload": "of-a-package", "acme.depth": [1, 2]}, True),
        ({"workload": "no name"}, False),
        ({"precision": "of-a-package"}, False),
        ({"threads": 0}, False),
        ({"threads": []}, False),
        ({"batch": 1.5}, False),
        ({"pinned": "on"}, False),
        ({"bath": 1}, False),
        ({"include": {"batch": [1, 2]}}, False),
    ],
)
def test_names_types_and_ranges_are_in_the_schema(validator: Any, entry: dict[str, Any], valid: bool) -> None:
    plan = {"schema_version": 1, "name": "x", "matrix": [entry]}
    assert validator.is_valid(plan) == valid


def test_the_schema_and_the_loader_agree_on_shape(validator: Any, problems: Callable[..., list[str]]) -> None:
    plan = {"schema_version": 1, "name": "x y", "matrix": [], "criteria": {"accept": {"speedup_min": 0}}, "seed": -1}
    places = {".".join(str(step) for step in error.absolute_path) for error in validator.iter_errors(plan)}
    assert places == {"name", "matrix", "criteria", "seed"}
    assert len(problems(json.dumps(plan), whole=True)) == 5  # of criteria both: no baseline, and a bound out of range


def test_a_plan_without_fault_is_valid_by_both(validator: Any, load: Callable[..., Plan]) -> None:
    plan = {
        "schema_version": 1,
        "name": "x",
        "matrix": [{"workload": "noop", "threads": [1, 2]}],
        "require": ["timing"],
    }
    validator.validate(plan)
    assert len(load(json.dumps(plan), whole=True).cases) == 2
