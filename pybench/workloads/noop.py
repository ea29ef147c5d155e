# SPDX-License-Identifier: Apache-2.0
"""Does nothing, as a run: what remains is the harness. Its iterations are calls of an empty function."""

from __future__ import annotations

from pybench.workloads.recording import Amounts, record
from pybench.workloads.result import Request, Result, Verdict


def run(request: Request) -> Result:
    result = record(request.case, _nothing, Amounts(), None)
    result.labels["device"] = "cpu"
    result.valid["timing"] = Verdict(None, ("nothing_is_timed",))
    return result


def _nothing() -> None:
    pass
