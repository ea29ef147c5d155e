# SPDX-License-Identifier: Apache-2.0
"""Energy in detail, as a page shows it.

The numbers are from the runs' own files, in a real browser, and from a GPU that is replayed from a recording through
the whole program.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from pybench.analysis.findings.joules import find_joules
from pybench.case import Case
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.sensors import PLAIN_METHODS
from pybench.cli import main
from pybench.dataset import load
from pybench.report import canvas, write_report
from pybench.report.sections.energy.power import draw_powers
from tests.measure.replay import TRACE, UUID, build_replay_library
from tests.report.browser import Browser
from tests.report.pages import rows_of, section
from tests.report.test_page_in_chromium import PROGRAMS
from tests.support.campaigns import CampaignBuilder, build_typical, finish_again
from tests.support.energies import ON_A_BOARD, SENSOR, energy_metrics, energy_window, store_energy

INFER = Case(workload="infer", model="digits-cnn", runtime="torch")


def made(folder: Path, cases: list[Case], **changes: Any) -> Path:
    """The page of a campaign in which every case has one run with an energy budget."""
    builder = CampaignBuilder(folder / "c", cases, repetitions=1)
    for case in cases:
        store_energy(builder.run(case, 1, energy_metrics(), environment=ON_A_BOARD), energy_window(**changes))
    return write_report(load(builder.path))


def test_a_campaign_without_a_gpu_has_no_such_section(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=1).path))
    assert "joules" not in page.read_text()
    assert not list((page.parent / "tables").glob("budget*"))


def test_the_budget_has_every_part_and_by_how_much_plain_methods_are_off(tmp_path: Path) -> None:
    rows = {row["what"]: row for row in rows_of(made(tmp_path, [INFER]), "budget-1")}
    assert float(rows["Energy"]["value"]) == 600.0
    assert float(rows["± within-board, 95 %"]["value"]) == pytest.approx(1.96 * 5, rel=1e-3)
    assert float(rows["± absolute, 95 %"]["value"]) == pytest.approx(1.96 * 13, rel=1e-3)
    shares = {name: float(rows[name]["share_percent"]) for name in rows if name.startswith("u: ")}
    assert shares == {
        "u: between samples": 0.5,
        "u: state of the board": pytest.approx(2 / 3),
        "u: gain of the board": pytest.approx(2.0),
    }
    assert float(rows["Counter difference"]["share_percent"]) == pytest.approx(-10)
    assert rows["Polled average power"]["value"] == ""
    assert (rows["Profile"]["value"], rows["Driver"]["value"]) == ("measured", "580.1")
    assert float(rows["Delay of a sample"]["value"]) == pytest.approx(3.6)


def test_a_power_figure_is_drawn_once_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, drawn = Figure.draw, []

    def draw_and_count(figure: Figure, renderer: Any) -> None:
        drawn.append(figure)
        draw(figure, renderer)

    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    store_energy(builder.run(INFER, 1, energy_metrics(), environment=ON_A_BOARD), energy_window())
    monkeypatch.setattr(Figure, "draw", draw_and_count)
    (drawing,) = draw_powers(find_joules(load(builder.path)), ["infer"])
    shown = canvas.draw(drawing)
    assert shown.name == "power-1"
    assert len(drawn) == 2  # SVG and PDF


def test_an_invalid_energy_says_so_with_its_reasons(tmp_path: Path) -> None:
    reasons = ["channels_disagree: samples say 1 J", "sensor_assumed: this board's sensor was not characterised"]
    page = made(tmp_path, [INFER], valid=False, reasons=reasons)
    (row,) = rows_of(page, "joules")
    assert (row["valid"], row["reasons"]) == ("false", "; ".join(reasons))
    assert "samples say 1 J" in section(page, "joules")
    assert ">NO<" in section(page, "joules")


def test_an_energy_that_could_not_be_told_is_a_dash_with_its_reason(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("energy_j", "u_within_j", "u_absolute_j", "net_j", "u_net_j", "tail_j", "u_tail_j"))
    page = made(tmp_path, [INFER], **nothing, parts_j={}, valid=False, reasons=["power_unreadable: no samples"])
    (row,) = rows_of(page, "joules")
    assert (row["energy_j"], row["absolute_95_j"]) == ("", "")
    assert "energy of this window is unknown" in section(page, "joules")
    assert "power_unreadable" in section(page, "joules")


def test_the_page_shows_a_readable_number_of_runs_and_the_files_hold_the_rest(tmp_path: Path) -> None:
    page = made(tmp_path, [INFER.with_factors(batch=batch) for batch in range(1, 6)])
    shown = section(page, "joules")
    assert len(re.findall(r'id="figure-power-\d+"', shown)) == 4
    assert len(rows_of(page, "joules")) == 5
    assert 'href="tables/budget-5.csv"' in shown
    assert 'href="figures/power-5.svg"' in shown
    assert (page.parent / "figures" / "power-5.svg").is_file()


@pytest.mark.slow
def test_of_many_cases_only_the_power_on_the_page_is_drawn_and_the_page_says_so(tmp_path: Path) -> None:
    page = made(tmp_path, [INFER.with_factors(batch=batch) for batch in range(1, 26)])
    assert "Power is drawn for the first 4 of 25 cases." in section(page, "joules")
    assert len(list((page.parent / "figures").glob("power-*.svg"))) == 4
    assert len(list((page.parent / "tables").glob("budget-*.csv"))) == 25
    assert 'figures/power-5.svg"' not in page.read_text()


def test_a_joule_in_a_table_of_cases_carries_the_absolute_interval(tmp_path: Path) -> None:
    page = made(tmp_path, [INFER])
    (row,) = rows_of(page, "energy-infer")
    assert float(row["gpu_energy_j_absolute_95"]) == pytest.approx(1.96 * 13, rel=1e-3)
    assert float(row["gpu_tail_energy_j"]) == -1.0
    table = page.read_text().partition('id="table-energy-infer"')[2].partition("</figure>")[0]
    assert '0.600 <span class="interval">± 0.025</span>' in table
    assert "unknown gain" in table


def test_the_same_runs_give_the_same_figures(tmp_path: Path) -> None:
    page = made(tmp_path, [INFER])
    page, again = (write_report(load(page.parent.parent), tmp_path / name, pdf=True) for name in ("first", "again"))
    for file in ("figures/power-1.svg", "figures/power-1.pdf", "tables/budget-1.csv"):
        assert (page.parent / file).read_bytes() == (again.parent / file).read_bytes()


def test_a_long_trace_keeps_its_peaks_and_stays_small(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    directory = builder.run(INFER, 1, energy_metrics(), environment=ON_A_BOARD)
    store_energy(directory, energy_window(begin_s=1.0, end_s=1999.0, tail_end_s=2000.0), SENSOR)
    lines = [f"{20_000_000 if tick else 0},{900.0 if tick == 54321 else 300.0}" for tick in range(100_000)]
    directory.file("power_samples.csv").write_text("\n".join(["gap_ns,power_w", *lines]) + "\n")
    summary = json.loads(directory.file("summary.json").read_text())
    summary["windows"]["timing"] |= {"begin_ns": 10**9, "end_ns": 1999 * 10**9}
    directory.file("summary.json").write_text(json.dumps(summary))
    finish_again(directory.path)
    figure = write_report(load(builder.path)).parent / "figures" / "power-1.svg"
    assert figure.stat().st_size < 1_000_000
    heights = [
        float(place) for place in re.findall(r'<use xlink:href="#\w+" x="[\d.]+" y="([\d.]+)"', figure.read_text())
    ]
    assert min(heights) < sorted(heights)[2] - 20  # the one sample of 900 W stands above all others


# --- a replayed GPU, through the whole program -----------------------------------------------------------------------

PLAN = f"""\
schema_version: 1
name: at-rest
seed: 1
repetitions: 1
defaults: {{warmup_iterations: 0, iterations: 20, idle_window_s: 0.4}}
matrix:
  - {{workload: noop, device: {UUID}, energy_window_s: 1.2}}
  - {{workload: noop, device: cpu, energy_window_s: 0.1}}
  - {{workload: noop, device: GPU-11111111-2222-3333-4444-555555555555, energy_window_s: 0.1}}
