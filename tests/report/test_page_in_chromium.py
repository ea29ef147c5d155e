# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: no complaint, no request, tables that sort, nothing that overflows the window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from pybench.dataset import load
from pybench.report import write_report
from tests.report.browser import Browser
from tests.support.campaigns import build_typical

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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("Chromium is not installed: the page was not tested in a browser")
    builder = build_typical(tmp_path_factory.mktemp("page") / "c", repetitions=3, protocols=["welch-mann-whitney"])
    page = write_report(load(builder.path))
    with Browser(program, tmp_path_factory.mktemp("profile")) as opened:
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
