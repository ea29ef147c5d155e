# SPDX-License-Identifier: Apache-2.0
"""The campaigns in campaigns/: each is replayed without a GPU.

Its numbers are those in the archive, and its whole report has the digests in campaigns/reports.sha256."""

from __future__ import annotations

import builtins
import io
import json
import math
import re
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from documents.pages import ROOT
from documents.reports import LIST, archives_of, campaign_of, hash_report, read_list
from pybench.cli import main
from pybench.errors import EXIT_FAILED, EXIT_OK
from pybench.publication.pack import versions

CAMPAIGNS = archives_of(ROOT)
MOST_BYTES = 25_000_000  # of all together, for they are in every clone


def test_there_are_campaigns_and_they_are_small() -> None:
    assert CAMPAIGNS
    assert sum(path.stat().st_size for path in CAMPAIGNS) <= MOST_BYTES


def test_the_list_has_the_reports_of_all_campaigns_and_no_others() -> None:
    stored = read_list(ROOT)
    assert list(stored.files) == [campaign_of(path) for path in CAMPAIGNS]
    assert stored.text() == (ROOT / LIST).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=campaign_of)
def test_its_numbers_are_equal_and_its_report_is_that_of_the_list_byte_for_byte(campaign: Path, tmp_path: Path) -> None:
    _replay(campaign, tmp_path / "report")


@pytest.mark.slow
def test_its_report_does_not_depend_on_how_python_adds(tmp_path: Path) -> None:
    """`sum` compensates rounding since Python 3.12. A campaign run there was not equal when replayed on 3.11."""
    plain = sum

    def compensated(values: Iterable[Any], /, start: Any = 0) -> Any:
        terms = [start, *values]
        if any(type(term) is float for term in terms) and all(type(term) in (int, float) for term in terms):
            return math.fsum(terms)
        return plain(terms[1:], start)

    with patch.object(builtins, "sum", compensated):
        _replay(ROOT / "campaigns" / "tasks-gpu.tar.zst", tmp_path / "report")


def _replay(campaign: Path, report: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["replay", str(campaign), "--out", str(report), "--json"])
    assert code in (EXIT_OK, EXIT_FAILED), err.getvalue()
    said = json.loads(out.getvalue())
    assert said["tables"] > 0
    if not said["numbers_equal"]:
        _skip_for_other_versions(said["versions_that_differ"])
    name = campaign.relative_to(ROOT)
    assert said["numbers_equal"], (
        f"{err.getvalue()}\n"
        f"Did numbers change on purpose? Then publish them again from the runs inside, and commit the archive:\n"
        f"    pybench publish {name} --archive {name}"
    )
    stored, made = read_list(ROOT), hash_report(report)
    listed = stored.files[campaign_of(campaign)]
    if made != listed:
        _skip_for_other_versions(versions.differences(stored.made_with, versions.of_report()))
    differing = sorted(file for file in {*made, *listed} if made.get(file) != listed.get(file))
    assert not differing, "the report is another one; did it change on purpose? Then run: make documents"


PATCH_OF_PYTHON = re.compile(r"python (\d+\.\d+)\.\d+ there, \1\.\d+ here")  # neither numbers nor bytes depend on it


def _skip_for_other_versions(differences: list[str]) -> None:
    if others := [each for each in differences if not PATCH_OF_PYTHON.fullmatch(each)]:
        pytest.skip(f"its report was made with other versions: {'; '.join(others)}")
