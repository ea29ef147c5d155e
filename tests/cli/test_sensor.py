# SPDX-License-Identifier: Apache-2.0
"""`pybench sensor` as a user meets it: without a GPU, with stored profiles, and against a replayed board."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.cli import main
from pybench.cli.sensor_table import describe_profile
from pybench.machine import profiles
from pybench.measure import ASSUMED
from tests.measure.replay import SECOND_UUID, UUID
from tests.measure.replayed_board import SHORT_LOADS, install, write_board
from tests.measure.synthetic_sensor import Sensor

MEASURED = replace(
    ASSUMED, uuid="GPU-1", driver="580.1", name="A board", origin="measured", measured_at="2026-01-01T00:00:00Z",
    sample_delay_s=0.0035123, u_sample_delay_s=0.000061, u_counter_delay_s=0.00079, counter_delay_s=0.0097, steps=60,
    reasons=(Reason(ReasonCode.THROTTLED, "software power cap while it was measured"),), missing=("counter_tick_s",),
)  # fmt: skip


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(profiles.FOLDER_VARIABLE, str(tmp_path / "sensors"))
    return tmp_path / "sensors"


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_NVML_LIBRARY", "libabsent-nvml.so")


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("words", [[], ["measure"], ["measure", "--json"], ["measure", "--dry-run"], ["show"]])
def test_without_a_gpu_there_is_one_clear_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensor", *words]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: there is no GPU whose sensor could be measured: libabsent-nvml")
    assert "  hint: it needs an NVIDIA GPU" in printed.err


def test_the_group_names_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensor", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "..." not in shown.partition("Options:")[2]
    found = dict(re.findall(r"^  (\w+) +([A-Z].*(?:\n {4,}.*)*)", shown.partition("Commands:")[2], re.MULTILINE))
    assert set(found) == {"measure", "list", "show", "integrate"}
    assert all(summary.endswith(".") for summary in found.values())


def test_list_tells_what_is_stored_and_what_cannot_be_read(capsys: pytest.CaptureFixture[str], store: Path) -> None:
    assert main(["sensor", "list"]) == 0
    assert f"no profile in {store}" in capsys.readouterr().err
    profiles.store(MEASURED.as_json())
    (store / "zzz.json").write_text("{")
    assert main(["sensor", "list"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "GPU-1  A board, driver 580.1, 2026-01-01T00:00:00Z, 1 warnings"
    assert second.startswith(f"unreadable  {store}/zzz.json")
    assert main(["sensor", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": str(store), "profiles": [MEASURED.as_json()]}


@pytest.mark.usefixtures("no_gpu")
def test_a_stored_profile_of_another_machines_board_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    profiles.store(MEASURED.as_json())
    assert main(["sensor", "show", "--device", "GPU-1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "A board  GPU-1  driver 580.1  measured 2026-01-01T00:00:00Z"
    assert "       3.512 ± 0.061 ms  driver's samples: delay" in lines
    assert "         9.70 ± 0.79 ms  energy counter: delay of the energy at a step" in lines
    assert "        not measured ms  energy counter: time between two steps" in lines
    assert lines[-2:] == [
        "from 60 steps of power; ± is the standard uncertainty",
        "! throttled: software power cap while it was measured",
    ]


def test_every_number_of_a_profile_is_in_the_table() -> None:
    from pybench.cli.sensor_table import ROWS

    shown = {row[0] for row in ROWS}
    numbers = {
        name for name in MEASURED.as_json() if name.endswith(("_s", "_w", "_ratio")) and not name.startswith("u_")
    }
    assert numbers - shown == {"state_ratio"}, "an allowance, not a property of this board's sensor"
    assert len(list(describe_profile(MEASURED.as_json()))) == len(ROWS) + 3


@pytest.fixture
def board(tmp_path: Path, replay_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_board(tmp_path / "trace", Sensor())
    for name, value in install(tmp_path / "site", tmp_path / "trace", replay_library).items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("board")
def test_a_dry_run_names_boards_and_files(capsys: pytest.CaptureFixture[str], store: Path) -> None:
    assert main(["sensor", "measure", "--dry-run", "--device", "0"]) == 0
    assert capsys.readouterr().out == (
        f"0  {UUID}  Replayed trace, driver replay: about a minute, into {store}/{UUID}_driver-replay.json\n"
    )
    assert main(["sensor", "measure", "--device", "GPU-7"]) == 2
    assert f"--device GPU-7 fits no GPU here\n  hint: there are 0 {UUID}" in capsys.readouterr().err
    assert main(["sensor", "show"]) == 1
    assert "was not measured under driver replay\n  hint: run `pybench sensor`" in capsys.readouterr().err
    profiles.store({**MEASURED.as_json(), "uuid": UUID})
    assert main(["sensor", "show"]) == 1
    assert "profiles of other drivers (580.1) do not count" in capsys.readouterr().err


@pytest.fixture
def two_boards(board: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two boards, and two foreign processes on each."""
    busy = tmp_path / "busy"
    write_board(busy, Sensor(), processes=3)
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", f"{busy}:{busy}")
    monkeypatch.setenv("PYBENCH_CUDA_LIBRARY", "libabsent-cuda.so.1")


