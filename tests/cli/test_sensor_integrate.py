# SPDX-License-Identifier: Apache-2.0
"""`pybench sensor integrate` as a user meets it: JSON in the file's order, errors with place and hint, a table."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pybench.catalogue.sensors import ENERGY_METHODS
from pybench.errors import EXIT_OK, EXIT_USAGE
from pybench.measure import ASSUMED
from tests.measure.recordings import DATA, H200, recording

TRACE = DATA / "h200-windows"


def _integrate(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pybench.cli", "sensor", "integrate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def _answer(*arguments: object) -> dict[str, Any]:
    result = _integrate(*arguments, "--json")
    assert result.returncode == EXIT_OK, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def _rows() -> list[dict[str, str]]:
    with (TRACE / "windows.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(replace(H200, origin="measured", uuid="GPU-1", driver="580.159").as_json()))
    return file


def test_every_window_has_its_energy_uncertainties_validity_and_reasons(profile: Path) -> None:
    answer = _answer(TRACE, "--windows", TRACE / "windows.csv", "--profile", profile)
    assert answer["sensor"]["uuid"] == "GPU-1"
    assert len(answer["windows"]) == 13
    for window, row in zip(answer["windows"], _rows(), strict=True):
        assert (window["start_us"], window["end_us"]) == (float(row["start_us"]), float(row["end_us"]))
        assert window["energy_j"] == pytest.approx(0.0784 * int(row["iterations"]), rel=0.03)
        assert 0 < window["u_within_j"] < 0.05 * window["energy_j"]
        assert window["u_absolute_j"] > window["u_within_j"]
        assert window["valid"] is True
        assert window["reasons"] == []
        assert (window["method"], window["scope"]) == ("fused", "board")
        assert sum(part**2 for part in window["parts_j"].values()) == pytest.approx(window["u_within_j"] ** 2)


def test_windows_come_in_the_files_order_whatever_it_is(profile: Path, tmp_path: Path) -> None:
    rows = _rows()
    shuffled = rows[7:] + rows[:7][::-1]
    file = tmp_path / "windows.csv"
    file.write_text("end_us,note,start_us\n" + "".join(f"{row['end_us']},x,{row['start_us']}\n" for row in shuffled))
    sorted_windows = {
        each["start_us"]: each
        for each in _answer(TRACE, "--windows", TRACE / "windows.csv", "--profile", profile)["windows"]
    }
    answered = _answer(TRACE, "--windows", file, "--profile", profile)["windows"]
    assert [each["start_us"] for each in answered] == [float(row["start_us"]) for row in shuffled]
    assert all(each == sorted_windows[each["start_us"]] for each in answered)


@pytest.mark.parametrize("method", ENERGY_METHODS)
def test_every_method_has_a_name_and_an_answer(method: str) -> None:
    answer = _answer(TRACE, "--windows", TRACE / "windows.csv", "--method", method)
    assert {window["method"] for window in answer["windows"]} == {method}
    expected = recording("h200-windows").integrate(method).energy_j
    if method != "fused":  # a plain method knows no profile
        assert [window["energy_j"] for window in answer["windows"]] == pytest.approx(expected)
        assert all(window["reasons"] or window["u_within_j"] for window in answer["windows"])


def test_without_a_profile_the_answer_says_what_the_sensor_is_known_from() -> None:
    answer = _answer(TRACE, "--windows", TRACE / "windows.csv")
    assert answer["sensor"]["origin"] in ("assumed", "trace")
    told = [any(reason.startswith("sensor_assumed") for reason in each["reasons"]) for each in answer["windows"]]
    assert all(told) is (answer["sensor"]["origin"] == "assumed")


def test_a_window_without_energy_is_null_and_invalid_in_json(tmp_path: Path, profile: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text("start_us,end_us\n999000000,999500000\n")
    (window,) = _answer(TRACE, "--windows", file, "--profile", profile)["windows"]
    assert (window["energy_j"], window["u_within_j"], window["u_absolute_j"]) == (None, None, None)
    assert window["valid"] is False
    assert window["reasons"][0].startswith("not_covered")


def test_no_windows_are_an_empty_list(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text("start_us,end_us\n")
    assert _answer(TRACE, "--windows", file)["windows"] == []


def test_the_table_has_a_line_a_window_and_explains_its_marks(profile: Path, tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text("start_us,end_us\n2000000,11858868\n999000000,999500000\n")
    result = _integrate(TRACE, "--windows", file, "--profile", profile)
    assert result.returncode == EXIT_OK
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["begin", "s", "length", "s", "energy", "J", "±", "within", "±", "absolute", "doubts"]
    assert lines[1].split()[:2] == ["1", "2.000000"]
    assert 5900 < float(lines[1].split()[3]) < 6200
    assert lines[2].split()[0] == "2!"
    assert "not_covered" in lines[2]
    assert "±: 95 % interval" in lines[-1]
    assert "Sensor: measured" in lines[-1]


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        ("start_us,end\n0,1\n", "no column end_us"),
        ("start_us,end_us\n0,5\n7,x\n", "windows.csv:3: could not convert string to float: 'x'"),
        ("start_us,end_us\n0,5\n7,\n", "windows.csv:3: end_us is no time"),
        ("start_us,end_us\n0,5\n7,7\n", "the window in row 2 ends before it begins"),
        ("start_us,end_us\n0,5\n7\n", "windows.csv:3: 1 cells under 2 columns"),
    ],
)
def test_malformed_windows_name_their_place_and_what_to_do(tmp_path: Path, windows: str, said: str) -> None:
    file = tmp_path / "windows.csv"
    file.write_text(windows)
    result = _integrate(TRACE, "--windows", file, "--json")
    assert result.returncode == EXIT_USAGE
    assert said in result.stderr
    assert "hint:" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("{", "Expecting property name"),
        ("[]", "not a sensor profile"),
        ('{"schema_version": 99}', "a sensor profile of schema version 99"),
        (json.dumps({**ASSUMED.as_json(), "colour": 2}), "unknown entries colour"),
        ('{"schema_version": 1, "response_s": -1}', "response_s is -1"),
        ('{"schema_version": 1, "response_s": Infinity}', "response_s is Infinity"),
        ('{"schema_version": 1, "response_s": 0.01}', "not a whole sensor profile"),
    ],
)
def test_a_profile_that_cannot_be_used_is_a_usage_error(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "profile.json"
    if content is not None:
        file.write_text(content)
    result = _integrate(TRACE, "--windows", TRACE / "windows.csv", "--profile", file)
    assert result.returncode == EXIT_USAGE
    assert said in result.stderr
    assert "profile.json" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_method_a_missing_trace_and_missing_windows_are_usage_errors(tmp_path: Path) -> None:
    for arguments, said in (
        ((TRACE, "--windows", TRACE / "windows.csv", "--method", "guess"), "no method 'guess'"),
        ((tmp_path / "none", "--windows", TRACE / "windows.csv"), "no such folder"),
        ((tmp_path, "--windows", TRACE / "windows.csv"), "no power was recorded in this folder"),
        ((TRACE, "--windows", tmp_path / "none.csv"), "none.csv: no such file"),
    ):
        result = _integrate(*arguments)
        assert result.returncode == EXIT_USAGE
        assert said in result.stderr
        assert "hint:" in result.stderr
        assert "Traceback" not in result.stderr
