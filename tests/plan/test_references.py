# SPDX-License-Identifier: Apache-2.0
"""`reference`: published values next to the bounds of a plan, each for the cases that it was published for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pybench.case.contrasts import from_json
from pybench.case.references import Reference
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.criteria import compared_of
from pybench.catalogue.metrics import METRICS
from pybench.plan import Plan, resolve

Load = Callable[..., Plan]
Problems = Callable[..., list[str]]

MATRIX = "  - {workload: infer, model: digits-cnn, runtime: onnxruntime, precision: [fp32, int8], batch: [1, 8]}\n"
SOURCE = 'source: "A paper, table 2"'


def declared(reference: str) -> str:
    return f"{MATRIX}criteria: {{baseline: {{precision: fp32}}, reference: {reference}}}\n"


def test_a_name_of_a_comparison_is_no_name_of_a_metric() -> None:
    assert compared_of(BUILT_IN).keys().isdisjoint(METRICS)


def test_values_are_read_with_their_cases(load: Load) -> None:
    text = declared(
        f"{{speedup: [{{value: 5, {SOURCE}, device: RTX 5090, where: {{batch: 8}}}}, "
        f"{{value: 4, {SOURCE}, over_cells: true}}], "
        f"latency_mean_ms: {{value: 2, {SOURCE}, where: {{batch: [1, 8]}}}}}}"
    )
    (contrast,) = load(text).contrasts
    common = {"row": METRICS["latency_mean_ms"], "source": "A paper, table 2"}
    assert contrast.reference == (
        Reference(
            name="speedup", kind="ratio", value=5.0, inverse=True, device="RTX 5090", where={"batch": (8,)}, **common
        ),
        Reference(name="speedup", kind="ratio", value=4.0, inverse=True, over_cells=True, **common),
        Reference(name="latency_mean_ms", kind="absolute", value=2.0, where={"batch": (1, 8)}, **common),
    )


def test_a_list_of_mappings_has_one_where_for_each(load: Load) -> None:
    text = declared(
        f"[{{where: {{batch: 1}}, speedup: {{value: 5, {SOURCE}}}, model_bytes_ratio: {{value: 0.5, {SOURCE}}}}}, "
        f"{{speedup: {{value: 6, {SOURCE}, where: {{batch: 8}}}}}}]"
    )
    (contrast,) = load(text).contrasts
    assert [(one.name, one.value, dict(one.where)) for one in contrast.reference] == [
        ("speedup", 5.0, {"batch": (1,)}),
        ("model_bytes_ratio", 0.5, {"batch": (1,)}),
        ("speedup", 6.0, {"batch": (8,)}),
    ]


def test_published_values_are_stored_with_the_plan_and_are_no_part_of_a_case(load: Load) -> None:
    bare = load(f"{MATRIX}criteria: {{baseline: {{precision: fp32}}}}\n")
    plan = load(declared(f"{{speedup: {{value: 5, {SOURCE}, where: {{batch: 8}}}}}}"))
    assert [case.id for case in plan.cases] == [case.id for case in bare.cases]
    assert "reference" not in resolve(bare, bare.cases)["criteria"][0]
    assert from_json(resolve(plan, plan.cases)["criteria"]) == plan.contrasts


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (f"{{speedup: {{value: 5, {SOURCE}, where: {{batch: 32}}}}}}", "5:101: `where` matches no compared case"),
        (f"{{speedup: {{value: 5, {SOURCE}, where: {{batch: 32}}}}}}", "(the compared cases have batch 1, 8)"),
        (
            f"{{speedup: {{value: 5, {SOURCE}, where: {{precision: fp32}}}}}}",
            "(the compared cases have precision int8)",
        ),
        (f"{{top1_delta_pp: {{value: 5, {SOURCE}}}}}", "5:68: `top1_delta_pp` needs top1_percent, which no case that"),
        (f"{{speedup: {{value: 0, {SOURCE}}}}}", "`value` of speedup takes a finite number above 0, not 0"),
        (f"{{latency_mean_ms: {{value: .nan, {SOURCE}}}}}", "`value` of latency_mean_ms takes a finite number above 0"),
        (f"{{speedup: {{value: fast, {SOURCE}}}}}", "`value` takes a number, not 'fast'"),
        ("{speedup: {value: 5}}", "`source` is missing (where it was published"),
        (f"{{speed: {{value: 5, {SOURCE}}}}}", "unknown key `speed` (did you mean `speedup`?)"),
        (f"{{goodput_ratio: {{value: 5, {SOURCE}}}}}", "5:68: `goodput_ratio` needs the bound that it was published"),
        (f"{{latency_mean_ms: {{value: 5, {SOURCE}, over_cells: true}}}}", "`over_cells` is for ratios"),
        ("{speedup: 5}", "`speedup` takes a list of mappings; not 5"),
    ],
)
def test_a_value_without_a_counterpart_is_refused_with_its_place(
    problems: Problems, reference: str, expected: str
) -> None:
    (found,) = problems(declared(reference))
    assert expected in found


def test_an_override_takes_published_values_of_its_cases_away(load: Load) -> None:
    text = declared(f"{{speedup: [{{value: 5, {SOURCE}, where: {{batch: 8}}}}, {{value: 4, {SOURCE}}}]}}")
    assert [one.value for one in load(text).contrasts[0].reference] == [5.0, 4.0]
    assert [one.value for one in load(text, ["matrix.0.batch=1"]).contrasts[0].reference] == [4.0]


def test_the_value_of_a_baseline_itself_can_be_published(load: Load) -> None:
    (contrast,) = load(declared(f"{{latency_mean_ms: {{value: 5, {SOURCE}, where: {{precision: fp32}}}}}}")).contrasts
    assert contrast.reference[0].kind == "absolute"
