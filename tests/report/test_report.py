# SPDX-License-Identifier: Apache-2.0
"""The report as files: complete, offline, deterministic, safe against its own input, and made however badly a campaign
went."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.cautions import Caution, CautionCode
from pybench.dataset import load
from pybench.errors import CorruptError, UsageError
from pybench.report import write_report
from pybench.workloads.result import Verdict
from tests.campaigns import CampaignBuilder, build_typical

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8 = INFER.with_factors(precision="int8")
EVIL = "</title><script>alert('x')</script><img src=http://evil.example/x.png onerror=alert(1)>{{7*7}}$\\frac"


class _Links(HTMLParser):
    """Everything that a browser would load, every link to follow, every id, and the running text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.followed: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "src" or (name in ("href", "xlink:href") and tag != "a"):
                self.loaded.append(value or "")
            elif name == "href":
                self.followed.append(value or "")
            elif name == "id":
                self.ids.append(value or "")


@pytest.fixture(scope="module")
def typical(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builder = build_typical(tmp_path_factory.mktemp("typical") / "c", protocols=["welch-mann-whitney"])
    return write_report(load(builder.path))


def test_every_table_and_figure_comes_in_every_form(typical: Path) -> None:
    tables = {file.stem for file in (typical.parent / "tables").iterdir()}
    assert {"cases-infer", "cases-tokenize", "verdicts-1", "effects-1", "images-1", "coverage", "metrics"} <= tables
    for stem in tables:
        for suffix in ("csv", "md", "tex"):
            assert (typical.parent / "tables" / f"{stem}.{suffix}").stat().st_size > 0
    figures = {file.stem for file in (typical.parent / "figures").iterdir()}
    assert {"forest-1", "plane-1", "infer-latency_mean", "order"} <= figures
    for stem in figures:
        assert (typical.parent / "figures" / f"{stem}.svg").read_text().startswith("<?xml")
        assert (typical.parent / "figures" / f"{stem}.pdf").read_bytes().startswith(b"%PDF")


def test_what_could_not_be_measured_is_one_sentence(typical: Path) -> None:
    page = typical.read_text()
    found = page[page.index('<section id="found"') : page.index('<section id="sure"')]
    assert "1 could not be measured" in found
    assert found.count("<b>Not measured</b>") == 1
    assert "no_int8_kernels" in found


def test_the_page_loads_nothing_from_anywhere(typical: Path) -> None:
    page = typical.read_text()
    links = _Links(page)
    assert all(target.startswith(("data:", "#")) for target in links.loaded)
    assert not re.search(r"@import|url\((?!#|data:)", page)
    assert "http-equiv" in page
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_ids_are_unique_and_inner_links_lead_somewhere(typical: Path) -> None:
    links = _Links(typical.read_text())
    assert len(links.ids) == len(set(links.ids))
    for target in [target for target in (*links.followed, *links.loaded) if target.startswith("#")]:
        assert target[1:] in links.ids


def test_links_to_runs_and_files_lead_somewhere(typical: Path) -> None:
    targets = [target for target in _Links(typical.read_text()).followed if not target.startswith("#")]
    assert len(targets) > 72
    for target in targets:
        assert (typical.parent / target).exists(), target


def test_what_was_found_comes_first_then_how_sure_then_the_rest(typical: Path) -> None:
    page = typical.read_text()
    places = [page.index(f'<section id="{name}"') for name in ("found", "sure", "behind")]
    assert places == sorted(places)
    found = page[places[0] : places[1]]
    assert "Of 6 candidates against their baseline" in found
    assert re.search(r"int8 instead of fp32 \(onnxruntime, batch 8\)</b>: <span class=\"verdict\">accepted", found)
    assert re.search(r"Speed-up 1\.[78]\d*× \[", found)


def test_a_report_elsewhere_still_links_to_the_runs(tmp_path: Path) -> None:
    builder = build_typical(tmp_path / "c", repetitions=1)
    page = write_report(load(builder.path), tmp_path / "far" / "away")
    run = next(target for target in _Links(page.read_text()).followed if "/runs/" in target)
    assert (page.parent / run).resolve().is_relative_to(builder.path)


def test_a_missing_number_is_a_dash_with_its_reason_and_never_zero(typical: Path) -> None:
    row = next(
        line
        for line in typical.read_text().split("<tr>")
        if "no_int8_kernels: torch runs no int8 graph here" in line and "—" in line
    )
    assert 'data-missing title="no_int8_kernels: torch runs no int8 graph here"' in row


def test_a_plan_cannot_inject_anything(tmp_path: Path) -> None:
    case = Case(workload="infer", model=EVIL, runtime="onnxruntime")
    builder = CampaignBuilder(
        tmp_path / "c",
        [case, case.with_factors(precision="int8")],
        repetitions=2,
        name=EVIL,
        plan_text=EVIL,
        declared={"name": EVIL, "baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.1}},
    )
    caution = Caution(CautionCode.OUTLIERS, EVIL)
    for block in (1, 2):
        builder.run(
            case,
            block,
            {"latency_mean_ms": 1.0 + block / 50},
            labels={"device": EVIL},
            cautions=[caution],
            environment={"schema_version": 1, EVIL: EVIL},
        )
        builder.run(builder.cases[1], block, outcome="crashed", reason=EVIL, detail=EVIL)
    page = write_report(load(builder.path)).read_text()
    links = _Links(page)
    assert links.tags.count("script") == 1
    assert "img" not in links.tags
    assert all(target.startswith(("data:", "#")) for target in links.loaded)
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", page)[0]
    assert "&lt;/title&gt;" in page


def test_only_failed_runs_still_make_a_report(tmp_path: Path) -> None:
    builder = CampaignBuilder(
        tmp_path / "c", [INFER, INT8], repetitions=2, declared={"baseline": {"precision": "fp32"}}
    )
    for case in (INFER, INT8):
        for block in (1, 2):
            builder.run(case, block, outcome="crashed", reason="segfault", detail="signal 11")
    page = write_report(load(builder.path)).read_text()
    assert "No run gave a number" in page
    assert "segfault: signal 11" in page


def test_no_runs_at_all_still_make_a_report(tmp_path: Path) -> None:
    page = write_report(load(CampaignBuilder(tmp_path / "c", [INFER], repetitions=2).path)).read_text()
    assert "Coverage is short" in page
    assert "did not run" in page


def test_one_repetition_says_that_it_has_no_interval(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=1).path)).read_text()
    assert "One repetition" in page
    assert "one repetition: no interval" in page


