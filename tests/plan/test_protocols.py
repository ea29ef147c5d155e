# SPDX-License-Identifier: Apache-2.0
"""Named protocols in a plan: one or several, what they need, and what is stored for the analysis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.catalogue.protocols import PAIRED_BLOCKS, PROTOCOLS, protocol_named
from pybench.plan import Plan, plan_schema, resolve

MATRIX = "  - {workload: infer, model: digits-cnn, runtime: onnxruntime, precision: [fp32, int8]}\n"
Load = Callable[..., Plan]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("paired-blocks", ("paired-blocks",)),
        ("welch-mann-whitney", ("paired-blocks", "welch-mann-whitney")),
        ("[welch-mann-whitney, paired-blocks]", ("paired-blocks", "welch-mann-whitney")),
        ("[welch-mann-whitney, welch-mann-whitney]", ("paired-blocks", "welch-mann-whitney")),
    ],
)
def test_a_protocol_adds_to_the_houses_own(load: Load, written: str, read: tuple[str, ...]) -> None:
    plan = load(MATRIX + f"protocol: {written}\n")
    assert plan.protocols == read
    assert parse_resolved_plan(resolve(plan, plan.cases)).protocols == read


def test_a_plan_that_asks_for_nothing_has_the_houses_own(load: Load) -> None:
    assert load(MATRIX).protocols == (PAIRED_BLOCKS,)


def test_a_campaign_that_stored_one_name_is_still_read(load: Load) -> None:
    plan = load(MATRIX)
    stored: dict[str, Any] = resolve(plan, plan.cases)
    for protocol, read in (({"analysis": PAIRED_BLOCKS}, (PAIRED_BLOCKS,)), ({}, ())):
        assert parse_resolved_plan({**stored, "protocol": protocol}).protocols == read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("protocol: welch-mann-whitny\n", "welch-mann-whitney`?"),
        ("protocol: []\n", "empty list"),
        ("protocol: bootstrap-mann-whitney\n", "bootstrap-mann-whitney requires `criteria` with a baseline"),
    ],
)
def test_what_is_wrong_with_a_protocol_is_said_at_its_place(
    problems: Callable[..., list[str]], text: str, said: str
) -> None:
    found = problems(MATRIX + text)
    assert len(found) == 1
    assert found[0].startswith("5:11: ")
    assert said in found[0]


def test_without_criteria_the_protocols_own_baseline_has_to_be_there(problems: Callable[..., list[str]]) -> None:
    found = problems(MATRIX.replace("[fp32, int8]", "[fp16, int8]") + "protocol: welch-mann-whitney\n")
    assert "compares with precision=fp32, and no case can be" in found[0]


def test_with_criteria_their_baseline_serves(load: Load) -> None:
    criteria = "criteria: {baseline: {precision: fp16}}\n"
    plan = load(MATRIX.replace("[fp32, int8]", "[fp16, int8]") + "protocol: bootstrap-mann-whitney\n" + criteria)
    assert plan.protocols[1] == "bootstrap-mann-whitney"


@pytest.mark.parametrize(
    ("protocol", "valid"),
    [("welch-mann-whitney", True), (["paired-blocks", "welch-mann-whitney"], True), ([], False), ("welch", False)],
)
def test_the_schema_takes_one_name_or_several(protocol: object, valid: bool) -> None:
    plan = {"schema_version": 1, "name": "x", "matrix": [{"workload": "noop"}], "protocol": protocol}
    assert jsonschema.Draft202012Validator(plan_schema()).is_valid(plan) == valid


def test_every_protocol_but_the_houses_own_says_what_threatens_it() -> None:
    for name, protocol in PROTOCOLS.items():
        assert protocol_named(name).name == name
        assert bool(protocol.threats) == bool(protocol.metrics) == (name != PAIRED_BLOCKS)
