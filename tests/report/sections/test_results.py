# SPDX-License-Identifier: Apache-2.0
"""The table of what was made: one row an artefact in making order, failures with their reason, nothing invented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import RECIPE, SCHEMA_VERSION, SUMMARY
from pybench.campaign.recipe import Recipe
from pybench.campaign.storage import write_json
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.validities import VALIDITIES
from pybench.dataset import load
from pybench.errors import CorruptError
from pybench.measure.quantity import Quantity
from pybench.report.sections.results.artefacts import artefacts_table
from pybench.report.tables import Table, to_csv
from tests.support.campaigns import CampaignBuilder, typical_cases

ONNX = Recipe("onnx", (("model", "resnet50"), ("checkpoint_sha256", "f" * 64), ("seed", 0)))
ENGINE = Recipe(
    "engine",
    (("model", "resnet50"), ("precision", "fp16"), ("workspace_bytes", None)),
    (("onnx", ONNX),),
)


def write_made(
    builder: CampaignBuilder,
    recipe: Recipe,
    metrics: dict[str, float],
    labels: dict[str, Any],
    outcome: str = "ok",
    detail: str | None = None,
) -> RunDirectory:
    """An artefact's folder as the worker and the runner leave it."""
    making = RunDirectory(builder.campaign.artefact(recipe.digest), recipe.digest, 0, 1)
    making.path.mkdir(parents=True)
    write_json(making.file(RECIPE), {"schema_version": SCHEMA_VERSION, "recipe": recipe.as_json()})
    if outcome == "ok":
        stored = {name: Quantity(value=value).as_json(METRICS[name].unit) for name, value in metrics.items()}
        summary = {"schema_version": SCHEMA_VERSION, "metrics": stored, "windows": {}, "labels": labels}
        write_json(making.file(SUMMARY), summary)
    making.complete(
        {
            "case_id": recipe.digest, "block": 0, "attempt": 1, "outcome": outcome, "reason": None, "detail": detail,
            "valid": {name: {"value": None, "reasons": []} for name in VALIDITIES}, "duration_s": 12.5,
        }
    )  # fmt: skip
    return making


@pytest.fixture
def builder(tmp_path: Path) -> CampaignBuilder:
    return CampaignBuilder(tmp_path / "campaign", typical_cases()[:1], repetitions=1)


def table_of(builder: CampaignBuilder) -> Table:
    return artefacts_table(load(builder.path))


def test_what_was_built_stands_below_what_it_was_built_from(builder: CampaignBuilder) -> None:
    found = {"precision_realised": "fp16: 54 of 54"}
    write_made(builder, ENGINE, {"build_s": 55.0, "gpu_energy_j": 9000.0, "model_bytes": 51e6}, found)
    write_made(builder, ONNX, {"model_bytes": 102e6}, {"weights": "random, seed 0"})
    lines = to_csv(table_of(builder)).splitlines()
    assert lines == [
        "kind,parameters,outcome,seconds,gpu_energy_j,mb,found",
        'onnx,"resnet50, seed 0",ok,12.5,,102.0,"random, seed 0"',
        'engine,"resnet50, precision fp16",ok,55.0,9000.0,51.0,fp16: 54 of 54',
    ]


def test_what_could_not_be_built_says_why(builder: CampaignBuilder) -> None:
    write_made(builder, ENGINE, {}, {}, "build_failed", "no supported formats")
    (row,) = table_of(builder).rows
    assert (row[2].text, row[2].tone, row[2].note) == ("build_failed", "bad", "no supported formats")
    assert row[5].number is None


def test_half_made_and_failed_ones_of_before(builder: CampaignBuilder) -> None:
    """A hidden folder is a making that goes on; a renamed one failed before a retry and is kept."""
    builder.campaign.artefacts.mkdir()
    (builder.campaign.artefacts / f".{ONNX.digest}.attempt-01").mkdir()
    assert table_of(builder).rows == ()
    made = write_made(builder, ONNX, {}, {}, "build_failed", "no memory")
    made.path.rename(made.path.with_name(f"{ONNX.digest}.failed-01"))
    assert [row[2].text for row in table_of(builder).rows] == ["build_failed"]


def test_a_truncated_artefact_is_named(builder: CampaignBuilder) -> None:
    making = write_made(builder, ONNX, {}, {})
    making.file(RECIPE).write_text("{")
    with pytest.raises(CorruptError, match=r"recipe\.json"):
        load(builder.path)
