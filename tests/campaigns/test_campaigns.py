# SPDX-License-Identifier: Apache-2.0
"""The campaigns in campaigns/: each is replayed without a GPU, and its report is equal byte for byte."""

from __future__ import annotations

import builtins
import io
import json
import math
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pybench.cli import main
from pybench.errors import EXIT_FAILED, EXIT_OK

ROOT = Path(__file__).parents[2]
CAMPAIGNS = sorted((ROOT / "campaigns").glob("*.tar.zst"))
MOST_BYTES = 25_000_000  # of all together, for they are in every clone


def test_there_are_campaigns_and_they_are_small() -> None:
    assert CAMPAIGNS
    assert sum(path.stat().st_size for path in CAMPAIGNS) <= MOST_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda path: path.name.partition(".")[0])
def test_its_report_is_made_again_byte_for_byte(campaign: Path) -> None:
    _replay(campaign)


@pytest.mark.slow
def test_its_report_does_not_depend_on_how_python_adds() -> None:
    """`sum` compensates rounding since Python 3.12. A campaign run there was not equal when replayed on 3.11."""
    plain = sum

    def compensated(values: Iterable[Any], /, start: Any = 0) -> Any:
        terms = [start, *values]
        if any(type(term) is float for term in terms) and all(type(term) in (int, float) for term in terms):
            return math.fsum(terms)
        return plain(terms[1:], start)

    with patch.object(builtins, "sum", compensated):
        _replay(ROOT / "campaigns" / "tasks-gpu.tar.zst")


def _replay(campaign: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["replay", str(campaign), "--json"])
    assert code in (EXIT_OK, EXIT_FAILED), err.getvalue()
    said = json.loads(out.getvalue())
    assert said["files"] > 0
    if not said["equal"] and said["versions_that_differ"]:
        pytest.skip(f"its report was made with other versions: {'; '.join(said['versions_that_differ'])}")
    name = campaign.relative_to(ROOT)
    assert said["equal"], (
        f"{err.getvalue()}\n"
        f"Did the report change on purpose? Then make it again from the runs inside, and commit the archive:\n"
        f"    pybench publish {name} --archive {name}"
    )
