# SPDX-License-Identifier: Apache-2.0
"""What of a published table is in the one that is made again."""

from __future__ import annotations

import pytest

from pybench.publication.verify.table_comparison import TableComparison, compare_tables

PUBLISHED = "case,latency_ms,n,verdict\na,1.5,10,advantageous\nb,2.5,,undecided\n"


def _compare(made: str) -> TableComparison:
    return compare_tables(PUBLISHED.encode(), made.encode())


@pytest.mark.parametrize(
    ("made", "how"),
    [
        (
            "n,case,new,latency_ms,verdict\n10,a,7,1.5,advantageous\n,b,8,2.5,undecided\n",
            "has all published cells, 1 more column and 0 more rows",
        ),
        (
            "case,latency_ms,n,verdict\na,1.5,10,advantageous\na2,9.0,1,undecided\nb,2.5,,undecided\n",
            "has all published cells, 0 more columns and 1 more row",
        ),
    ],
)
def test_columns_and_rows_may_be_added_and_columns_may_move(made: str, how: str) -> None:
    assert _compare(made) == TableComparison(True, True, how)


@pytest.mark.parametrize(
    ("made", "how"),
    [
        (PUBLISHED.replace("2.5", "2.6"), "differs in row 2, latency_ms: '2.5' published, '2.6' made again"),
        (PUBLISHED.replace("1.5", "1.50"), "differs in row 1, latency_ms: '1.5' published, '1.50' made again"),
        (PUBLISHED.replace("1.5", ""), "differs in row 1, latency_ms: '1.5' published, '' made again"),
        (PUBLISHED.replace("latency_ms", "latency_s"), "has no column 'latency_ms' now"),
        (PUBLISHED.replace("b,2.5,,undecided\n", ""), "has no row 2 now"),
        ("case,latency_ms,n,verdict\nb,2.5,,undecided\na,1.5,10,advantageous\n", "has no row 2 now"),
        ("", "has no column 'case' now"),
    ],
)
def test_a_number_that_is_another_or_gone_is_named(made: str, how: str) -> None:
    assert _compare(made) == TableComparison(False, False, how)


@pytest.mark.parametrize(
    ("made", "how"),
    [
        (
            PUBLISHED.replace("undecided", "harmful"),
            "differs in row 2, verdict: 'undecided' published, 'harmful' made again",
        ),
        (PUBLISHED.replace("2.5,,", "2.5,3,"), "differs in row 2, n: '' published, '3' made again"),
    ],
)
def test_other_words_are_told_apart_from_other_numbers(made: str, how: str) -> None:
    assert _compare(made) == TableComparison(True, False, how)


def test_words_are_compared_although_rows_were_added() -> None:
    made = "case,latency_ms,n,verdict\na2,9.0,1,undecided\na,1.5,10,harmful\nb,2.5,,undecided\n"
    found = _compare(made)
    assert (found.keeps_numbers, found.keeps_all) == (True, False)


def test_a_cell_may_have_the_ids_of_thousands_of_cases() -> None:
    ids = " ".join(["a" * 64] * 3000)
    assert compare_tables(f"ids,n\n{ids},1\n".encode(), f"ids,n,new\n{ids},1,2\n".encode()).keeps_all


def test_what_is_no_table_is_a_difference() -> None:
    assert not compare_tables(b"\xff\xfe", PUBLISHED.encode()).keeps_numbers
