# SPDX-License-Identifier: Apache-2.0
"""Every ready plan runs small (small.yaml) through the command line: `make plans`. Each kind of case runs, twice."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ruamel.yaml import YAML

from pybench.case import Case
from pybench.catalogue.cautions import CautionCode
from pybench.dataset import load
from pybench.plan import load_plan
from tests.plans.ready import PLANS, ROOT, named, path_of

SMALL = YAML(typ="safe", pure=True).load(Path(__file__).with_name("small.yaml"))
FOR_A_GPU = {  # only a GPU runs them
    "autotune", "cold-cache", "fp8-vgg16", "inputs-resnet50", "precision-all", "precision-resnet50", "tasks-gpu",
    "gcbench/h2d",
}  # fmt: skip
PYBENCH = Path(sysconfig.get_path("scripts")) / "pybench"
FAR_FROM_CHANCE = 60.0  # Top-1 in %, of ten classes whose commonest has 19 %
LONGEST_S = 600  # of one command; the slowest takes some 200 s on two cores
IN_ORDER = [*map(path_of, SMALL["first"]), *(path for path in PLANS if named(path) not in SMALL["first"])]


def changes_of(path: Path) -> list[str]:
    """The `--set` expressions that make this plan small."""
    plan = YAML(typ="safe", pure=True).load(path)
    places = [
        ("defaults", plan.get("defaults", {})),
        *((f"matrix.{number}", entry) for number, entry in enumerate(plan["matrix"])),
    ]
    changes = {
        f"{place}.{name}": value
        for place, entry in places
        for name, value in SMALL["everywhere"].items()
        if name in entry
    }
    changes |= SMALL["plans"][named(path)]
    return [f"{place}={json.dumps(value)}" for place, value in changes.items()]


def kinds_of(cases: Iterable[Case]) -> set[tuple[Any, ...]]:
    """What tells kinds of cases apart: workload, runtime, precision, path, and ways of training and copying."""
    return {
        (
            case.workload, case.runtime, case.precision, case.path, case.fed,
            case.gradient_checkpointing, case.accumulation > 1, case.fused_optimiser, case.direction, case.streams > 1,
        )
        for case in cases
    }  # fmt: skip


def pybench(*arguments: str | Path) -> tuple[int, str]:
    """The exit code of one command, and what it printed."""
    done = subprocess.run(
        [PYBENCH, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_S,
        env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_every_ready_plan_has_a_small_form() -> None:
    assert set(SMALL["plans"]) == {named(path) for path in PLANS}
    assert sorted(IN_ORDER) == PLANS


@pytest.mark.parametrize("path", PLANS, ids=named)
def test_the_small_form_has_every_kind_of_case_of_the_plan(path: Path) -> None:
    assert kinds_of(load_plan(path, changes_of(path)).cases) == kinds_of(load_plan(path).cases)


@pytest.mark.plans
@pytest.mark.timeout(3 * LONGEST_S)
@pytest.mark.parametrize("path", IN_ORDER, ids=named)
def test_every_plan_runs_checks_and_reports(path: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    options = [word for change in changes_of(path) for word in ("--set", change)]
    status, said = pybench("run", path, "--out", campaign, "--repetitions", "2", *options)
    assert status in (0, 1), said
    dataset = load(campaign)
    outcomes = set(dataset.runs["outcome"])
    assert outcomes <= {"ok", "unsupported"}, said
    warned = dataset.cautions.filter(dataset.cautions["code"] == CautionCode.NO_BETTER_THAN_WITHOUT_A_NETWORK.code)
    top1 = dataset.metric_rows("case_id").filter(pl.col("metric") == "top1_percent")
    failed = {case_id for case_id in warned["case_id"] if dataset.cases[case_id].precision == "fp32"}
    failed -= set(
        top1.filter(pl.col("value") > FAR_FROM_CHANCE)["case_id"]
    )  # naive Bayes is as good as a network on the texts
    assert not failed, "a network that is trained for a plan works; INT8 after four samples need not"
    assert status == (0 if "ok" in outcomes else 1), said
    assert "ok" in outcomes or named(path) in FOR_A_GPU, said

    status, said = pybench("check", campaign)
    assert status == 0, said
    status, said = pybench("report", campaign)
    assert status == 0, said
    assert said.splitlines()[-1] == str(campaign / "report" / "index.html")
