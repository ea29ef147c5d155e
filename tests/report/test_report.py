# SPDX-License-Identifier: Apache-2.0
"""The report as files: complete, offline, deterministic, safe against its own input, and made however badly a campaign
went."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.dataset import load
from pybench.errors import CorruptError, UsageError
from pybench.measurement.result import Validity
from pybench.report import write_report
from pybench.report.reasons import because
from pybench.report.sections import results
from pybench.report.sections.findings.sentences import _unmeasured_text
from tests.report.pages import rows_of
from tests.support.campaigns import CampaignBuilder, build_typical
from tests.support.environments import environment
from tests.support.reasons import reasons_of

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
    return write_report(load(builder.path), pdf=True)


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


def test_without_being_asked_for_pdfs_a_report_has_none_and_is_the_same_elsewhere(tmp_path: Path) -> None:
    dataset = load(build_typical(tmp_path / "c").path)
    with_pdfs = write_report(dataset, tmp_path / "a" / "report", pdf=True).read_text()
    page = write_report(dataset, tmp_path / "a" / "report")
    assert list(page.parent.rglob("*.pdf")) == [], "those of before are deleted"
    assert "pdf</a>" in with_pdfs
    assert page.read_text() == re.sub(r'<a href="figures/[\w-]+\.pdf">pdf</a>', "", with_pdfs)


def test_the_page_has_the_first_rows_of_a_long_table_of_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_ROWS_ON_PAGE", 3)
    page = write_report(load(build_typical(tmp_path / "c", repetitions=1).path))
    rows = len((page.parent / "tables" / "metrics.csv").read_text().splitlines()) - 1
    assert f"{rows - 3} more rows are in tables/metrics.csv." in page.read_text()


def test_what_an_earlier_report_had_and_this_one_lacks_is_deleted(tmp_path: Path) -> None:
    """Files that no report wrote stay, wherever they are."""
    target = tmp_path / "report"
    write_report(load(build_typical(tmp_path / "many").path), target, pdf=True)
    before = {file.relative_to(target) for file in target.rglob("*") if file.is_file()}
    own = [target / "figures" / "mine.svg", target / "tables" / "mine.csv"]
    for file in own:
        file.write_text("mine")
    write_report(load(CampaignBuilder(tmp_path / "few", [INFER], repetitions=2).path), target)
    after = {file.relative_to(target) for file in target.rglob("*") if file.is_file()}
    write_report(load(CampaignBuilder(tmp_path / "few", [INFER], repetitions=2).path), tmp_path / "fresh")
    fresh = {file.relative_to(tmp_path / "fresh") for file in (tmp_path / "fresh").rglob("*") if file.is_file()}
    assert {Path("figures/plane-1.svg"), Path("figures/plane-1.pdf")} <= before - after
    assert after - {file.relative_to(target) for file in own} == fresh
    assert all(file.read_text() == "mine" for file in own)


def test_what_the_page_does_not_link_every_report_has(typical: Path, tmp_path: Path) -> None:
    """It is written anew each time, so it never outlives its report."""
    least = write_report(load(CampaignBuilder(tmp_path / "c", [INFER], repetitions=1).path))

    def files(page: Path) -> set[str]:
        found = (file for kind in ("tables", "figures") for file in (page.parent / kind).iterdir())
        return {file.relative_to(page.parent).with_suffix("").as_posix() for file in found}

    linked = {name.rpartition(".")[0] for name in _Links(typical.read_text()).followed}
    assert files(typical) - linked
    assert files(typical) - linked <= files(least)


def test_what_could_not_be_measured_is_one_sentence(typical: Path) -> None:
    page = typical.read_text()
    found = page[page.index('<section id="found"') : page.index('<section id="sure"')]
    assert "1 could not be measured" in found
    assert found.count("<b>Not measured</b>") == 1
    assert "no_int8_kernels" in found


def test_many_that_were_not_measured_for_one_reason_are_counted() -> None:
    those = [f"case {number}" for number in range(8)]
    why = because("the baseline: not measured")
    told = "case 0, because the baseline was not measured; case 1, because the baseline was not measured"
    assert _unmeasured_text(why, those[:2]) == told
    assert _unmeasured_text(why, those) == "8 comparisons, such as case 0, because the baseline was not measured"


def test_a_footnote_on_the_page_is_no_exponent(typical: Path) -> None:
    page = typical.read_text()
    marks = re.findall(r"<sup>(.*?)</sup>", page)
    assert marks
    assert all(re.fullmatch("[a-z]+", mark) for mark in marks)
    assert not re.search(r"\d<sup>", page), "a thin space stands before the letter"
    assert re.search("\\d&#8239;<sup>[a-z]</sup>|—&#8239;<sup>[a-z]</sup>", page)


@pytest.mark.parametrize(
    ("devices", "told"),
    [
        (("GPU-1", "GPU-2"), "on 2 × NVIDIA H200"),
        (("GPU-1", "GPU-1"), "on NVIDIA H200"),
        (("GPU-1", "cpu"), "on AMD EPYC, NVIDIA H200"),
        (("cpu", "cpu"), "on AMD EPYC"),
    ],
)
def test_the_head_of_the_page_names_the_hardware(tmp_path: Path, devices: tuple[str, str], told: str) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    for block, device in enumerate(devices, start=1):
        stored = environment(**({"measuring": {}} if device == "cpu" else {"gpu": {"uuid": device}}))
        builder.run(INFER, block, {"latency_mean_ms": 1.0}, labels={"device": device}, environment=stored)
    page = write_report(load(builder.path)).read_text()
    head = page.partition('<p class="facts">')[2].partition("</p>")[0]
    assert f"<span>{told}</span>" in head
    assert "GPU-" not in head


def test_a_device_that_no_run_named_keeps_its_own_name(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    builder.run(INFER, 1, {"latency_mean_ms": 1.0}, labels={"device": "GPU-7"}, environment={"schema_version": 1})
    assert "<span>on GPU-7</span>" in write_report(load(builder.path)).read_text()


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
    assert "6 candidates compared with a baseline: " in found
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
    assert "No run is ok, so there are no numbers" in page
    assert "segfault: signal 11" in page


def test_no_runs_at_all_still_make_a_report(tmp_path: Path) -> None:
    page = write_report(load(CampaignBuilder(tmp_path / "c", [INFER], repetitions=2).path)).read_text()
    assert "Coverage is incomplete" in page
    assert "did not run" in page


def test_cases_that_have_no_run_yet_are_counted_and_have_no_row(tmp_path: Path) -> None:
    third = INFER.with_factors(precision="fp16")
    declared = {"baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.1}}
    builder = CampaignBuilder(tmp_path / "c", [INFER, INT8, third], repetitions=2, declared=declared)
    for case in (INFER, INT8):
        for block in (1, 2):
            builder.run(case, block, {"latency_mean_ms": 1.0 + block / 50})
    page = write_report(load(builder.path)).read_text()
    assert page.count("Left out: 1 row with a case that did not run.") == 2  # of the cases, and of the verdicts
    cases = (builder.path / "report/tables/cases-infer.csv").read_text()
    assert len(cases.splitlines()) == 1 + 2


def test_one_repetition_says_that_it_has_no_interval(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=1).path)).read_text()
    assert "One repetition" in page
    assert "one repetition gives no interval" in page
    assert "one repetition:" not in page


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
            valid = {"timing": Validity(False, reasons_of("not_steady"))} if case.path == "rust" else {}
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


# --- what a referee would misread ------------------------------------------------------------------------------------


def test_a_verdict_without_a_number_reads_as_in_the_headline(typical: Path) -> None:
    verdicts = [row["verdict"] for row in rows_of(typical, "verdicts-1")]
    headline = re.search(r"(\d+) candidates[^<]*?(\d+) could not be measured", typical.read_text())
    assert headline is not None
    assert verdicts.count("not measured") == int(headline[2])
    assert len(verdicts) == sum(
        row["verdict"] in ("accepted", "rejected", "undecided") for row in rows_of(typical, "verdicts-1")
    ) + int(headline[2])


def test_a_case_that_failed_in_two_ways_has_a_row_for_each(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=3)
    for block, outcome, reason in ((1, "timeout", "limit"), (2, "crashed", "sigsegv"), (3, "timeout", "limit")):
        builder.run(INFER, block, outcome=outcome, reason=reason)
    found = {
        (row["outcome"], row["reason"], row["runs"]) for row in rows_of(write_report(load(builder.path)), "not-ok")
    }
    assert found == {("timeout", "limit", "2"), ("crashed", "sigsegv", "1")}


def test_what_could_be_detected_is_a_factor_and_a_difference_has_its_unit(tmp_path: Path) -> None:
    builder = CampaignBuilder(
        tmp_path / "c", [INFER, INT8], repetitions=3, declared={"baseline": {"precision": "fp32"}}
    )
    for block, noise in ((1, 1.0), (2, 3.0), (3, 0.5)):
        builder.run(INFER, block, {"latency_mean_ms": 1.0, "gpu_tail_energy_j": 1.0})
        builder.run(INT8, block, {"latency_mean_ms": noise, "gpu_tail_energy_j": noise})
    page = write_report(load(builder.path))
    mean, tail = rows_of(page, "effects-1")
    assert tail["metric"] == "Δ GPU energy after the window (J)"
    shown = (page.parent / "tables" / "effects-1.md").read_text()
    assert f"{float(mean['smallest_detectable']):.0f}" in shown.split("Mean latency")[1].splitlines()[0].split("|")[-2]
    assert "×" in shown.split("Mean latency")[1].splitlines()[0].split("|")[-2]
    assert "%" not in shown.split("Mean latency")[1].splitlines()[0]


def test_an_accuracy_says_over_how_many_images_and_that_n_counts_runs(typical: Path) -> None:
    notes = (typical.parent / "tables" / "cases-accuracy.md").read_text()
    images = {row["top1_percent_n"] for row in rows_of(typical, "cases-accuracy")}
    assert f"over the {images.pop()} images of one run" in notes
    assert "n is the number of runs, not of images" in notes


def test_every_row_of_cases_names_the_folder_of_its_runs(typical: Path) -> None:
    runs = typical.parent.parent / "runs"
    for name in ("cases-infer", "cases-accuracy", "table1-by-batch"):
        assert all((runs / row["case_id"]).is_dir() for row in rows_of(typical, name))


def test_runs_that_do_not_count_are_named_and_in_no_number(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    for block in (1, 2, 3):
        builder.run(INFER, block, {"latency_mean_ms": float(block)})
    page = write_report(load(builder.path))
    assert rows_of(page, "metrics")[0]["n"] == "2"
    assert (
        "Not counted, because of blocks beyond the plan's repetitions: 1 run."
        in (page.parent / "tables" / "coverage.md").read_text()
    )


def test_a_caution_is_counted_once_a_run(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    twice = [Caution(CautionCode.NOT_STEADY, "shift", name) for name in ("latency_mean_ms", "latency_depth1_p50_ms")]
    builder.run(INFER, 1, {"latency_mean_ms": 1.0, "latency_depth1_p50_ms": 1.0}, cautions=twice)
    assert "not steady (1)" in write_report(load(builder.path)).read_text()
