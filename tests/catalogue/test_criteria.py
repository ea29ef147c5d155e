# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from pybench.catalogue.criteria import CRITERIA, CriterionKind
from pybench.catalogue.metrics import METRICS


@pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
def test_a_criterion_judges_the_effect_that_its_metric_has(criterion: CriterionKind) -> None:
    """An effect is one number of a metric: a ratio or a difference. A criterion of the other kind would judge it as if
    it were its own."""
    assert criterion.kind in ("absolute", METRICS[criterion.metric].scale)
