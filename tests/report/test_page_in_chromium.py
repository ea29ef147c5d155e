# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: no complaint, no request, nothing that overflows, and each answer of its script.

Each test of a view goes to the fragment that it begins with.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.dataset import load
from pybench.report import write_report
from tests.report.browser import ARROW_DOWN, ARROW_RIGHT, ENTER, ESCAPE, Browser
from tests.support.campaigns import CampaignBuilder, build_typical, typical_cases

pytestmark = pytest.mark.process

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
COLUMN = """
(() => {{
  const table = document.querySelector('#table-cases-infer table');
  const heads = Array.from(table.tHead.rows[0].cells);
  const index = heads.findIndex((head) => head.textContent.startsWith('{title}'));
  for (let click = 0; click < {clicks}; click++) heads[index].querySelector('button').click();
  return [heads[index].getAttribute('aria-sort'), Array.from(table.tBodies[0].rows).map((row) =>
  row.cells[index].textContent)];
}})()
"""


SHOWN = "Array.from(document.querySelector('#table-{table}').querySelectorAll('tbody tr')"
# Set a select of the bar, as a person does.
CHOOSE = """
(() => {{
  const labels = Array.from(document.querySelectorAll('.filter label'));
  const label = labels.find((one) => one.firstChild.data === '{factor}');
  const select = label.querySelector('select');
  select.value = Array.from(select.options).find((one) => one.text === '{value}').value;
  select.dispatchEvent(new Event('change'));
}})()
"""
# Waits for the page as it is after a change of the address.
AFTER = """
new Promise((done) => {{
  addEventListener('hashchange', () => setTimeout(() => done(location.hash)), {{ once: true }});
  {change};
}})
"""


def program() -> str:
    """Skips the test where there is none."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("Chromium is not installed: the page was not tested in a browser")
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = program()
    builder = build_typical(tmp_path_factory.mktemp("page") / "c", repetitions=3, protocols=["welch-mann-whitney"])
    page = write_report(load(builder.path))
    with Browser(chromium, tmp_path_factory.mktemp("profile")) as opened:
        opened.open(page)
        yield opened


def test_the_browser_has_nothing_to_complain_of(browser: Browser) -> None:
    assert browser.complaints() == []


def test_the_page_asks_for_itself_and_nothing_else(browser: Browser) -> None:
    assert [url for url in browser.requests() if not url.startswith("data:")] == [browser.evaluate("location.href")]


def _values(texts: list[str]) -> list[float]:
    return [float(text.split("[")[0].replace(",", "")) for text in texts if not text.startswith("—")]


def test_a_click_on_a_column_sorts_by_number_and_missing_stay_last(browser: Browser) -> None:
    direction, shown = browser.evaluate(COLUMN.format(title="Mean latency", clicks=1))
    assert direction == "ascending"
    assert _values(shown) == sorted(_values(shown))
    assert len(_values(shown)) == 5
    assert shown[-1].startswith("—")
    direction, shown = browser.evaluate(COLUMN.format(title="Mean latency", clicks=1))
    assert direction == "descending"
    assert _values(shown) == sorted(_values(shown), reverse=True)
    assert shown[-1].startswith("—")


def test_a_blank_cell_stays_behind_numbers(browser: Browser) -> None:
    """As of a metric without an absolute uncertainty, which this campaign lacks: one cell is made blank."""
    browser.evaluate("""
