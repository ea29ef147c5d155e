# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import inspect
import re

from pybench import errors
from pybench.catalogue.cautions import Caution, CautionCode, caution_from_json
from pybench.errors import PlanError, Problem, PybenchError


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = dict(re.findall(r"^ *[│├└─ ]*(\w+Error)\s+(\d)\s", errors.__doc__ or "", re.MULTILINE))
    found = {
        name: str(kind.exit_code)
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, PybenchError)
    }
    assert drawn == found


def test_a_plan_error_lists_all_problems_in_the_order_of_the_file() -> None:
    error = PlanError(
        "plan.yaml", [Problem("late", 9, 1), Problem("early", 2, 5, "nearest: batch"), Problem("nowhere")]
    )
    assert str(error).splitlines() == [
        "plan.yaml: nowhere",
        "plan.yaml:2:5: early (nearest: batch)",
        "plan.yaml:9:1: late",
    ]


def test_every_caution_survives_its_stored_form_and_gives_advice() -> None:
    for code in CautionCode:
        caution = Caution(code, "detail", "latency_mean_ms")
        assert caution_from_json(caution.as_json()) == caution
        assert caution.as_json()["advice"]
