# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest

from pybench.case import Case, case_from_json, case_to_json, catalogue_of, distinct_titles
from pybench.case.factors import FACTORS, factor_names, idle_factors
from pybench.case.yields import metrics_of
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.metrics import Metric
from pybench.catalogue.models import Model
from pybench.catalogue.options import Option
from pybench.catalogue.workloads import Workload
from pybench.errors import UnknownNameError


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
        assert factor.workloads(), f"no workload `takes` the group {factor.group}"
        assert factor.kind != "choice" or factor.choices


# --- rows that others add --------------------------------------------------------------------------------------------

ECHO = Workload(
    name="acme-echo", label="Echo", meaning="an echo", module="acme.echo", takes=("run",), model="optional",
    yields=("acme_echoes",),
)  # fmt: skip
ECHOES = Metric(
    name="acme_echoes", group="time", unit="1", better="higher", label="Echoes", meaning="echoes", rests_on="timing"
)
ACME_MLP = Model(
    name="acme-mlp", kind="vector", build="acme:mlp", input="vectors", outputs=3, head="w", multiply_adds=1.0
)
WITH_ACME = BUILT_IN.with_rows([ECHO, ECHOES, ACME_MLP])


def test_a_catalogue_is_no_part_of_identity() -> None:
    plain, other = Case(workload="noop"), Case(workload="noop", catalogue=WITH_ACME)
    assert (plain, plain.id, hash(plain)) == (other, other.id, hash(other))
    assert "catalogue" not in repr(other)
    assert other.with_factors(batch=2).catalogue is WITH_ACME


def test_a_stored_case_keeps_the_rows_that_pybench_lacks_and_no_others() -> None:
    stored = json.loads(json.dumps(case_to_json(Case(workload="acme-echo", catalogue=WITH_ACME))))
    assert [row["name"] for row in stored["rows"]] == ["acme-echo", "acme_echoes"]
    case = case_from_json(stored)
    assert case.workload_row == ECHO
    assert metrics_of(case) == {"acme_echoes"}
    assert case.catalogue.metrics["acme_echoes"] == ECHOES
    assert case_from_json(stored).catalogue is case.catalogue
    assert "rows" not in case_to_json(Case(workload="noop"))
    assert "rows" not in case_to_json(Case(workload="noop", catalogue=WITH_ACME))


def test_a_stored_row_counts_although_pybench_has_one_of_its_name() -> None:
    earlier = Model(name="mlp", kind="vector", build="acme:mlp", input="v", outputs=3, head="w", multiply_adds=1.0)
    case = Case(workload="infer", model="mlp", runtime="torch", catalogue=BUILT_IN.with_rows([earlier]))
    read = case_from_json(case_to_json(case))
    assert read.model_row == earlier
    assert read.id == Case(workload="infer", model="mlp", runtime="torch").id


def test_the_catalogue_of_several_cases_has_the_rows_of_each() -> None:
    cases = [Case(workload="noop"), Case(workload="acme-echo", catalogue=WITH_ACME)]
    assert catalogue_of(cases).workloads["acme-echo"] is ECHO
    assert catalogue_of(cases[:1]) is BUILT_IN


@pytest.mark.parametrize("name", ["workload", "runtime"])
def test_a_name_without_a_row_is_said_when_its_row_is_asked_for(name: str) -> None:
    case = Case(**{"workload": "infer", "runtime": "torch", name: "acme"})
    with pytest.raises(UnknownNameError, match=f"no {name} 'acme'"):
        getattr(case, f"{name}_row")


def test_a_value_is_asked_for_by_the_name_of_its_factor() -> None:
    assert Case(workload="noop", batch=3).value("batch") == 3
    with pytest.raises(UnknownNameError, match="no factor 'bach'"):
        Case(workload="noop").value("bach")


# --- options ---------------------------------------------------------------------------------------------------------

