# SPDX-License-Identifier: Apache-2.0
"""Every plan that ships with pybench is run: each of its cases once, then checked and reported.

The default one as it is, for its runs have to be valid; the others with few iterations.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pybench.cli import main
from pybench.dataset import load

ROOT = Path(__file__).parents[2]
PLANS = sorted((ROOT / "plans").glob("*.yaml"))
FOR_A_GPU = {"fp8-vgg16", "precision-all", "precision-resnet50", "runtimes"}  # whole plans: nothing runs without one
SMALL = ["tinylm-small", "tinylm-large"]  # an entry with both is tested with the small one, unless it excludes cells
DEFAULT = "quickstart"
FEW = {"warmup_iterations": 1, "iterations": 3, "energy_window_s": 0}


def shortened(path: Path) -> list[str]:
    """`--set` options that cut every count of iterations, energy window and pair of models, wherever it stands."""
    plan = YAML(typ="safe", pure=True).load(path)
    places = [
        ("defaults", plan.get("defaults", {})),
        *((f"matrix.{i}", entry) for i, entry in enumerate(plan["matrix"])),
    ]
    changes = [f"{place}.{name}={count}" for place, entry in places for name, count in FEW.items() if name in entry]
    pairs = [place for place, entry in places if entry.get("model") == SMALL and "exclude" not in entry]
    changes += [f"{place}.model={SMALL[0]}" for place in pairs]
    return [word for change in changes for word in ("--set", change)]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_plan_runs_covers_itself_and_is_reported(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = str(tmp_path / "campaign")
    changes = [] if path.stem == DEFAULT else shortened(path)
    status = main(["run", str(path), "--out", where, "--repetitions", "1", *changes])
    outcomes = set(load(where).runs["outcome"])
    assert outcomes <= {"ok", "unsupported"}, capsys.readouterr()
    assert ("ok" in outcomes) is (status == 0)
    assert "ok" in outcomes or path.stem in FOR_A_GPU
    assert main(["check", where]) == 0
    assert main(["report", where]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(Path(where) / "report" / "index.html")
