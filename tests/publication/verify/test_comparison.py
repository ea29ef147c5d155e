# SPDX-License-Identifier: Apache-2.0
"""What a replay says of a report that is not the one that was published."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pybench.errors import CorruptError, UsageError
from pybench.publication import compare
from pybench.publication.pack import sums
from pybench.publication.pack.report_parts import ReportParts
from pybench.publication.pack.versions import differences
from pybench.publication.verify.comparison import Replay, check_unpacked
from tests.publication.conftest import Published


@pytest.fixture
def remade(published: Published, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published.package.folder / "report", tmp_path / "report"))


def _compare(published: Published, remade: Path) -> Replay:
    return compare(published.package.folder, published.package.digests, remade)


def test_equal_files_are_equal_and_no_version_is_blamed(published: Published, remade: Path) -> None:
    assert _compare(published, remade) == Replay(ReportParts.ALL, 2, 1, (), ())


def test_the_first_place_that_differs_is_named(published: Published, remade: Path) -> None:
    page = remade / "index.html"
    page.write_text(page.read_text().replace("host-1", "host-9"))
    (difference,) = _compare(published, remade).differences
    assert difference.name == "report/index.html"
    assert "differs in line 1" in difference.how
    assert "host-1" in difference.how
    assert "host-9" in difference.how
    page.write_bytes(b"\xff\xfe")
    assert "differs from byte 0 on" in _compare(published, remade).differences[0].how


def test_a_file_on_one_side_only_is_a_difference(published: Published, remade: Path) -> None:
    (remade / "index.html").rename(remade / "page.html")
    found = {one.name: one.how for one in _compare(published, remade).differences}
    assert found == {"report/index.html": "was not made again", "report/page.html": "was not published"}


@pytest.fixture
def numbers(published: Published, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """The publication with the numbers of its report alone, and its list of files."""
    folder = Path(shutil.copytree(published.package.folder, tmp_path / "numbers"))
    (folder / "report" / "index.html").unlink()
    description = json.loads((folder / sums.DESCRIPTION).read_text())
    (folder / sums.DESCRIPTION).write_text(json.dumps(description | {"report": "numbers"}))
    return folder, {name: digest for name, digest in published.package.digests.items() if "index" not in name}


def test_of_numbers_alone_the_page_is_no_difference(numbers: tuple[Path, dict[str, str]], remade: Path) -> None:
    assert compare(*numbers, remade) == Replay(ReportParts.NUMBERS, 1, 1, (), ())


def test_of_numbers_alone_a_longer_table_and_a_new_one_reproduce_them(
    numbers: tuple[Path, dict[str, str]], remade: Path
) -> None:
    table = remade / "tables" / "hosts.csv"
    table.write_text(table.read_text() + "host-3,1.5\n")
    (remade / "tables" / "new.csv").write_text("new\n")
    replay = compare(*numbers, remade)
    assert replay.is_reproduced
    assert {one.name: one.how for one in replay.differences} == {
        "report/tables/hosts.csv": "has all published cells, 0 more columns and 1 more row",
        "report/tables/new.csv": "was not published",
    }


@pytest.mark.parametrize(("old", "new", "has_numbers"), [("1.5", "2.5", False), ("host-1", "host-9", True)])
def test_of_numbers_alone_another_cell_is_a_difference(
    numbers: tuple[Path, dict[str, str]], remade: Path, old: str, new: str, has_numbers: bool
) -> None:
    """The first line is the header, whose names have to stay."""
    table = remade / "tables" / "hosts.csv"
    header, _, rows = table.read_text().partition("\n")
    table.write_text(f"{header}\n{rows.replace(old, new, 1)}")
    replay = compare(*numbers, remade)
    assert (replay.is_reproduced, replay.has_same_numbers) == (False, has_numbers)


def test_a_table_that_is_not_made_again_loses_its_numbers(published: Published, remade: Path) -> None:
    (remade / "tables" / "hosts.csv").unlink()
    assert not _compare(published, remade).has_same_numbers


def test_parts_that_this_pybench_does_not_know_are_refused(numbers: tuple[Path, dict[str, str]], remade: Path) -> None:
    folder, listed = numbers
    (folder / sums.DESCRIPTION).write_text('{"report": "half"}')
    with pytest.raises(CorruptError, match="report is 'half', not all or numbers"):
        compare(folder, listed, remade)


def test_a_link_to_another_run_is_an_addition(published: Published, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(published.package.folder, tmp_path / "copy"))
    (folder / sums.SUMS).write_bytes(sums.render(published.package.digests))
    check_unpacked(folder)
    case = next((folder / "runs").iterdir())
    (folder / "runs" / ("d" * 64)).symlink_to(case.name)
    with pytest.raises(CorruptError, match="dddd was added"):
        check_unpacked(folder)


def test_versions_are_compared_by_name() -> None:
    found = differences({"polars": "1", "numpy": "2", "gone": "3"}, {"polars": "1", "numpy": "2.1", "new": "4"})
    assert found == ["numpy 2 there, 2.1 here", "gone 3 there, none here", "new none there, 4 here"]


def test_what_is_not_there_is_told_apart_from_what_is_no_publication(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        check_unpacked(tmp_path / "nosuch.zip")
    with pytest.raises(UsageError, match="is not a publication"):
        check_unpacked(tmp_path)
