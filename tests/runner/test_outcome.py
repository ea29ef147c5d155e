# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pybench.launcher import FileAccess, LocalLauncher
from pybench.runner.interruption import Interruption
from pybench.runner.outcome import judge, no_result, outcome_from_json, run_record
from pybench.runner.process import WorkerEnd, run_worker

OK = WorkerEnd(0, None, {"outcome": "ok"}, None, "", "", 1.0, None)


@pytest.mark.parametrize(
    ("changes", "name", "reason"),
    [
        ({}, "ok", None),
        ({"exit_status": None, "signal": "SIGSEGV"}, "crashed", "SIGSEGV"),  # at its end, after its report
        ({"exit_status": 120}, "crashed", "exit_status"),
        ({"report": None}, "crashed", "no_report"),
        ({"report": None, "exit_status": None, "signal": "SIGKILL"}, "killed", "SIGKILL"),
        ({"report": None, "exit_status": 137}, "killed", "SIGKILL"),
        ({"report": None, "exit_status": 137, "oom_evidence": "cgroup"}, "oom", "killed_for_memory"),
        ({"report": None, "exit_status": 1, "oom_evidence": "cgroup"}, "crashed", "no_report"),
        ({"report": {"outcome": "oom", "reason": "torch"}, "exit_status": 1}, "oom", "torch"),
        ({"stopped": "timeout"}, "timeout", "timeout"),
        ({"stopped": "interrupted", "signal": "SIGTERM", "exit_status": None}, "interrupted", "asked_to_stop"),
    ],
)
def test_an_end_is_judged_by_its_strongest_evidence(changes: dict[str, Any], name: str, reason: str | None) -> None:
    outcome = judge(replace(OK, **changes))
    assert (outcome.name, outcome.reason and outcome.reason.stored_code) == (name, reason)


@pytest.mark.parametrize("code", ["no_gpu", "no_int8_in_torch", "acme_no_licence", "torch.OutOfMemoryError"])
@pytest.mark.parametrize("detail", [None, "why: so"])
def test_what_a_worker_says_is_stored_in_its_words_and_read_again(code: str, detail: str | None) -> None:
    end = replace(OK, report={"outcome": "unsupported", "reason": code, "detail": detail}, exit_status=1)
    record = run_record("a case", 1, 1, judge(end), end)
    assert (record["reason"], record["detail"]) == (code, detail)
    assert outcome_from_json(record) == judge(end)


def test_a_worker_without_a_report_is_told_with_its_last_words() -> None:
    outcome = judge(replace(OK, report=None, exit_status=1, last_words="ValueError: no"))
    assert outcome.reason is not None
    assert outcome.reason.detail == "exit status 1 without a report: ValueError: no"


BROKEN_LATER = """
import runpy, sys
sys.modules["pybench.worker.job"] = None
del sys.argv[0]
runpy.run_module("pybench.worker", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("program", ["import runpy; runpy.run_module('pybench.absent')", BROKEN_LATER])
def test_an_installation_that_lacks_a_part_is_no_crash_of_a_case(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen

    def start_broken(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return start([command[0], "-c", program, *command[3:]], **options)

    monkeypatch.setattr(subprocess, "Popen", start_broken)
    with Interruption() as interruption:
        words = [str(tmp_path), "--campaign", str(tmp_path)]
        end = run_worker(LocalLauncher(), words, tmp_path, FileAccess(), 120.0, interruption, lambda: None)
    error = no_result(end)
    assert error is not None
    assert "pybench." in error.message
    assert error.hint == "install pybench again, then run again"


def test_a_worker_ended_by_a_signal_without_a_name_has_crashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def signal_itself(command: object, **options: Any) -> subprocess.Popen[bytes]:
        return start([sys.executable, "-c", "import os; os.kill(os.getpid(), 40)"], **options)

    monkeypatch.setattr(subprocess, "Popen", signal_itself)
    with Interruption() as interruption:
        end = run_worker(LocalLauncher(), [], tmp_path, FileAccess(), 120.0, interruption, lambda: None)
    assert judge(end).name == "crashed"
    assert end.signal == "SIGRTMIN+6"
