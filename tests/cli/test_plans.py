# SPDX-License-Identifier: Apache-2.0
"""`pybench init`, `schema`, `validate` and `expand`, through `main`: what is printed where, and the exit code."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pybench.case import case_from_json
from pybench.cli import GROUPS, main
from pybench.errors import EXIT_OK, EXIT_USAGE
from pybench.plan import plan_schema

Captured = pytest.CaptureFixture[str]

GRID = """\
schema_version: 1
name: grid
repetitions: 3
matrix:
  - {workload: noop, threads: [1, 2], iterations: [5, 10]}
criteria: {baseline: {threads: 1}}
"""


@pytest.fixture
def grid(tmp_path: Path) -> str:
    path = tmp_path / "grid.yaml"
    path.write_text(GRID)
    return str(path)


def test_init_writes_a_plan_that_validates_and_says_so(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "mine.yaml"
    assert main(["init", str(path)]) == EXIT_OK
    assert capsys.readouterr().out == f"{path}\n"
    assert f"pybench run {path}" in path.read_text()
    assert main(["validate", str(path)]) == EXIT_OK
    assert capsys.readouterr().out.startswith("mine: 6 cases, 5 repetitions: 24 runs\n")


@pytest.mark.parametrize(
    ("file", "name"), [("mine.yaml", "mine"), ("my plan!.yaml", "my-plan"), ("ü.yaml", "campaign")]
)
def test_init_names_the_campaign_after_the_file(tmp_path: Path, file: str, name: str, capsys: Captured) -> None:
    assert main(["init", str(tmp_path / file)]) == EXIT_OK
    assert f"results/{name}" in capsys.readouterr().err
    assert main(["validate", str(tmp_path / file), "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["name"] == name


def test_init_without_a_name_writes_plan_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == EXIT_OK
    assert (tmp_path / "plan.yaml").exists()
    assert main(["init", str(tmp_path)]) == EXIT_USAGE
    assert "does not overwrite" in capsys.readouterr().err


def test_init_never_overwrites(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine")
    assert main(["init", str(path)]) == EXIT_USAGE
    assert path.read_text() == "mine"
    assert "does not overwrite" in capsys.readouterr().err


def test_init_where_nothing_can_be_written_is_an_error_with_a_hint(tmp_path: Path, capsys: Captured) -> None:
    assert main(["init", str(tmp_path / "nowhere" / "plan.yaml")]) == EXIT_USAGE
    assert "hint: give a name in a folder that exists" in capsys.readouterr().err


def test_init_quotes_what_is_to_be_typed_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "my plan.yaml"]) == EXIT_OK
    assert capsys.readouterr().err == "next: pybench run 'my plan.yaml', then pybench report results/my-plan\n"
    assert "pybench run 'my plan.yaml' " in Path("my plan.yaml").read_text()


def test_init_on_a_disk_that_cannot_be_written_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def read_only(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pybench.cli.init.open", read_only, raising=False)
    assert main(["init", str(tmp_path / "a.yaml")]) == EXIT_USAGE
    assert "hint: give a name in a folder that can be written to" in capsys.readouterr().err


def test_a_folder_is_no_plan_and_the_files_in_it_are_named(tmp_path: Path, capsys: Captured) -> None:
    assert main(["validate", str(tmp_path)]) == EXIT_USAGE
    assert "no YAML file is in it; " in capsys.readouterr().err
    (tmp_path / "a.yaml").touch()
    assert main(["validate", str(tmp_path)]) == EXIT_USAGE
    assert f"give the YAML file in it: {tmp_path / 'a.yaml'}" in capsys.readouterr().err


def test_schema_prints_the_schema(capsys: Captured) -> None:
    assert main(["schema"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out) == plan_schema()


def test_validate_says_what_varies_and_what_is_compared(grid: str, capsys: Captured) -> None:
    assert main(["validate", grid]) == EXIT_OK
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "grid: 4 cases, 3 repetitions: 12 runs"
    assert "  threads: 1, 2" in out
    assert "  comparison: baseline threads=1" in out


def test_validate_prints_no_line_of_models_for_a_plan_without_a_model(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "plan.yaml").write_text("schema_version: 1\nname: bare\nmatrix: [{workload: noop}]\n")
    assert main(["validate", str(tmp_path / "plan.yaml")]) == EXIT_OK
    assert capsys.readouterr().out.splitlines()[1:] == ["  workload: noop"]


def test_validate_and_expand_tell_the_bounds_of_latency(tmp_path: Path, capsys: Captured) -> None:
    plan = tmp_path / "served.yaml"
    entries = "[{workload: infer, model: mlp, runtime: torch, batch: [1, 2], slo_ms: [50, 2.5]}, {workload: noop}]"
    plan.write_text(f"schema_version: 1\nname: served\nmatrix: {entries}\n")
    assert main(["validate", str(plan)]) == 0
    assert "  slo_ms: 2.5, 50 (evaluated on the runs of 2 cases)\n" in capsys.readouterr().out
    assert main(["expand", str(plan), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["cases"]
    assert [case.get("slo_ms") for case in listed] == [[2.5, 50], [2.5, 50], None]


def test_validate_says_what_no_machine_runs(tmp_path: Path, capsys: Captured) -> None:
    plan = tmp_path / "plan.yaml"
    entry = "{workload: train, model: tinylm-tiny, runtime: [torch, native], batch: [1, 2]}"
    plan.write_text(f"schema_version: 1\nname: trained\nmatrix: [{entry}]\n")
    why = "native does not train; use runtime: torch or torch-compile"
    assert main(["validate", str(plan)]) == EXIT_OK
    assert f"  no machine runs 2 cases: {why}\n" in capsys.readouterr().out
    assert main(["validate", str(plan), "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["on_no_machine"] == {why: 2}


def test_validate_as_json(grid: str, capsys: Captured) -> None:
    assert main(["validate", grid, "--json", "--set", "repetitions=2"]) == EXIT_OK
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], found["cases"], found["runs"]) == (True, 4, 8)


def test_a_broken_plan_prints_every_problem_on_stderr_and_nothing_on_stdout(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(GRID.replace("threads", "thread").replace("name: grid", "name: a b"))
    assert main(["validate", str(path)]) == EXIT_USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.split(": ")[0] for line in printed.err.splitlines()] == [
        f"{path}:{n}" for n in ("2:7", "5:22", "6:23")
    ]
    assert "Traceback" not in printed.err


def test_a_broken_plan_as_json_lists_problems_with_line_and_column(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(GRID.replace("threads: [1", "thread: [1"))
    assert main(["validate", str(path), "--json"]) == EXIT_USAGE
    found = json.loads(capsys.readouterr().out)
    assert found["valid"] is False
    assert found["problems"] == [
        {"line": 5, "column": 22, "what": "unknown key `thread`", "hint": "did you mean `threads`?"}
    ]


def test_a_missing_plan_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    assert main(["expand", str(tmp_path / "nothing.yaml")]) == EXIT_USAGE
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)


def test_expand_prints_a_plain_table_with_short_ids(grid: str, capsys: Captured) -> None:
    assert main(["expand", grid]) == EXIT_OK
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].split() == ["case", "workload", "threads", "iterations"]
    assert [line.split()[1:] for line in lines[1:]] == [["noop", n, i] for n in ("1", "2") for i in ("5", "10")]
    assert all(len(line.split()[0]) == 12 for line in lines[1:])
    assert printed.err == "4 cases, 3 repetitions: 12 runs\n"


def test_expand_shows_a_dash_where_a_factor_means_nothing(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "schema_version: 1\nname: x\nmatrix:\n  - {workload: h2d, pinned: true}\n"
        "  - {workload: train, model: tinylm-small, batch: 2}\n"
    )
    assert main(["expand", str(path)]) == EXIT_OK
    rows = [line.split()[1:] for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["workload", "model", "runtime", "batch", "pinned"],
        ["h2d", "-", "-", "-", "true"],
        ["train", "tinylm-small", "torch", "2", "-"],
    ]


def test_expand_as_json_holds_whole_cases(grid: str, capsys: Captured) -> None:
    assert main(["expand", grid, "--json", "--filter", "threads=2", "--set", "matrix.0.iterations=7"]) == EXIT_OK
    found = json.loads(capsys.readouterr().out)
    cases = [
        case_from_json({k: v for k, v in stored.items() if k not in ("title", "repetitions")})
        for stored in found["cases"]
    ]
    assert [(case.threads, case.iterations) for case in cases] == [(2, 7)]
    assert found["cases"][0]["case_id"] == cases[0].id
    assert (found["cases"][0]["repetitions"], found["runs"]) == (3, 3)


def test_a_case_satisfies_all_filters_that_are_given(grid: str, capsys: Captured) -> None:
    def threads(*filters: str) -> list[int | None]:
        assert main(["expand", grid, "--json", *filters]) == EXIT_OK
        return sorted({case["threads"] for case in json.loads(capsys.readouterr().out)["cases"]}, key=str)

    assert len(threads("-k", "threads>=1")) > 1
    assert threads("-k", "threads>=1", "-k", "threads<2") == [1]
    assert threads("-k", "threads<2", "-k", "threads>=1") == [1]


def test_a_filter_that_fits_nothing_or_cannot_be_read_is_a_usage_error(grid: str, capsys: Captured) -> None:
    assert main(["expand", grid, "--filter", "threads>5"]) == EXIT_USAGE
    assert "no case matches" in capsys.readouterr().err
    assert main(["expand", grid, "--filter", "thread>5"]) == EXIT_USAGE
    assert "did you mean `threads`?" in capsys.readouterr().err


def test_one_of_anything_is_told_in_the_singular(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("schema_version: 1\nname: x\nrepetitions: 1\nmatrix:\n  - {workload: noop}\n")
    assert main(["expand", str(path)]) == EXIT_OK
    assert capsys.readouterr().err == "1 case, 1 repetition: 1 run\n"


@pytest.mark.parametrize("arguments", [["expand", "PLAN", "--json"], ["schema"]])
def test_output_that_nobody_reads_ends_the_command_without_a_word(grid: str, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "pybench.cli", *[grid if each == "PLAN" else each for each in arguments]]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert done.stderr == b""
    assert done.returncode == -signal.SIGPIPE


@pytest.mark.parametrize("arguments", [["expand", "PLAN", "--json"], ["validate", "PLAN"]])
def test_a_full_disk_below_stdout_is_one_error(grid: str, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "pybench.cli", *[grid if each == "PLAN" else each for each in arguments]]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "error: cannot write to stdout: No space left on device"
    assert done.returncode == EXIT_USAGE


def test_a_pipe_that_breaks_inside_a_command_is_a_defect_and_ends_it_with_words(grid: str) -> None:
    program = (
        "import sys; from unittest.mock import patch; from pybench.cli import main\n"
        "with patch('pybench.cli.expand.print_json', side_effect=BrokenPipeError('of a helper')):\n"
        f"    main(['expand', {grid!r}, '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "BrokenPipeError: of a helper" in done.stderr


def test_help_lists_every_command_once_with_its_whole_summary(capsys: Captured) -> None:
    assert main(["--help"]) == EXIT_OK
    shown = capsys.readouterr().out
    assert "..." not in shown.partition("Options:")[2]
    for name in (name for names in GROUPS.values() for name in names):
        assert len(re.findall(rf"^  {name} +[A-Z].*\.$", shown, re.MULTILINE)) == 1, name


def test_help_says_what_the_value_of_an_option_is(capsys: Captured) -> None:
    names = [(name,) for names in GROUPS.values() for name in names]
    for command in (*names, ("sensor", "measure"), ("sensor", "show"), ("sensor", "integrate")):
        assert main([*command, "--help"]) == EXIT_OK
        assert re.findall(r"^  .*--[\w-]+ <.*", capsys.readouterr().out, re.MULTILINE) == [], command
