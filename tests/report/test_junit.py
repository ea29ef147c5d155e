# SPDX-License-Identifier: Apache-2.0
"""JUnit XML of a comparison: what `tests/cli/test_reading.py` cannot reach."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from pybench.analysis.findings.comparison import compare
from pybench.case import Case
from pybench.dataset import load
from pybench.report.junit import comparison_junit
from tests.support.campaigns import CampaignBuilder

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")


def test_what_only_a_has_is_skipped_and_a_strange_name_stays_xml(tmp_path: Path) -> None:
    case = INFER.with_factors(model="files/odd\x07<&>.onnx")
    for side, latency in (
        ("a", {"latency_p50_ms": 1.0, "gpu_energy_per_sample_j": 2.0}),
        ("b", {"latency_p50_ms": 1.0}),
    ):
        builder = CampaignBuilder(tmp_path / side, [case], repetitions=3)
        for block in (1, 2, 3):
            builder.run(case, block, {name: value + block / 100 for name, value in latency.items()})
    text = comparison_junit(compare(load(tmp_path / "a"), load(tmp_path / "b")))
    tests = {test.get("name"): test for test in ElementTree.fromstring(text).iter("testcase")}
    assert list(tests) == ["latency_p50_ms", "gpu_energy_per_sample_j"]
    assert "files/odd?<&>.onnx" in str(tests["latency_p50_ms"].get("classname"))
    skipped = tests["gpu_energy_per_sample_j"].find("skipped")
    assert skipped is not None
    assert str(skipped.get("message")).startswith("not compared: ")