(() => {
  const table = document.querySelector('#table-metrics table');
  const index = Array.from(table.tHead.rows[0].cells).findIndex((head) => head.textContent === 'Mean');
  const cell = table.tBodies[0].rows[0].cells[index];
  cell.replaceChildren();
  cell.removeAttribute('data-sort');
})()
""")
    for direction in ("ascending", "descending"):
        script = COLUMN.replace("#table-cases-infer", "#table-metrics").format(title="Mean", clicks=1)
        sorted_as, shown = browser.evaluate(script)
        assert sorted_as == direction
        assert _values([text for text in shown[shown.index("") :] if text]) == []


def test_text_sorts_as_text(browser: Browser) -> None:
    _, shown = browser.evaluate(COLUMN.format(title="Precision", clicks=1))
    assert shown == sorted(shown)


def test_the_protocols_tables_are_shown_and_sorted_like_the_others(browser: Browser) -> None:
    shown = browser.evaluate("Array.from(document.querySelectorAll('#protocol figure.table')).map((one) => one.id)")
    assert shown[:2] == ["table-table1", "table-table1-by-batch"]
    heights = "Array.from(document.querySelectorAll('#protocol figure.table')).map((one) => one.offsetHeight)"
    assert min(browser.evaluate(heights)) > 40
    script = COLUMN.replace("#table-cases-infer", "#table-table1-by-batch").format(title="Mean latency", clicks=1)
    direction, values = browser.evaluate(script)
    assert direction == "ascending"
    numbers = [float(text.split(" ")[0]) for text in values if not text.startswith("—")]
    assert numbers == sorted(numbers)


def test_the_body_does_not_overflow_the_window(browser: Browser) -> None:
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth") is True


def test_every_figure_is_drawn(browser: Browser) -> None:
    heights = browser.evaluate(
        "Array.from(document.querySelectorAll('figure.picture svg')).map((s) => s.getBoundingClientRect().height)"
    )
    assert len(heights) >= 6
    assert min(heights) > 80


def test_a_script_that_the_policy_does_not_name_cannot_run(browser: Browser) -> None:
    browser.evaluate(
        "(() => { const added = document.createElement('script');"
        " added.textContent = 'window.ran = true'; document.body.append(added); })()"
    )
    assert browser.evaluate("window.ran === undefined") is True


def go(browser: Browser, fragment: str) -> None:
    """Follows a link to this fragment."""
    if browser.evaluate("location.hash") != fragment:
        browser.evaluate(AFTER.format(change=f"location.hash = {fragment!r}"))


def shown(browser: Browser, table: str) -> list[str]:
    """The rows of a table that are in the page, as text: browsers do not lay out what is not in the window."""
    text = "(row) => Array.from(row.cells, (cell) => cell.textContent).join(' ')"
    return list(browser.evaluate(f"{SHOWN.format(table=table)}, {text})"))


def count(browser: Browser, table: str) -> str:
    return str(browser.evaluate(f"document.querySelector('#table-{table} .count').textContent"))


def choose(browser: Browser, factor: str, value: str) -> None:
    browser.evaluate(CHOOSE.format(factor=factor, value=value))


def status(browser: Browser) -> str:
    return str(browser.evaluate("document.querySelector('.filter output').textContent"))


def test_the_bar_has_the_factors_that_vary_with_their_values(browser: Browser) -> None:
    go(browser, "#?")
    labels = "Array.from(document.querySelectorAll('.filter label'), (one) => one.innerText.split('\\n')[0].trim())"
    assert browser.evaluate(labels) == ["Workload", "Model", "Runtime", "Precision", "Batch", "Path"]
    values = "Array.from(document.querySelectorAll('.filter select')[4].options, (one) => one.text)"
    assert browser.evaluate(values) == ["all", "1", "8", "32"]
    assert status(browser) == "12 of 12 cases."


def test_a_factor_filters_tables_of_cases_and_of_comparisons(browser: Browser) -> None:
    go(browser, "#?")
    everything = len(shown(browser, "cases-infer"))
    choose(browser, "Precision", "int8")
    assert browser.evaluate("location.hash") == "#?precision=int8"
    assert status(browser) == "4 of 12 cases. Sentences are of all cases."
    assert everything == 6
    assert len(rows := shown(browser, "cases-infer")) == 3
    assert all("int8" in row and "fp32" not in row for row in rows)
    assert count(browser, "cases-infer") == "3 of 6 rows"
    assert all("int8 fp32" in row for row in shown(browser, "verdicts-1"))
    assert {row.split(" ")[0] for row in shown(browser, "metrics")} == {"infer", "accuracy"}
    assert count(browser, "environment") == ""  # no table of cases


def test_two_factors_are_one_case_that_has_both(browser: Browser) -> None:
    go(browser, "#?precision=int8")
    choose(browser, "Batch", "1")
    (row,) = shown(browser, "cases-infer")
    assert "int8" in row
    choose(browser, "Precision", "all")
    assert browser.evaluate("location.hash") == "#?batch=1"
    assert count(browser, "cases-infer") == "2 of 6 rows"


def test_cases_without_a_factor_are_a_choice(tmp_path: Path) -> None:
    case = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
    cases = [case, *(case.with_factors(precision="int8", granularity=name) for name in ("tensor", "channel"))]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1)
    for one in cases:
        builder.run(one, 1, {"latency_mean_ms": 1.0})
    with Browser(program(), tmp_path / "profile") as browser:
        browser.open(write_report(load(builder.path)))
        choose(browser, "Granularity", "tensor")
        assert [row.split(" ")[:2] for row in shown(browser, "cases-infer")] == [["int8", "tensor"]]
        choose(browser, "Granularity", "(without)")
        assert [row.split(" ")[0] for row in shown(browser, "cases-infer")] == ["fp32"]
        assert browser.evaluate("location.hash") == "#?granularity="


def test_a_link_shows_its_view_and_back_the_view_before(browser: Browser) -> None:
    go(browser, "#?precision=int8&sort=cases-infer*-4&find=metrics*p99")
    assert count(browser, "cases-infer") == "3 of 6 rows"
    assert "-" not in count(browser, "metrics")
    assert all("p99" in row for row in shown(browser, "metrics"))
    assert browser.evaluate("document.querySelector('#table-metrics input').value") == "p99"
    assert browser.evaluate("document.querySelectorAll('#table-cases-infer th')[3].ariaSort") == "descending"
    choose(browser, "Precision", "fp32")
    assert browser.evaluate(AFTER.format(change="history.back()")).startswith("#?precision=int8")
    assert all("int8" in row for row in shown(browser, "cases-infer"))
    assert browser.evaluate("document.querySelectorAll('.filter select')[3].selectedOptions[0].text") == "int8"


def test_a_link_that_names_what_is_not_here_says_so(browser: Browser) -> None:
    go(browser, "#?precision=int3&colour=red&sort=pets*1")
    unknown = ("precision int3", "colour red", "table pets")
    assert status(browser) == " ".join(["12 of 12 cases.", *(f"Not in this campaign: {one}." for one in unknown)])


def test_a_link_to_a_section_keeps_the_view(browser: Browser) -> None:
    go(browser, "#?precision=int8")
    assert browser.evaluate(AFTER.format(change="document.querySelector('nav a[href=\"#behind\"]').click()")) == (
        "#behind?precision=int8"
    )
    assert len(shown(browser, "cases-infer")) == 3
    top = "document.querySelector('#behind').getBoundingClientRect().top"
    assert 0 <= browser.evaluate(f"new Promise((done) => setTimeout(() => done({top}), 200))") < 200


def test_marks_of_other_cases_are_dimmed_in_figures(browser: Browser) -> None:
    go(browser, "#?precision=int8")
    groups = "Array.from(document.querySelectorAll('#figure-infer-latency_mean [data-cases]'))"
    assert browser.evaluate(f"new Set({groups}.map((one) => one.classList.contains('dim'))).size") == 2
    assert float(browser.evaluate(f"getComputedStyle({groups}.find((one) => one.matches('.dim'))).opacity")) < 0.2
    whole = "Array.from(document.querySelectorAll('figure.picture.whole'), (one) => one.id)"
    assert "figure-order" in browser.evaluate(whole)  # it has every run, and says that nothing is filtered
    go(browser, "#?")
    assert browser.evaluate(f"{groups}.some((one) => one.classList.contains('dim'))") is False
    assert browser.evaluate(whole) == []


def test_words_of_a_search_are_all_in_its_rows(browser: Browser) -> None:
    go(browser, "#?")
    typed = "Object.assign(document.querySelector('#table-metrics input'), {{ value: '{words}' }})"
    event = ".dispatchEvent(new Event('input'))"
    assert browser.evaluate(AFTER.format(change=typed.format(words="P99 int8") + event)) == "#?find=metrics*P99+int8"
    rows = shown(browser, "metrics")
    assert rows
    assert all("p99" in row and "int8" in row for row in rows)
    assert count(browser, "metrics").startswith(f"{len(rows)} of ")
    steps = browser.evaluate("history.length")
    browser.evaluate(AFTER.format(change=typed.format(words="P99 int8 batch") + event))
    assert browser.evaluate("history.length") == steps  # what is typed in one go is one step back
    browser.evaluate("document.querySelector('.filter button').click()")
    assert count(browser, "metrics") == ""


def test_short_tables_have_no_search(browser: Browser) -> None:
    assert browser.evaluate("document.querySelector('#table-cases-infer input')") is None


def test_a_column_is_sorted_by_the_keyboard(browser: Browser) -> None:
    go(browser, "#?")
    browser.evaluate("document.querySelectorAll('#table-cases-infer th button')[3].focus()")
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    for direction in ("ascending", "descending"):
        browser.press(*ENTER)
        assert browser.evaluate("document.activeElement.parentElement.ariaSort") == direction
    assert browser.evaluate("location.hash") == "#?sort=cases-infer*-4"
    before = shown(browser, "cases-infer")
    browser.evaluate(AFTER.format(change="history.go(-2)"))
    assert shown(browser, "cases-infer") != before  # in the order of the report again


def test_the_card_of_a_number_says_what_the_page_knows_of_it(browser: Browser) -> None:
    go(browser, "#?")
    stops = "document.querySelectorAll('#table-cases-infer td[tabindex]')"
    assert browser.evaluate(f"{stops}.length") == 1
    first = "Array.from(document.querySelectorAll('#table-cases-infer td.number')).find((one) => one.dataset.sort)"
    browser.evaluate(f"{first}.click()")
    browser.press(*ARROW_DOWN)
    browser.press(*ARROW_RIGHT)
    assert browser.evaluate(f"{stops}.length") == 1
    assert browser.evaluate("document.activeElement.tagName") == "TD"
    said = browser.evaluate("document.querySelector('#card').innerText")
    assert "Mean latency" in said
    assert "[" in said
    assert "n = 3" in said
    assert "Runs: infer digits-cnn onnxruntime batch=8" in said
    assert browser.evaluate("document.activeElement.getAttribute('aria-describedby')") == "card"
    href = browser.evaluate("document.querySelector('#card a').href")
    assert href.endswith("/runs/" + typical_cases()[1].id + "/")
    browser.press(*ESCAPE)
    assert browser.evaluate("document.querySelector('#card').hidden") is True


def test_a_pointer_on_a_number_shows_its_caution_or_reason(browser: Browser) -> None:
    go(browser, "#?")
    place = """(() => {
      const cell = document.querySelector('#table-cases-infer td.number:is([title], [data-note])');
      cell.scrollIntoView({ block: 'center', inline: 'center' });
      const { x, y, width, height } = cell.getBoundingClientRect();
      return [x + width / 2, y + height / 2, cell.title || cell.dataset.note];
    })()"""
    x, y, note = browser.evaluate(place)
    browser.point_at(x, y)
    wait = "new Promise((done) => setTimeout(() => done(document.querySelector('#card').innerText), 400))"
    assert note in browser.evaluate(wait)


def test_a_long_table_shows_its_first_rows_and_all_on_demand_in_print_and_without_scripts(tmp_path: Path) -> None:
    cases = [Case(workload="noop", threads=number) for number in range(1, 403)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1, declared=[])
    for one in cases:
        builder.run(one, 1, {"latency_mean_ms": float(one.threads or 0)})
    with Browser(program(), tmp_path / "profile") as browser:
        page = write_report(load(builder.path))
        browser.open(page, scripts=False)
        assert len(shown(browser, "cases-noop")) == 402
        assert browser.evaluate("document.querySelector('.filter, button, input, .card')") is None
        browser.events.clear()
        browser.open(page)
        assert len(shown(browser, "cases-noop")) == 300
        more = "document.querySelector('#table-cases-noop + .more, #table-cases-noop .more')"
        assert browser.evaluate(f"{more}.textContent") == "Show 102 more rows"
        go(browser, "#?sort=cases-noop*-2")
        assert shown(browser, "cases-noop")[0].startswith("402 402")
        browser.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert len(shown(browser, "cases-noop")) == 402
        browser.evaluate("dispatchEvent(new Event('afterprint'))")
        assert len(shown(browser, "cases-noop")) == 300
        browser.evaluate(f"{more}.click()")
        assert len(shown(browser, "cases-noop")) == 402
        assert browser.evaluate(f"{more}.hidden") is True


def test_dark_mode_has_light_text_and_figures_on_a_light_card(browser: Browser) -> None:
    background = "getComputedStyle(document.querySelector('{}')).backgroundColor"
    browser.prefer("dark")
    assert sum(map(int, browser.evaluate(background.format("body"))[4:-1].split(", "))) < 150
    assert browser.evaluate(background.format("figure.picture svg")) == "rgb(255, 255, 255)"
    browser.prefer("light")
    assert browser.evaluate(background.format("body")) == "rgb(255, 255, 255)"


def test_the_script_is_small() -> None:
    assert len(resources.files("pybench.report").joinpath("templates", "page.js").read_bytes()) <= 20_000
