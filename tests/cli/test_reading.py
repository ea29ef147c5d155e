# SPDX-License-Identifier: Apache-2.0
"""check, analyse, report and compare as a user meets them: exit codes, JSON on stdout, hints on stderr, no
traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pybench.analysis.findings.changes import VERDICTS
from pybench.case import Case
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.metrics import Metric
from pybench.catalogue.workloads import Workload
from pybench.errors import (
    EXIT_CORRUPT,
    EXIT_COVERAGE,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_REGRESSION,
    EXIT_USAGE,
)
from tests.support.campaigns import CampaignBuilder, build_typical

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")


def _pybench(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pybench.cli", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


@pytest.fixture(scope="module")
def typical(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_typical(tmp_path_factory.mktemp("typical") / "c", repetitions=3).path


def test_check_of_a_covered_campaign_is_zero(typical: Path) -> None:
    result = _pybench("check", typical)
    assert result.returncode == EXIT_OK
    assert "34 of 34 planned runs are covered" in result.stdout


def test_check_of_a_short_campaign_is_three_and_says_what_to_do(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    builder.run(INFER, 1, {"latency_mean_ms": 1.0})
    result = _pybench("check", builder.path, "--json")
    assert result.returncode == EXIT_COVERAGE
    assert json.loads(result.stdout)["states"] == {"ok": 1, "missing": 1}
    assert "hint: run the plan again" in result.stderr


@pytest.mark.parametrize("command", ["check", "analyse", "report"])
def test_a_truncated_summary_of_a_complete_run_is_four_without_a_traceback(tmp_path: Path, command: str) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    summary = builder.run(INFER, 1, {"latency_mean_ms": 1.0}).file("summary.json")
    summary.write_bytes(summary.read_bytes()[:40])
    result = _pybench(command, builder.path)
    assert result.returncode == EXIT_CORRUPT
    assert "summary.json" in result.stderr
    assert "hint:" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["check", "analyse", "report"])
def test_a_folder_that_is_no_campaign_is_two(tmp_path: Path, command: str) -> None:
    result = _pybench(command, tmp_path)
    assert result.returncode == EXIT_USAGE
    assert "is not a campaign" in result.stderr


@pytest.mark.parametrize("command", ["check", "analyse", "status"])
def test_an_archive_in_place_of_a_folder_is_to_be_fetched(tmp_path: Path, command: str) -> None:
    archive = tmp_path / "of mine.tar.zst"
    archive.write_bytes(b"")
    result = _pybench(command, archive)
    assert result.returncode == EXIT_USAGE
    assert f"`pybench fetch '{archive}'`" in result.stderr


def test_analyse_prints_findings_and_tables(typical: Path) -> None:
    result = _pybench("analyse", typical)
    assert result.returncode == EXIT_OK
    for words in ("int8 instead of fp32", "Reliability", "Verdicts: int8 in place of fp32", "equal ids"):
        assert words in result.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_without_a_character_gets_a_question_mark(typical: Path, encoding: str) -> None:
    variables = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "pybench.cli", "analyse", str(typical)]
    ended = subprocess.run(command, env=os.environ | variables, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    assert "required ? 1." in ended.stdout.decode(encoding)
    as_json = subprocess.run([*command, "--json"], env=os.environ | variables, capture_output=True, check=False)
    assert json.loads(as_json.stdout.decode(encoding)) == json.loads(_pybench("analyse", typical, "--json").stdout)
    assert b"?" not in as_json.stdout


def test_analyse_as_json_holds_estimates_with_intervals(typical: Path) -> None:
    stored = json.loads(_pybench("analyse", typical, "--json").stdout)
    effect = stored["contrasts"][0]["pairs"][0]["effects"]["latency_mean_ms"]
    assert effect["lower"] < effect["value"] < effect["upper"]
    assert effect["method"] == "skew-adjusted t"
    assert stored["coverage"]["full"] is True


def test_report_prints_where_it_lies_last(typical: Path, tmp_path: Path) -> None:
    result = _pybench("report", typical, "--out", tmp_path / "report")
    assert result.returncode == EXIT_OK
    page = Path(result.stdout.splitlines()[-1])
    assert page == tmp_path / "report" / "index.html"
    assert page.is_file()
    assert result.stderr == ""


def test_compare_with_itself_is_zero_and_with_a_slower_one_five(typical: Path, tmp_path: Path) -> None:
    slower = build_typical(tmp_path / "slow", repetitions=3, seed=9, slowdown=1.5).path
    assert _pybench("compare", typical, typical).returncode == EXIT_OK
    result = _pybench("compare", typical, slower, "--json")
    assert result.returncode == EXIT_REGRESSION
    assert json.loads(result.stdout)["regressions"] > 0
    assert "regressions" in result.stderr
    assert _pybench("compare", typical, slower, "--tolerance", "2").returncode == EXIT_OK


def test_compare_tells_what_was_not_compared_once_for_each_reason(typical: Path) -> None:
    shown = _pybench("compare", typical, typical).stdout
    head, _, rest = shown.partition("Not compared")
    assert "not compared" not in head
    lines = [line.split()[0:3] for line in rest.split("\n\n")[0].splitlines() if line.strip()]
    assert len(lines) == len({tuple(line) for line in lines})
    changes = json.loads(_pybench("compare", typical, typical, "--json").stdout)["changes"]
    assert len(lines) < sum(change["change"] == "not compared" for change in changes)


def test_compare_of_a_metric_that_cannot_be_judged_says_why(typical: Path) -> None:
    result = _pybench("compare", typical, typical, "--metric", "cpu_energy_per_sample_j")
    assert result.returncode == EXIT_USAGE
    assert "nothing was judged (before: no_rapl)" in result.stderr


def test_compare_of_campaigns_that_share_no_number_is_two_and_says_so(typical: Path, tmp_path: Path) -> None:
    other = CampaignBuilder(tmp_path / "other", [Case(workload="noop")], repetitions=1).path
    result = _pybench("compare", typical, other)
    assert result.returncode == EXIT_USAGE
    assert "nothing was compared" in result.stderr


def test_a_metric_that_is_like_no_other_is_not_answered_with_all_of_them(typical: Path) -> None:
    result = _pybench("compare", typical, typical, "--metric", "foo")
    assert result.returncode == EXIT_USAGE
    assert result.stderr.endswith("hint: docs/metrics.md lists all metrics\n")


def test_compare_of_an_unknown_metric_is_two_and_names_the_nearest(typical: Path) -> None:
    result = _pybench("compare", typical, typical, "--metric", "latency_p50")
    assert result.returncode == EXIT_USAGE
    assert "did you mean latency_p50_ms?" in result.stderr


def test_compare_of_a_metric_that_no_case_has_is_two_and_names_it(typical: Path) -> None:
    result = _pybench("compare", typical, typical, "--metric", "wait_share_ratio")
    assert result.returncode == EXIT_USAGE
    assert f"no case that {typical} and {typical} share has wait_share_ratio" in result.stderr
    assert "factors" not in result.stderr


def test_compare_judges_only_the_metrics_named(typical: Path) -> None:
    result = _pybench("compare", typical, typical, "--metric", "model_bytes", "--json")
    assert {change["metric"] for change in json.loads(result.stdout)["changes"]} == {"model_bytes"}


def test_compare_appends_markdown_and_fails_all_the_same(typical: Path, tmp_path: Path) -> None:
    slower = build_typical(tmp_path / "slow", repetitions=3, seed=9, slowdown=1.5).path
    summary = tmp_path / "summary.md"
    summary.write_text("# Earlier\n")
    result = _pybench("compare", typical, slower, "--markdown", summary)
    assert result.returncode == EXIT_REGRESSION
    assert "hint: run A's plan again and compare both runs of A" in result.stderr
    text = summary.read_text()
    assert text.startswith("# Earlier\n")
    assert "| Case | Metric | Unit |" in text
    assert all(line in text for line in result.stdout.splitlines() if line.startswith("From A to B: "))
    refused = _pybench("compare", typical, slower, "--markdown", tmp_path / "no" / "summary.md")
    assert refused.returncode == EXIT_USAGE
    assert "summary.md: No such file or directory" in refused.stderr


def test_compare_writes_each_verdict_as_a_test_of_junit(typical: Path, tmp_path: Path) -> None:
    slower = build_typical(tmp_path / "slow", repetitions=3, seed=9, slowdown=1.5).path
    file = tmp_path / "compare.xml"
    result = _pybench("compare", typical, slower, "--junit", file, "--json")
    assert result.returncode == EXIT_REGRESSION
    found = json.loads(result.stdout)
    suites = ElementTree.parse(file).getroot()
    tests = suites.findall("testsuite/testcase")
    verdicts = [change["change"] for change in found["changes"] if change["change"] in VERDICTS]
    assert {"worse", "unclear"} <= set(verdicts)
    assert len(tests) == len(verdicts)
    failed = {(test.get("classname"), test.get("name")) for test in tests if test.find("failure") is not None}
    assert failed == {(each["title"], each["metric"]) for each in found["changes"] if each["change"] == "worse"}
    assert suites.get("failures") == str(found["regressions"])
    assert suites.get("skipped") == str(verdicts.count("unclear")) == str(len(suites.findall(".//skipped")))
    said = [str(failure.get("message")) for failure in suites.iter("failure")]
    assert all(re.match(r"worse: \S+ to \S+( \S+)?, B/A 1\.\S+ \[.*\], p \(Holm\) \S+", each) for each in said), said
    refused = _pybench("compare", typical, slower, "--junit", tmp_path / "no" / "compare.xml")
    assert refused.returncode == EXIT_USAGE
    assert "--junit" in refused.stderr
    assert "compare.xml: No such file or directory" in refused.stderr


def test_compare_that_judges_nothing_is_two_and_shows_context(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    for block in (1, 2):
        builder.run(INFER, block, {"compile_s": 1.0 + block})
    result = _pybench("compare", builder.path, builder.path)
    assert result.returncode == EXIT_USAGE
    assert "Compile time" in result.stdout
    assert "nothing was judged" in result.stderr
    assert _pybench("compare", builder.path, builder.path, "--metric", "compile_s").returncode == EXIT_OK


# --- names and rows of a package outside pybench ---------------------------------------------------------------------


@pytest.mark.parametrize("command", ["status", "check", "analyse", "report", "run"])
def test_a_workload_without_a_row_is_named_without_a_traceback(tmp_path: Path, command: str) -> None:
    builder = CampaignBuilder(tmp_path / "c", [Case(workload="acme-echo"), INFER], repetitions=1)
    result = _pybench(command, builder.path)
    assert result.returncode == EXIT_FAILED
    assert "pybench has no workload 'acme-echo'" in result.stderr
    assert "hint:" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_campaign_is_reported_by_its_stored_rows(tmp_path: Path) -> None:
    rows = (
        Workload(
            name="acme-echo",
            label="Echoes of Acme",
            meaning="one echo",
            module="acme.echo",
            takes=("run",),
            model="none",
            yields=("acme_echoes_per_s",),
            headline="acme_echoes_per_s",
            shown=("acme_echoes_per_s",),
        ),
        Metric(
            name="acme_echoes_per_s",
            group="time",
            unit="1/s",
            better="higher",
            label="Echo rate",
            meaning="echoes a second",
            rests_on="timing",
        ),
    )
    case = Case(workload="acme-echo", catalogue=BUILT_IN.with_rows(rows))
    builder = CampaignBuilder(tmp_path / "c", [case, INFER], repetitions=2)
    for block in (1, 2):
        builder.run(case, block, {"acme_echoes_per_s": 40.0 + block})
        builder.run(INFER, block, {"latency_mean_ms": 1.0})
    found = _pybench("analyse", builder.path, "--json")
    assert found.returncode == EXIT_OK, found.stderr
    (echo,) = [one for one in json.loads(found.stdout)["cases"] if one["factors"]["workload"] == "acme-echo"]
    assert echo["metrics"]["acme_echoes_per_s"]["estimate"]["n"] == 2
    assert _pybench("report", builder.path).returncode == EXIT_OK
    page = (builder.path / "report/index.html").read_text(encoding="utf-8")
    assert "Echoes of Acme" in page
    assert "Echo rate" in page
    assert "echoes a second" in page
    compared = _pybench("compare", builder.path, builder.path, "--metric", "acme_echoes_per_s")
    assert compared.returncode == EXIT_OK, compared.stderr


@pytest.mark.parametrize(
    ("serve", "code", "said"),
    [
        ("import os; os._exit(7)", EXIT_FAILED, "error: a helper process ended with status 7"),
        ("import os; os.kill(os.getppid(), 2); input()", EXIT_INTERRUPTED, "interrupted\n"),
    ],
)
def test_a_command_whose_process_ends_or_that_is_interrupted_says_so(
    typical: Path, serve: str, code: int, said: str
) -> None:
    program = (
        "import sys; from pybench import processes; from pybench.cli import main; "
        f"processes.usable_cpus = lambda: 2; processes._SERVE = {serve!r}; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "report", str(typical)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(said)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "made_of_it", ["raise ImportError('numpy could not be imported')", "raise PybenchError('gone')"]
)
def test_an_interruption_that_other_code_makes_another_error_of_is_one(typical: Path, made_of_it: str) -> None:
    program = (
        "import os, signal, sys, time\n"
        "from unittest.mock import patch\n"
        "from pybench.cli import main\n"
        "from pybench.errors import PybenchError\n"
        "def load(*_, **__):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT); time.sleep(10)\n"
        "    except KeyboardInterrupt:\n"
        f"        {made_of_it}\n"
        "with patch('pybench.dataset.load', load):\n"
        "    sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "check", str(typical)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (EXIT_INTERRUPTED, "", "interrupted\n")


@pytest.mark.parametrize(
    ("times", "imported"), [(1, "begun, done"), (2, "begun")], ids=["the first waits", "a second does not"]
)
def test_an_interruption_waits_for_the_end_of_an_import(
    typical: Path, tmp_path: Path, times: int, imported: str
) -> None:
    """As polars did: it panics where KeyboardInterrupt comes out of an import, with a BaseException and a text."""
    (tmp_path / "panicking.py").write_text(
        "import os, pathlib, signal, time\n"
        "told = pathlib.Path(__file__).with_name('told')\n"
        "told.write_text('begun')\n"
        "class Panic(BaseException):\n"
        "    pass\n"
        "try:\n"
        f"    for _ in range({times}):\n"
        "        os.kill(os.getpid(), signal.SIGINT); time.sleep(0.1)\n"
        "except KeyboardInterrupt:\n"
        "    raise Panic\n"
        "told.write_text('begun, done')\n"
    )
    program = (
        "import sys, time\n"
        "from unittest.mock import patch\n"
        "from pybench.cli import main\n"
        f"sys.path.append({str(tmp_path)!r})\n"
        "def load(*_, **__):\n"
        "    import panicking\n"
        "    time.sleep(10)\n"
        "with patch('pybench.dataset.load', load):\n"
        "    sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "check", str(typical)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (EXIT_INTERRUPTED, "", "interrupted\n")
    assert (tmp_path / "told").read_text() == imported
