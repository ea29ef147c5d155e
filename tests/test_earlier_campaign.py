# SPDX-License-Identifier: Apache-2.0
"""A campaign of an earlier pybench: it is read, reported and replayed, and its numbers are the same.

tests/support/earlier_campaign.py says how it was made. What pybench says in addition does no harm.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.directory import CampaignDirectory
from tests.support.earlier_campaign import INTERVALS, NUMBERS, read, run, said_of, unpack

# What is said otherwise on purpose: a part of the path -> why.
_TOTAL = "windows of different work are not compared by their totals, but by the energy of a sample or token"
CHANGED = {
    **dict.fromkeys(
        (
            f"/effects/{side}_energy{form}_j/"
            for side, form in (
                ("gpu", ""),
                ("gpu_net", ""),
                ("cpu", ""),
                ("cpu", "_estimate"),
            )
        ),
        _TOTAL,
    ),
    "/cpu_cores_ratio/": "processor time does not rest on the energy sensor, whose short windows excluded it",
    **dict.fromkeys(
        ("/effects/cpu_energy_per_sample_estimate_j/why_none", "/effects/compile_s/why_none"),
        "a case that ran without a metric is not called unmeasured",
    ),
    "/smallest_detectable": "it follows from the method of intervals, and is compared with them",
}
# The paired difference over images is one over units of any task: as stored -> of now.
RENAMED = re.compile(r"(/effects/[^/]+)/images\b"), r"\1/units"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("earlier") / "campaign")


@pytest.fixture(scope="module")
def said(campaign: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    return said_of(campaign)


def different(stored: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Path -> (stored, now) where they differ, but for `CHANGED`."""
    found = {path: now.get(re.sub(*RENAMED, path), "is not there") for path in stored}
    return {
        path: (value, found[path])
        for path, value in stored.items()
        if found[path] != value and not any(part in path for part in CHANGED)
    }


def test_values_counts_validity_and_reasons_are_those_of_then(said: tuple[dict[str, Any], dict[str, Any]]) -> None:
    stored = read(NUMBERS)
    assert len(stored) > 5_000
    assert different(stored, said[0]) == {}


def test_intervals_are_those_of_then_or_were_changed_with_a_reason(said: tuple[dict[str, Any], dict[str, Any]]) -> None:
    stored = read(INTERVALS)
    assert stored["why"]
    assert different(stored["values"], said[1]) == {}, "changed on purpose? See tests/support/earlier_campaign.py"


def test_every_deliberate_change_is_one(said: tuple[dict[str, Any], dict[str, Any]]) -> None:
    stored = read(NUMBERS)
    for part in CHANGED:
        assert any(said[0].get(path) != value for path, value in stored.items() if part in path), part


def test_it_has_every_channel_of_a_gpu_and_invalid_energies(campaign: Path) -> None:
    names = {path.name for found in CampaignDirectory(campaign).runs() for path in found.path.iterdir()}
    assert {"power_samples.csv", "power_polled.csv", "energy_counter.csv", "clocks.csv", "predictions.csv"} <= names
    assert "energy: window_too_short, sensor_assumed" in {path.rpartition("/")[2] for path in read(NUMBERS)}


@pytest.mark.slow
def test_it_is_reported_published_and_replayed(campaign: Path, tmp_path: Path) -> None:
    run("publish", campaign, "--archive", tmp_path / "campaign.zip")
    run("fetch", tmp_path / "campaign.zip", "--out", tmp_path / "fetched")
    assert run("replay", tmp_path / "fetched").startswith("equal: ")
    (table,) = (tmp_path / "fetched" / "report").rglob("metrics.csv")
    with table.open(newline="") as file:
        shown = {(row["case_id"], row["metric"]): row["mean"] for row in csv.DictReader(file)}
    stored = read(NUMBERS)
    cases = {path: value for path, value in stored.items() if path.startswith("analysis/cases/")}
    means = {path: value for path, value in cases.items() if path.endswith("/estimate/value")}
    assert len(means) > 100
    for path, value in means.items():
        _, _, case, _, metric, *_ = path.split("/")
        if f"/{metric}/" in CHANGED:
            continue
        assert float(shown[cases[f"analysis/cases/{case}/case_id"], metric]) == value