DEEP = Workload(
    name="acme-deep", label="Deep", meaning="depth", module="acme.deep", takes=("run",), model="none",
    options=(
        Option(name="acme.depth", kind="integer", default=2, minimum=1, meaning="how deep"),
        Option(name="acme.how", kind="choice", default="slow", choices=("slow", "fast"), meaning="how"),
    ),
)  # fmt: skip
WITH_DEEP = BUILT_IN.with_rows([DEEP])


def deep(**options: object) -> Case:
    return Case(workload="acme-deep", catalogue=WITH_DEEP).with_factors(**options)


def test_cases_that_only_the_protocol_tells_apart_have_distinct_titles() -> None:
    plain = Case(workload="noop")
    short, long, other = plain.with_factors(iterations=5), plain.with_factors(iterations=300), deep()
    titles = distinct_titles([short, long, other])
    assert short.title() == long.title() == "noop"
    assert titles == {short.id: "noop iterations=5", long.id: "noop iterations=300", other.id: other.title()}


def test_an_option_has_its_default_until_it_is_set() -> None:
    assert (deep().value("acme.depth"), deep(**{"acme.depth": 4}).value("acme.depth")) == (2, 4)
    assert deep(**{"acme.depth": 2}) == deep()
    assert deep(**{"acme.depth": 2}).id == deep().id
    assert deep(**{"acme.depth": 4}).id != deep().id
    assert deep(**{"acme.depth": 4, "acme.how": "fast"}).options == (("acme.depth", 4), ("acme.how", "fast"))
    assert deep(**{"acme.depth": 4}).title() == "acme-deep acme.depth=4"
    with pytest.raises(UnknownNameError, match=r"no option 'acme\.deph'"):
        deep(**{"acme.deph": 4})


def test_options_are_stored_and_read_with_their_rows() -> None:
    case = deep(**{"acme.depth": 4})
    stored = json.loads(json.dumps(case_to_json(case)))
    assert (stored["acme.depth"], stored["acme.how"]) == (4, "slow")
    assert case_from_json(stored) == case
    assert case_from_json(stored).value("acme.how") == "slow"
    with pytest.raises(ValueError, match=r"unknown factors: acme\.depth"):
        case_from_json({name: value for name, value in stored.items() if name not in ("rows", "case_id")})


def test_an_option_means_nothing_for_a_case_of_other_rows() -> None:
    plain = Case(workload="noop", catalogue=WITH_DEEP)
    assert idle_factors(plain) >= {"acme.depth", "acme.how"}
    assert not idle_factors(deep()) & {"acme.depth", "acme.how"}
    assert "acme.depth" not in plain.factors()
    with pytest.raises(UnknownNameError, match=r"no factor 'acme\.depth'"):
        plain.value("acme.depth")
    assert factor_names([plain]) == tuple(FACTORS)
    assert factor_names([plain, deep()]) == (*FACTORS, "acme.depth", "acme.how")


def test_training_is_fed_unless_a_case_says_otherwise_and_inference_is_not() -> None:
    train, infer = Case(workload="train", model="tinylm-small"), Case(workload="infer", model="tinylm-small")
    assert (train.fed, infer.fed) == (True, False)
    assert train.with_factors(fed=True).id == train.id
    assert infer.with_factors(fed=False).id == infer.id
    assert "fed" not in train.canonical_json()
    assert '"fed":false' in train.with_factors(fed=False).canonical_json()
    assert case_from_json(case_to_json(train.with_factors(fed=False))).fed is False


def test_training_that_was_stored_before_it_could_compute_alone_was_fed() -> None:
    """Then every case stored `fed: false`, and the id says what it meant."""
    train = Case(workload="train", model="tinylm-small", runtime="torch")
    stored = {**case_to_json(train), "fed": False}
    assert case_from_json(stored) == train
    text = Case(workload="train", model="tinylm-small", runtime="torch", path="rust")
    assert case_from_json({**case_to_json(text), "fed": False}) == text
    with pytest.raises(ValueError, match="does not fit its factors"):
        case_from_json({**stored, "batch": 3})
