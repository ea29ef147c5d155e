# SPDX-License-Identifier: Apache-2.0
"""Weights that pybench trains, and how their scores are stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybench.artefacts import checkpoint
from pybench.artefacts.request import MakeRequest
from pybench.campaign.layout import SUMMARY
from pybench.catalogue.metrics import METRICS
from pybench.models.training import fluid_states
from pybench.worker.storing import store


@pytest.mark.slow
def test_scores_of_a_training_that_diverged_are_stored_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fluid_states, "LEARNING_RATE", 1e30)
    recipe = {"model": "c2p-small", "trained_on": "fluid-states", "seed": 0}
    store(checkpoint.make(MakeRequest("checkpoint", recipe, {}, {}), tmp_path / "weights.pt"), tmp_path, METRICS)
    stored = json.loads((tmp_path / SUMMARY).read_bytes())["metrics"]
    for name in ("l1_error", "linf_error"):
        assert stored[name]["value"] is None
        assert stored[name]["reason"] == "not_finite: nan after training: it diverged"
    assert (tmp_path / "weights.pt").exists()
