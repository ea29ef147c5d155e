# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from documents.pages import PAGES, ROOT
from documents.tables import TABLES, filled
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.metrics import METRICS


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_what_the_rows_say(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == PAGES[path](), "run: make documents"


@pytest.mark.parametrize("marks", ["", "begin", "end", "begin end begin end"])
def test_a_page_has_one_place_for_each_table(marks: str) -> None:
    places = dict.fromkeys(TABLES, "begin end") | {"criteria": marks}
    page = "".join(f"<!-- {name}: {mark} -->\n" for name, place in places.items() for mark in place.split())
    with pytest.raises(ValueError, match="the table of criteria has no place, or several"):
        filled(page)


def test_a_table_tells_what_runtimes_do_on_a_cpu_on_a_gpu_and_with_weights_alone() -> None:
    lines = TABLES["runtimes"]().splitlines()
    on_gpu = "`fp32`, `tf32`, `fp16`, `bf16`"
    for line in (
        f"| `onnxruntime`, `provider: cuda` | runs with bound inputs and outputs | none | {on_gpu} | `int8`, `int4` |",
        f"| `torch` | eager operators; channels_last on a GPU | `fp32`, `bf16` | {on_gpu} | none |",
    ):
        assert line in lines
    assert "amp" not in TABLES["runtimes"]()
    (engine,) = (line for line in lines if line.startswith("| `tensorrt` |"))
    assert "`fp8`" in engine
    assert "int4" not in engine


def test_a_table_tells_what_an_entry_has_to_set() -> None:
    lines = TABLES["workloads"]().splitlines()
    assert "| `sensitivity` | `model`, `precision: int8` | `onnxruntime` on a CPU |" in lines
    assert "| `tokenize` | `path`, if no `model` is given | any, by default `torch` |" in lines


def test_every_metric_and_caution_has_a_section() -> None:
    metrics, cautions = PAGES["docs/metrics.md"](), PAGES["docs/cautions.md"]()
    for metric in METRICS.values():
        assert f"\n### `{metric.name}`\n" in metrics
        assert metric.meaning in metrics
    for caution in CautionCode:
        assert f"\n## `{caution.code}`\n" in cautions


@pytest.mark.parametrize("caution", CautionCode, ids=lambda caution: caution.code)
def test_an_advice_begins_with_what_to_do(caution: CautionCode) -> None:
    verbs = "calibrate close compare enlarge give improve keep let lock lower "
    verbs += "make name put raise read reserve run set treat"
    assert caution.advice.split()[0] in verbs.split()
