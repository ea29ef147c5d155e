# SPDX-License-Identifier: Apache-2.0
"""From how a worker ended to an outcome. An exit status of 0 is not enough for `ok`, nor a message for `oom`.

Evidence, strongest first:

- the runner's own decision (timeout, interrupted)
- the worker's report (ok, a framework's out-of-memory exception, unsupported, a file that it cannot use)
- the signal that ended it
- the kernel's counters
- the exit status
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.campaign import layout
from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason, read_reason
from pybench.catalogue.validities import VALIDITIES
from pybench.errors import PybenchError, UsageError
from pybench.runner.process import WorkerEnd

KILLED_STATUS = 137  # 128 + SIGKILL: how a shell or a container reports it


@dataclass(frozen=True, slots=True)
class Outcome:
    """`name`: one of `layout.OUTCOMES`; `reason`: why a run has no result, None for `ok`."""

    name: str
    reason: Reason | None = None

    @property
    def why(self) -> str:
        """The reason in words, else its code; empty where there is none."""
        return "" if self.reason is None else self.reason.detail or self.reason.stored_code


def judge(end: WorkerEnd) -> Outcome:
    """The outcome of a worker that has ended."""
    if end.stopped == "timeout":
        return Outcome("timeout", Reason(Cause.TIMEOUT, f"stopped after {end.wall_s:.1f} s, because of --timeout"))
    if end.stopped == "interrupted":
        return Outcome("interrupted", Reason(Cause.ASKED_TO_STOP))
    report = end.report or {}
    if report.get("outcome") in ("oom", "unsupported", "crashed", "build_failed"):
        return outcome_from_json(report)
    if end.signal == "SIGKILL" or end.exit_status == KILLED_STATUS:
        if end.oom_evidence:
            return Outcome("oom", Reason(Cause.KILLED_FOR_MEMORY, f"SIGKILL while {end.oom_evidence} rose"))
        return Outcome("killed", Reason(Cause.SIGKILL, "somebody or something outside pybench killed the worker"))
    if end.signal in ("SIGTERM", "SIGINT", "SIGHUP"):
        return Outcome("killed", Reason(Cause.SIGNAL, names=(end.signal,)))
    if end.signal is not None:
        return Outcome("crashed", Reason(Cause.SIGNAL, f"{end.signal}: see {layout.STDERR}", (end.signal,)))
    if report.get("outcome") == "ok":
        if end.exit_status == 0:
            return Outcome("ok")
        said = f"exit status {end.exit_status} after the work was done: see {layout.STDERR}"
        return Outcome("crashed", Reason(Cause.EXIT_STATUS, said))
    said = f"exit status {end.exit_status} without a report: {end.last_words or 'it wrote nothing'}"
    return Outcome("crashed", Reason(Cause.NO_REPORT, said))


def outcome_from_json(stored: Mapping[str, Any]) -> Outcome:
    """What a worker's report or a run.json says of its outcome."""
    code, detail = stored.get("reason"), stored.get("detail")
    return Outcome(stored["outcome"], None if code is None else read_reason(code, detail or ""))


def run_record(case_id: str, block: int, attempt: int, outcome: Outcome, end: WorkerEnd | None) -> dict[str, Any]:
    """The content of run.json (docs/formats/rundir.md). Without a worker (`end` None) nothing was measured."""
    report = (end.report or {}) if end else {}
    unknown: dict[str, Any] = {name: {"value": None, "reasons": []} for name in VALIDITIES}
    parts, reason = dict(report.get("parts_s", {})), outcome.reason
    if end and parts:
        parts["harness"] = max(0.0, end.wall_s - sum(parts.values()))
    return {
        "case_id": case_id,
        "block": block,
        "attempt": attempt,
        "outcome": outcome.name,
        "reason": None if reason is None else reason.stored_code,
        "detail": None if reason is None else reason.detail or None,
        "exit_status": end.exit_status if end else None,
        "signal": end.signal if end else None,
        "valid": {**unknown, **(report.get("valid", {}) if outcome.name == "ok" else {})},
        "cautions": report.get("cautions", []) if outcome.name == "ok" else [],
        "started_utc": end.started_utc if end else None,
        "finished_utc": end.finished_utc if end else None,
        "duration_s": end.wall_s if end else None,
        "parts_s": parts,
    }


def no_result(end: WorkerEnd) -> PybenchError | None:
    """What keeps this from being a result of the case, as the error to show; not stored. Either there is no room on the
    disk for one, or the worker never began."""
    report = end.report or {}
    if report.get("outcome") == "usage_error":
        return UsageError(report["message"], hint=report.get("hint"))
    if end.launch_failure is not None and not report and end.stopped is None:
        return end.launch_failure
    return None
