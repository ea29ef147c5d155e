# SPDX-License-Identifier: Apache-2.0
"""The section of architectures, read from its files and its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.cli import main
from pybench.dataset import load
from pybench.report import write_report
from tests.report.pages import rows_of, section
from tests.support.architectures import build_stacks
from tests.support.campaigns import build_typical


def test_a_campaign_without_stacks_has_no_such_section(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=1).path))
    assert section(page, "architectures") == ""
    assert not (page.parent / "tables" / "batch-friction.csv").exists()


def test_the_section_says_which_pairs_compiling_reverses(tmp_path: Path) -> None:
    page = write_report(load(build_stacks(tmp_path / "c").path))
    shown = section(page, "architectures")
    assert "reverses the order of architectures against torch: of 2 pairs, 1 reversed, 1 kept, 0 undecided" in shown
    assert "conv / mlp" in shown
    orders = rows_of(page, "architecture-order")
    assert [(row["first"], row["second"], row["change"]) for row in orders] == [
        ("conv", "mlp", "reversed"),
        ("conv", "mlp", "kept"),
    ]
    assert [row["setting"] for row in orders] == ["batch 1", "batch 4"]
    assert float(orders[0]["eager_lower"]) > 1 > float(orders[0]["compiled_upper"])
    frictions = {row["case"]: float(row["batch_friction"]) for row in rows_of(page, "batch-friction")}
    assert frictions["torch, mlp"] == pytest.approx(1.1, rel=0.02)
    assert frictions["torch-compile, conv"] == pytest.approx(0.5, rel=0.02)


def test_noise_is_called_undecided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyse", str(build_stacks(tmp_path / "c", noise=0.8, repetitions=4).path)]) == 0
    assert "is not shown to reverse the order of architectures against torch" in capsys.readouterr().out
