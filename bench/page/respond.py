# SPDX-License-Identifier: Apache-2.0
"""How long the report's page takes to answer, with many rows: `python -m bench.page.respond [ROWS]`, 10,000 by default.

The page is that of a made-up campaign, whose cases and rows are then multiplied until each of two tables has so many.
Chromium shows it without a window, scrolled to the table. A time begins with the event and ends with the frame after
it: script, style, layout and painting. Requires Chromium, and prints the median and the largest of nine times.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from pybench.dataset import load
from pybench.report import write_report
from tests.report.browser import Browser
from tests.support.campaigns import build_typical

TIMES = 9
TABLES = ("cases-infer", "metrics")
_CHOOSE = """
  const select = document.querySelectorAll('.filter select')[{factor}];
  select.value = select.value === '' ? '{value}' : '';
  select.dispatchEvent(new Event('change'));
"""
# The search box waits for the end of typing; the time begins then.
_SEARCH = """
  const table = tables.find(({ name }) => name === 'metrics');
  table.box.value = table.box.value === 'int8 p99' ? 'fp32 mean' : 'int8 p99';
  search(table);
"""
# What is done -> the table in view, and the script.
ACTIONS = {
    "choose a precision, and all again": ("cases-infer", _CHOOSE.format(factor=3, value=1)),
    "choose a batch, and all again": ("metrics", _CHOOSE.format(factor=4, value=0)),
    "sort by a number": ("cases-infer", "document.querySelectorAll('#table-cases-infer th button')[3].click();"),
    "sort by a text": ("metrics", "document.querySelectorAll('#table-metrics th button')[3].click();"),
    "search two words, and others": ("metrics", _SEARCH),
    "show the card of a number": ("metrics", "showCard(document.querySelector('#table-metrics td.number'));"),
}
_TIMED = """
new Promise((done) => requestAnimationFrame(() => {{
  const begun = performance.now();
  {action}
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
}}))
"""


def multiplied(page: str, rows: int) -> str:
    """The page with so many rows in `TABLES`, each of a case of its own."""
    campaign = json.loads(found[1]) if (found := re.search(r"data-campaign='([^']*)'", page)) else {"cases": []}
    of = len(campaign["cases"])
    campaign["cases"] = [campaign["cases"][number % of] for number in range(rows)]
    page = re.sub(r"data-campaign='[^']*'", lambda _: f"data-campaign='{json.dumps(campaign)}'", page, count=1)
    for name in TABLES:
        head, begin, rest = page.partition(f'id="table-{name}"')
        before, tag, body = rest.partition("<tbody>\n")
        body, end, after = body.partition("</tbody>")
        few = re.findall(r"<tr.*?</tr>\n", body, re.DOTALL)
        many = [_renumbered(few[number % len(few)], number, of) for number in range(rows)]
        page = "".join((head, begin, before, tag, *many, end, after))
    return page


def _renumbered(row: str, number: int, of: int) -> str:
    """The row, of a case with the same factors."""
    return re.sub(r'data-cases="(\d+)"', lambda found: f'data-cases="{number // of * of + int(found[1])}"', row)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("error: Chromium is not installed\n  hint: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        page = write_report(load(build_typical(folder / "c", repetitions=3).path))
        page.write_text(multiplied(page.read_text(), rows))
        with Browser(program, folder / "profile") as browser:
            browser.open(page)
            timing = "performance.getEntriesByType('navigation')[0]"
            print(f"{rows:,} rows in each of {len(TABLES)} tables, {page.stat().st_size / 1e6:.1f} MB")
            print(f"{'open':34} {browser.evaluate(f'{timing}.loadEventEnd - {timing}.startTime'):6.0f} ms")
            for what, (table, action) in ACTIONS.items():
                browser.evaluate(f"document.querySelector('#table-{table}').scrollIntoView()")
                times_ms = [browser.evaluate(_TIMED.format(action=action)) for _ in range(TIMES)]
                print(f"{what:34} {statistics.median(times_ms):6.0f} ms, at most {max(times_ms):.0f} ms")


if __name__ == "__main__":
    main()
