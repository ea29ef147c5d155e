# SPDX-License-Identifier: Apache-2.0
"""A model that its library does not have is an error before the first run."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from pybench.case import Case
from pybench.errors import InputError
from pybench.machine import Machine

KNOWN = Case(workload="infer", model="torchvision/r3d_18", runtime="torch", device="cpu")
UNKNOWN = KNOWN.with_factors(model="torchvision/r3d_81")
_HERE = {"available": True}
FACTS = {"machine": _HERE, "torch": {**_HERE, "cuda_devices": []}, "torchvision": _HERE}


@pytest.mark.process
@pytest.mark.skipif(find_spec("torchvision") is None, reason="the extra `zoo` is not installed")
def test_a_worker_is_asked_for_the_names() -> None:
    with pytest.raises(InputError, match="torchvision has no model 'r3d_81'") as raised:
        Machine(FACTS).open_files([KNOWN, UNKNOWN], {KNOWN.id, UNKNOWN.id}, {})
    assert raised.value.hint is not None
    assert "torchvision/r3d_18" in raised.value.hint


def test_no_library_is_asked_for_cases_that_have_their_runs_or_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybench.machine.opening._ask", lambda *_: pytest.fail("a worker was asked"))
    assert Machine(FACTS).open_files([UNKNOWN], set(), {}).refused == {}
    without = {**FACTS, "torchvision": {"available": False, "why": "No package"}}
    machine = Machine(without).open_files([UNKNOWN], {UNKNOWN.id}, {})
    refusal = machine.unsupported(UNKNOWN)
    assert refusal is not None
    assert refusal.reason.stored_code == "no_torchvision"
