# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import inspect
import pickle
import re
from typing import Any

from pybench import errors
from pybench.catalogue.causes import Cause
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.errors import PlanError, Problem, PybenchError, RefusedValue, RefusedValuesError


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


def test_wrong_values_are_told_with_their_factor_and_hint() -> None:
    one, other = (
        RefusedValue("model", "timm/none", "there is none", "see its list"),
        RefusedValue("checkpoint", "a", "odd"),
    )
    assert str(RefusedValuesError([one])) == "`model`: there is none\n  hint: see its list"
    assert str(RefusedValuesError([one, other])) == "`model`: there is none (see its list)\n`checkpoint`: odd"


def test_every_caution_is_stored_with_an_advice() -> None:
    for code in CautionCode:
        stored = Caution(code, "detail", "latency_mean_ms").as_json()
        assert stored.pop("advice")
        assert stored == {"code": code.code, "detail": "detail", "metric": "latency_mean_ms"}


def test_every_error_passes_from_one_process_to_another_whole() -> None:
    for name in ("runtimes.native_process", "preprocess.ring"):  # which have kinds of their own
        importlib.import_module(f"pybench.{name}")
    kinds = all_kinds(PybenchError)
    assert {"PlanError", "PluginError", "UnknownNameError", "UnsupportedError", "RingError"} <= {
        kind.__name__ for kind in kinds
    }
    for kind in kinds:
        error = kind(**{name: _GIVEN[name] for name in inspect.signature(kind).parameters})
        passed = pickle.loads(pickle.dumps(error))
        assert type(passed) is kind
        assert str(passed) == str(error)
        assert (passed.args, vars(passed)) == (error.args, vars(error))


_GIVEN: dict[str, Any] = {
    "message": "it broke", "hint": "mend it", "file": "plan.yaml", "problems": [Problem("late", 9, 1)],
    "values": [RefusedValue("model", "timm/none", "timm has no model", "choose another")],
    "distribution": "acme", "what": "adds nothing", "version": "1", "names": ("a",), "kind": "metric",
    "name": "speed", "known": ["spee"], "code": Cause.NO_PACKAGE, "evidence": "exit status",
}  # fmt: skip


def all_kinds(root: type[PybenchError]) -> list[type[PybenchError]]:
    """A kind and all below it that pybench itself has."""
    below = [kind for child in root.__subclasses__() for kind in all_kinds(child)]
    return [kind for kind in (root, *below) if kind.__module__.startswith("pybench.")]
