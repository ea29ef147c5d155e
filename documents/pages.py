# SPDX-License-Identifier: Apache-2.0
"""Each document with its path, and the command that writes all of them.

python -m documents.pages
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from documents.campaigns import FOLDER, results_pages
from documents.factors import factors_page
from documents.reports import LIST, make_list
from documents.rows import cautions_page, metrics_page, reasons_page
from documents.tables import filled
from pybench.plan.schema import plan_schema_text

ROOT = Path(__file__).parents[1]
_PLANS = "docs/user/plans.md"


def plans_page() -> str:
    """docs/user/plans.md, which people write, with its tables."""
    return filled((ROOT / _PLANS).read_text(encoding="utf-8"))


# Path below the root -> its text. The pages of docs/results and the list of reports follow from archives instead.
PAGES: Mapping[str, Callable[[], str]] = {
    "docs/metrics.md": metrics_page,
    "docs/cautions.md": cautions_page,
    "docs/reasons.md": reasons_page,
    "docs/factors.md": factors_page,
    _PLANS: plans_page,
    "schemas/plan.schema.json": plan_schema_text,
}


def main() -> None:
    for path, page in PAGES.items():
        _write(path, page())
    for name, text in results_pages(ROOT).items():
        _write(f"{FOLDER}/{name}", text)
    _write(LIST, make_list(ROOT).text())


def _write(path: str, text: str) -> None:
    (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
