# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.documents import PAGES
from pybench.catalogue.metrics import METRICS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_rows_say(name: str) -> None:
    written = (DOCS / name).read_text()
    assert written == PAGES[name](), "run: python -m pybench.catalogue.documents docs"


def test_every_metric_and_caution_has_a_section() -> None:
    metrics, cautions = PAGES["metrics.md"](), PAGES["cautions.md"]()
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