@pytest.mark.usefixtures("two_boards")
def test_all_boards_are_meant_or_those_that_cuda_shows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, simulated_library: Path
) -> None:
    def meant() -> list[str]:
        assert main(["sensor", "measure", "--dry-run"]) == 0
        return [line.split()[1] for line in capsys.readouterr().out.splitlines()]

    assert meant() == [UUID, SECOND_UUID], "without a driver of CUDA nothing is known to be hidden"
    monkeypatch.setenv("PYBENCH_CUDA_LIBRARY", str(simulated_library))  # it shows the first board
    assert meant() == [UUID]
    assert main(["sensor", "measure", "--dry-run", "--device", "1"]) == 0
    assert SECOND_UUID in capsys.readouterr().out, "who names a board means it"


@pytest.mark.usefixtures("two_boards")
def test_a_board_that_is_refused_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sensor", "measure", "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"profiles": []}
    for uuid in (UUID, SECOND_UUID):
        assert f"error: {uuid}: 2 other processes use this GPU (process ids 1, 2)" in printed.err
    assert printed.err.count("--force") == 2


@pytest.mark.usefixtures("board")
def test_doctor_says_whether_the_sensor_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    def energy() -> dict[str, str]:
        assert main(["doctor", "--json"]) == 0
        findings = json.loads(capsys.readouterr().out)["findings"]
        return next(finding for finding in findings if finding["what"] == "GPU energy")

    assert "is not measured yet" in energy()["detail"]
    assert "pybench sensor" in energy()["hint"]
    profiles.store({**MEASURED.as_json(), "uuid": UUID, "driver": "replay"})
    assert energy()["detail"].endswith("power sensors measured")


@pytest.mark.usefixtures("board")
def test_stopping_leaves_nothing_behind_and_shows_no_traceback(store: Path) -> None:
    # A background job of a shell ignores SIGINT, and its children inherit that.
    command = ["env", "--default-signal=INT", sys.executable, "-P", "-m", "pybench.cli"]
    command += ["sensor", "measure", "--loads", str(SHORT_LOADS)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    assert first.startswith("sensor: Replayed trace")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everyone in the foreground
    out, rest = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in rest
    assert not store.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("board")
def test_a_board_is_measured_through_a_worker_stored_and_found_again(store: Path) -> None:
    command = [sys.executable, "-P", "-m", "pybench.cli", "sensor"]
    ended = subprocess.run([*command, "measure", "--loads", str(SHORT_LOADS)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "sensor: Replayed trace: switching a load on and off" in ended.stderr
    assert "ms  driver's samples: delay" in ended.stdout
    assert ended.stdout.rstrip().endswith(f"stored in {store}/{UUID}_driver-replay.json")
    shown = subprocess.run([*command, "show", "--json"], capture_output=True, text=True, check=True)
    [profile] = json.loads(shown.stdout)["profiles"]
    assert (profile["origin"], profile["uuid"], profile["driver"]) == ("measured", UUID, "replay")
    assert profile["sample_delay_s"] == pytest.approx(0.0036, abs=0.0007)
    assert profile["response_s"] == pytest.approx(0.0128, abs=0.001)