"""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaign's folder: run by the command line, on the GPU of a recording, and reported."""
    folder = tmp_path_factory.mktemp("replayed")
    (folder / "plan.yaml").write_text(PLAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYBENCH_NVML_LIBRARY", str(build_replay_library(folder)))
        patch.setenv("PYBENCH_REPLAY_TRACE", str(TRACE))
        patch.delenv("PYBENCH_REPLAY_SPEED", raising=False)
        # One of the three cases names a GPU that is not there: its cell is covered, as unsupported.
        assert main(["run", str(folder / "plan.yaml"), "--out", str(folder / "c")]) == 0
    assert main(["report", str(folder / "c")]) == 0
    return folder / "c"


@pytest.mark.slow
def test_a_replayed_gpu_is_reported_with_the_numbers_of_its_run(replayed: Path) -> None:
    assert sorted(load(replayed).runs["outcome"]) == ["ok", "ok", "unsupported"]
    (file,) = replayed.glob("runs/*/*/*/energy.json")
    (window,) = json.loads(file.read_text())["windows"]
    summary = json.loads(file.with_name("summary.json").read_text())["metrics"]
    page = replayed / "report" / "index.html"
    (row,) = rows_of(page, "joules")
    assert float(row["energy_j"]) == window["energy_j"] == summary["gpu_energy_j"]["value"]
    assert float(row["absolute_95_j"]) == pytest.approx(1.96 * window["u_absolute_j"], rel=1e-3)
    assert float(row["net_absolute_95_j"]) == pytest.approx(1.96 * summary["gpu_net_energy_j"]["u_absolute"], rel=1e-3)
    assert float(row["tail_absolute_95_j"]) == pytest.approx(
        1.96 * summary["gpu_tail_energy_j"]["u_absolute"], rel=1e-3
    )
    for method in ("counter-difference", "average-trapezoid", "instant-trapezoid"):
        off = 100 * (window["plain_j"][method] / window["energy_j"] - 1)
        assert float(row[f"{method}_error_percent"]) == pytest.approx(off)
    budget = {row["what"]: row for row in rows_of(page, "budget-1")}
    assert len([what for what in budget if what.startswith("u: ")]) == len(window["parts_j"]) + 1
    assert budget["Profile"]["value"] == "assumed"


def test_the_trace_and_the_budget_of_a_replayed_gpu_in_the_browser(replayed: Path, tmp_path: Path) -> None:
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("Chromium is not installed: the page was not tested in a browser")
    (file,) = replayed.glob("runs/*/*/*/energy.json")
    (window,) = json.loads(file.read_text())["windows"]
    with Browser(program, tmp_path) as browser:
        browser.open(replayed / "report" / "index.html")
        assert browser.complaints() == []
        texts = browser.evaluate(
            "Array.from(document.querySelectorAll('#figure-power-1 svg text')).map((text) => text.textContent.trim())"
        )
        for lane in ("idle before", "timing window", "energy window", "tail", "idle after"):
            assert lane in texts
        curves = {"driver's samples, as stamped", "instant field, as polled", "power, sensor's delay and lag removed"}
        assert curves <= set(texts)
        size = browser.evaluate(
            "(() => { const box = document.querySelector('#figure-power-1 svg').getBoundingClientRect();"
            " return [box.width, box.height]; })()"
        )
        assert size[0] > 600
        assert size[1] > 400
        cells = browser.evaluate(
            "Array.from(document.querySelectorAll('#table-budget-1 tbody tr')).map((row) =>"
            " [row.cells[0].textContent, Number(row.cells[1].dataset.sort)])"
        )
        assert dict(cells)["Energy"] == window["energy_j"]
        assert dict(cells)["u: state of the board"] == window["parts_j"]["board_state"]
        wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert browser.evaluate(wide) is True


def test_labels_that_are_listed_have_no_commas() -> None:
    labels = [method.label for method in PLAIN_METHODS.values()] + [metric.label for metric in METRICS.values()]
    assert not [label for label in labels if "," in label]
