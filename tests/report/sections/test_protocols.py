# SPDX-License-Identifier: Apache-2.0
"""A named protocol in the report: the paper's Table 1 digit by digit, what was tested, why, and what threatens it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.analysis.protocols.trade_offs import BoundedValue, Figure, TradeOff, TradeOffVerdict
from pybench.case import Case
from pybench.case.contrasts import Criterion
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.protocols import PROTOCOLS
from pybench.dataset import load
from pybench.report import write_report
from pybench.report.sections.protocols.sentences import protocol_sentences
from pybench.report.sections.protocols.table_one import standing_text
from tests.report.pages import compile_latex, rows_of
from tests.support.campaigns import CampaignBuilder, build_typical
from tests.support.precision_campaign import INFER, build_precisions

NAME = "welch-mann-whitney"
TABLES = ("table1", "table1-by-batch", f"{NAME}-samples", f"{NAME}-pairs", f"{NAME}-anova")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(load(build_precisions(tmp_path_factory.mktemp("precisions") / "c")))


def tex(page: Path, name: str) -> str:
    return (page.parent / "tables" / f"{name}.tex").read_text()


# --- Table 1 ---------------------------------------------------------------------------------------------------------


def test_table_1_has_the_papers_columns_decimals_and_verdicts(page: Path) -> None:
    lines = tex(page, "table1").splitlines()
    body = lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")]
    assert [line.replace("{-}", "-").removesuffix(r" \\").split(" & ") for line in body if line != r"\midrule"] == [
        ["Precision", r"Top-1 (\%)", "Speed-up (1/8/32)", r"Energy reduction (\%)", "Engine (MB)",
         r"$\Delta$ Top-1 vs FP32 (pp)", "Status"],
        ["FP32", "80.00", "1.00 / 1.00 / 1.00", "0.0", "98.19", "0.00", "baseline"],
        ["FP16", "80.20", "4.30 / 4.30 / 4.30", "75.0", "49.27", "+0.20", "advantageous"],
        ["BF16", "79.40", "1.10 / 3.00 / 3.00", "68.0", "49.30", "$-$0.60", "advantageous at batch 8, 32 only"],
        ["INT8+FP16", "77.00", "5.20 / 5.20 / 5.17", "80.0 (a)", "25.65", "$-$3.00", "not advantageous"],
    ]  # fmt: skip


def test_table_1_prints_its_notes_below_itself(page: Path) -> None:
    notes = tex(page, "table1").partition(r"\end{tabular}")[2].replace("{-}", "-")
    for words in (
        r"in the window \textasciigrave{}energy\textasciigrave{}, method fused",
        r"(a) batch 1: the case: energy: window\_too\_short",
        r"Speed-up $\ge$ 1.15 (set by the plan)",
        "Arithmetic means over 30 repetitions",
        "(over 500 images)",
        "model resnet50, runtime tensorrt",
    ):
        assert words in notes, words


def test_the_full_table_has_every_metric_of_every_case(page: Path) -> None:
    stored = rows_of(page, "table1-by-batch")
    assert [(row["case"], row["batch"]) for row in stored[:4]] == [
        ("FP32", "1"), ("FP32", "8"), ("FP32", "32"), ("FP16", "1"),
    ]  # fmt: skip
    assert len(stored) == 12
    for metric in (
        "latency_mean_ms", "latency_p95_ms", "latency_p99_ms", "throughput_samples_per_s", "gpu_energy_per_sample_j",
        "peak_device_bytes", "top1_percent", "top5_percent", "model_bytes", "speedup", "top1_delta_pp",
    ):  # fmt: skip
        assert float(stored[4][metric]) > 0, metric
    assert stored[4]["latency_mean_ms_method"] == "Student t"
    assert [row["verdict_by_intervals"] for row in stored[3:9]] == [
        "accepted", "accepted", "accepted", "rejected", "undecided", "undecided",
    ]  # fmt: skip


def trade_offs_of(folder: Path, factor: str, values: tuple[int, ...], baseline: dict[str, object]) -> Path:
    """A report on FP32 and INT8 at each value of a factor."""
    cases = [
        INFER.with_factors(precision=precision, **{factor: value}) for precision in ("fp32", "int8") for value in values
    ]
    declared = {"baseline": baseline, "accept": {"speedup_min": 1.15}}
    builder = CampaignBuilder(folder, cases, repetitions=3, declared=declared, protocols=[NAME])
    for block in (1, 2, 3):
        for number, case in enumerate(cases):
            builder.run(case, block, {"latency_mean_ms": 10.0 - number + 0.01 * block})
    return write_report(load(folder))


def test_cases_that_differ_in_how_long_was_measured_have_rows_of_their_own(tmp_path: Path) -> None:
    page = trade_offs_of(tmp_path / "c", "iterations", (5, 300), {"precision": "fp32"})
    found = {row["case"]: float(row["speedup_batch_1"]) for row in rows_of(page, "table1")}
    assert list(found) == ["FP32, iterations 5", "FP32, iterations 300", "INT8, iterations 5", "INT8, iterations 300"]
    assert found["INT8, iterations 5"] == pytest.approx(10 / 8, rel=0.01)
    assert found["INT8, iterations 300"] == pytest.approx(9 / 7, rel=0.01)


def test_batches_that_are_compared_are_no_row_over_batches(tmp_path: Path) -> None:
    page = trade_offs_of(tmp_path / "c", "batch", (1, 4), {"batch": 1})
    assert not (page.parent / "tables/table1.csv").exists()
    found = {row["case"]: row["status"] == "baseline" for row in rows_of(page, "table1-by-batch")}
    assert found == {"FP32, batch 1": True, "FP32, batch 4": False, "INT8, batch 1": True, "INT8, batch 4": False}
    assert "Batch & Batch" not in tex(page, "table1-by-batch")


def test_an_interval_without_the_gain_of_the_board_has_no_plus_minus(page: Path) -> None:
    """± is the absolute interval of the tables of cases, which is wider."""
    table, notes = tex(page, "table1-by-batch").split(r"\end{tabular}")
    assert r"$\pm$" not in table
    assert "leaves out the gain of the board" in notes
    energies = [row["gpu_energy_per_sample_j"] for row in rows_of(page, "table1-by-batch")]
    assert any(energies)


def test_a_missing_energy_is_a_dash_with_its_reason_and_never_zero(page: Path) -> None:
    row = rows_of(page, "table1-by-batch")[9]
    assert (row["case"], row["batch"], row["gpu_energy_per_sample_j"]) == ("INT8+FP16", "1", "")
    assert row["energy_reduction_percent"] == ""
    line = next(one for one in tex(page, "table1-by-batch").splitlines() if one.startswith("INT8+FP16 & 1 &"))
    assert re.search(r"& --- \([a-z]\) &", line)


@pytest.mark.parametrize("name", TABLES)
def test_the_latex_is_balanced(page: Path, name: str) -> None:
    text = re.sub(r"(?m)^%.*$", "", tex(page, name))
    assert text.isascii()
    for environment in ("tabular", "minipage"):
        assert text.count(rf"\begin{{{environment}}}") == text.count(rf"\end{{{environment}}}") <= 1
    for rule in ("toprule", "midrule", "bottomrule"):
        assert text.count(rf"\{rule}") == 1
    unescaped = re.sub(r"\\[{}$%&#_]", "", text)
    assert unescaped.count("{") == unescaped.count("}")
    assert unescaped.count("$") % 2 == 0
    layout = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)
    assert layout is not None
    body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    for line in (one for one in body if one != r"\midrule"):
        assert re.sub(r"\\&", "", line).count("&") == len(layout[1]) - 1
        assert line.endswith(r" \\")


@pytest.mark.process
def test_the_latex_compiles(page: Path, tmp_path: Path) -> None:
    compile_latex("\n".join(rf"\begin{{table}}{tex(page, name)}\end{{table}}" for name in TABLES), tmp_path)


# --- what was tested -------------------------------------------------------------------------------------------------


def test_each_pair_says_which_test_it_had_and_why(page: Path) -> None:
    stored = rows_of(page, f"{NAME}-pairs")
    assert len(stored) == 54
    by_test = {row["test"]: row["why"] for row in stored}
    assert by_test["Welch t"].startswith("Shapiro-Wilk rejects neither sample (p ")
    assert by_test["Mann-Whitney U"] == "the first: Shapiro-Wilk p < 0.001"
    assert {row["effect_name"] for row in stored} == {"Hedges g*", "Cliff delta", ""}
    tested = [row for row in stored if row["p_value"]]
    assert len(tested) == 51
    assert all(float(row["p_holm"]) >= float(row["p_value"]) for row in tested)
    assert all(float(row["paired_ratio"]) > 0 for row in tested)
    assert sum(bool(row["p_tukey"]) for row in stored) == 6


def test_the_assumptions_of_anova_are_shown_where_it_is_left_out(page: Path) -> None:
    stored = rows_of(page, f"{NAME}-anova")
    assert [row["anova"] for row in stored].count("done") == 1
    left_out = [row for row in stored if row["anova"].startswith("not done: residuals")]
    assert left_out
    for row in left_out:
        assert float(row["residuals_shapiro_wilk_p"]) < 0.05 or float(row["brown_forsythe_p"]) < 0.05
        assert (row["f_statistic"], row["p_anova"]) == ("", "")


def test_samples_carry_interval_and_normality(page: Path) -> None:
    stored = rows_of(page, f"{NAME}-samples")
    assert len(stored) == 36
    assert {row["normal"] for row in stored} == {"not rejected", "rejected", ""}
    assert sum(row["normal"] == "rejected" for row in stored) == 2


def test_the_page_says_it_in_sentences_with_the_threats_below(page: Path) -> None:
    text = page.read_text()
    section = text[text.index('<section id="protocol"') : text.index('<section id="sure"')]
    for words in (
        '<b>FP16</b>: <span class="verdict">advantageous</span>: speed-up 4.30× / 4.30× / 4.30× at batch 1 / 8 / 32',
        "51 of 51 differ with p &lt; 0.05, 51 after Holm&#39;s correction; 3 could not be tested",
        "45 by Welch t and 6 by Mann-Whitney U. ",
        "It rejected 2 of 35 samples",
        "done for 1 of 9 combinations",
        "both tests agree on all 51 pairs",
    ):
        assert words in section, words
    assert section.count("<li>") == len(PROTOCOLS[NAME].threats)
    assert '<a href="#protocol">' in text


# --- other campaigns -------------------------------------------------------------------------------------------------


def test_without_a_named_protocol_there_is_no_such_section(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=2).path))
    assert "protocol" not in page.read_text().split("</style>")[1].split('id="plan"')[0].replace("protocol=", "")
    assert not (page.parent / "tables" / "table1.tex").exists()


def test_contrasts_of_other_factors_have_tables_of_their_own(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", protocols=[NAME]).path))
    first, second = tex(page, "table1"), tex(page, "table1-2")
    assert "Precision" in first
    assert "Runtime" in second
    assert "Model size (MB)" in second  # no engine here
    assert "no run has a valid energy" in second


def test_a_protocol_without_any_number_still_makes_a_report(tmp_path: Path) -> None:
    cases = [INFER, INFER.with_factors(precision="fp16")]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=2, protocols=[NAME, "bootstrap-mann-whitney"])
    for block in (1, 2):
        for case in cases:
            builder.run(case, block, outcome="unsupported", reason="no_tensorrt")
    page = write_report(load(builder.path))
    assert "no two cases have values" in page.read_text()
    assert "not judged" in tex(page, "table1")
    assert "unsupported: no\\_tensorrt" in tex(page, "table1")


def test_a_protocol_that_could_test_nothing_does_not_speak_of_agreement(tmp_path: Path) -> None:
    cases = [INFER, INFER.with_factors(precision="fp16")]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1, protocols=[NAME])
    for case, latency in zip(cases, (2.0, 1.0), strict=True):
        builder.run(case, 1, {"latency_mean_ms": latency})
    text = write_report(load(builder.path)).read_text()
    assert "0 of 0 differ" in text
    assert "Compared with paired blocks" not in text
    assert "residuals that cannot be tested" in text
    assert "residuals that are not normal" not in text


@pytest.mark.parametrize(
    ("standings", "text", "overall"),
    [
        ("aa", "advantageous", TradeOffVerdict.ADVANTAGEOUS),
        ("na", "advantageous at batch 8 only", TradeOffVerdict.NOT_JUDGED),
        ("n?", "not advantageous at batch 1; not judged at batch 8", TradeOffVerdict.NOT_JUDGED),
        ("a?", "advantageous at batch 1; not judged at batch 8", TradeOffVerdict.NOT_JUDGED),
        (
            "an?",
            "advantageous at batch 1; not advantageous at batch 8; not judged at batch 32",
            TradeOffVerdict.NOT_JUDGED,
        ),
        ("??", "not judged", TradeOffVerdict.NOT_JUDGED),
        ("b", "baseline", TradeOffVerdict.BASELINE),
    ],
)
def test_a_line_names_the_batches_that_could_not_be_judged(standings: str, text: str, overall: TradeOffVerdict) -> None:
    line = tuple(trade_off(batch, standing) for batch, standing in zip((1, 8, 32), standings, strict=False))
    assert standing_text(line) == (text, overall)


def trade_off(batch: int, standing: str) -> TradeOff:
    """`standing`: b(aseline), a(dvantageous), n(ot advantageous), ?"""
    speedup = {"a": 2.0, "n": 1.0}.get(standing)
    bounded = (
        BoundedValue(Criterion("speedup_min", METRICS["latency_mean_ms"], "ratio", "min", 1.15), speedup, False, "oom"),
    )
    case = INFER.with_factors(batch=batch, precision="fp32" if standing == "b" else "fp16")
    none = Figure(None, "not asked here")
    return TradeOff(case, case.with_factors(precision="fp32"), {}, none, none, none, bounded, None)


def test_the_second_papers_protocol_has_no_table_1(tmp_path: Path) -> None:
    cases = [Case(workload="tokenize", model="tinylm-small", runtime="torch", path=path) for path in ("hf", "rust")]
    builder = CampaignBuilder(
        tmp_path / "c", cases, protocols=["bootstrap-mann-whitney"], declared={"baseline": {"path": "hf"}}
    )
    for block in range(1, 6):
        for case, rate in zip(cases, (1e5, 1.1e5), strict=True):
            builder.run(case, block, {"throughput_tokens_per_s": rate + 100 * block})
    page = write_report(load(builder.path))
    tables = {file.stem for file in (page.parent / "tables").glob("*.tex")}
    assert {"bootstrap-mann-whitney-samples", "bootstrap-mann-whitney-pairs"} <= tables
    assert "table1" not in tables
    assert "bootstrap-mann-whitney-anova" not in tables


# --- what a referee would misread ------------------------------------------------------------------------------------


def test_a_case_in_two_comparisons_says_against_what(tmp_path: Path) -> None:
    torch = INFER.with_factors(runtime="torch")
    cases = [INFER, INFER.with_factors(precision="bf16"), torch, torch.with_factors(precision="bf16")]
    declared = [{"name": "a", "baseline": {"precision": "fp32"}}, {"name": "b", "baseline": {"runtime": "tensorrt"}}]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3, declared=declared, protocols=[NAME])
    for block in (1, 2, 3):
        for number, case in enumerate(cases, start=1):
            builder.run(case, block, {"latency_mean_ms": number + block / 10})
    (finding,) = analyse(load(builder.path)).protocols
    leads = [sentence.lead for sentence in protocol_sentences(finding) if sentence.verdict]
    assert leads == ["BF16, tensorrt (a)", "BF16, torch (a)", "FP32, torch (b)", "BF16, torch (b)"]


def test_a_baseline_without_an_accuracy_has_a_dash_for_its_difference(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER, INFER.with_factors(precision="bf16")], protocols=[NAME])
    for case in builder.cases:
        builder.run(case, 1, {"latency_mean_ms": 1.0})
    assert [row["top1_delta_pp"] for row in rows_of(write_report(load(builder.path)), "table1-by-batch")] == ["", ""]
