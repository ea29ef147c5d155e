# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest

from pybench.case import Case, case_from_json, case_to_json
from pybench.case.factors import FACTORS


def test_the_id_is_the_sha256_of_the_canonical_json() -> None:
    """Worked by hand: printf '{"model":"resnet50",...}' | sha256sum. A change here orphans every run ever made."""
    case = Case(workload="infer", model="resnet50", runtime="onnxruntime", precision="int8")
    assert case.canonical_json() == (
        '{"model":"resnet50","precision":"int8","runtime":"onnxruntime","schema_version":1,"workload":"infer"}'
    )
    assert case.id == "11654e1dff06815024018f76d661cf9bc8b33392335242707fdcf53a40c22469"


def test_a_default_that_is_written_out_makes_no_other_case() -> None:
    assert Case(workload="noop", batch=1, path="none") == Case(workload="noop")
    assert "batch" not in Case(workload="noop", batch=1).canonical_json()


def test_an_edited_file_is_another_case() -> None:
    one = Case(workload="infer", model="own.onnx", sources=(("model", "a" * 64),))
    assert one.id != one.with_factors(sources=(("model", "b" * 64),)).id


def test_a_case_survives_its_stored_form() -> None:
    case = Case(workload="tokenize", path="rust", batch=8, corpus="own.txt", sources=(("corpus", "c" * 64),))
    assert case_from_json(json.loads(json.dumps(case_to_json(case)))) == case


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "schema version 2"),
        ({"flavour": "mint"}, "unknown factors: flavour"),
        ({"batch": 2}, "does not fit its factors"),
    ],
)
def test_a_stored_case_that_was_tampered_with_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        case_from_json({**case_to_json(Case(workload="noop")), **change})


def test_every_factor_says_what_it_means_and_where() -> None:
    for factor in FACTORS.values():
        assert factor.meaning
        assert factor.workloads
        assert factor.kind != "choice" or factor.choices