def test_no_criteria_describes_cases(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=2, declared=None).path)).read_text()
    assert "The plan declares no criteria" in page
    assert "infer, onnxruntime, fp32, batch 8</b>: mean latency" in page


def test_doubts_are_loud(tmp_path: Path) -> None:
    cases = [Case(workload="tokenize", model="tinylm-small", runtime="torch", path=path) for path in ("hf", "rust")]
    builder = CampaignBuilder(
        tmp_path / "c", cases, repetitions=2, declared={"baseline": {"path": "hf"}}, require=["timing"]
    )
    for block in (1, 2):
        for case in cases:
            rate = {"throughput_tokens_per_s": 1e6 + block}
            valid = {"timing": Verdict(False, ("not_steady",))} if case.path == "rust" else {}
            labels = {"ids_sha256": f"{case.path}-{block}", "device": "cpu" if case.path == "hf" else "GPU-1"}
            labels["latency"] = "of the call" if case.path == "hf" else "between events"
            builder.run(
                case, block, rate, labels=labels, valid=valid, cautions=[Caution(CautionCode.BUSY_MACHINE, "load 3.1")]
            )
    page = write_report(load(builder.path)).read_text()
    for words in (
        "TOKENIZER PATHS GAVE DIFFERENT IDS",
        "TOKENIZER PATHS DISAGREE",
        "DIFFERENT IDS",
        "Different devices",
        "Different latencies",
        "(between events; of the call)",
        "Invalid values",
        "busy machine",
        "timing (required)",
        "timing: not_steady",
        "load 3.1",
    ):
        assert words in page, words


def test_a_corrupt_run_makes_no_report(tmp_path: Path) -> None:
    builder = build_typical(tmp_path / "c", repetitions=1)
    next(builder.path.rglob("summary.json")).write_text("{")
    with pytest.raises(CorruptError):
        write_report(load(builder.path))
    assert not builder.campaign.report.exists()


def test_a_folder_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    builder = build_typical(tmp_path / "c", repetitions=1)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot write"):
        write_report(load(builder.path), tmp_path / "file" / "report")


def test_a_caution_stands_beside_its_number(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER, INT8], repetitions=2)
    for block in (1, 2):
        for case in (INFER, INT8):
            cautions = [Caution(CautionCode.NOT_STEADY, "0.4 to 0.6 ms", "latency_mean_ms")] if case == INT8 else []
            builder.run(case, block, {"latency_mean_ms": 1.0 + block / 50, "latency_p99_ms": 2.0}, cautions=cautions)
    rows = (
        write_report(load(builder.path))
        .read_text()
        .split('id="table-cases-infer"')[1]
        .split("</table>")[0]
        .split("<tr>")
    )
    assert sum('title="caution: not steady"' in row for row in rows) == 1
    assert sum("caution" in cell for cell in next(row for row in rows if "int8" in row).split("<td")) == 1
