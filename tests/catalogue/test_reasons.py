# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from pybench.catalogue.causes import Cause
from pybench.catalogue.packages import PACKAGES
from pybench.catalogue.precisions import NUMBER_TYPES, PRECISIONS
from pybench.catalogue.reason_rows import WORD, ReasonRow
from pybench.catalogue.reasons import Reason, ReasonCode, invalidate, read_reason, reason_from_text
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import UnsupportedError

SOURCE = Path(__file__).parents[2] / "pybench"
TEXTS = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
ROWS = [*ReasonCode, *Cause]
RUNTIME, PROVIDER = [*RUNTIMES], [backend.name for row in RUNTIMES.values() for backend in row.backends]
NAMED = [
    *(Reason(Cause.NO_PACKAGE, names=(package,)) for package in PACKAGES),
    *(Reason(Cause.NO_TYPE, names=(kind,)) for kind in NUMBER_TYPES),
    *(Reason(Cause.NO_PRECISION_IN_RUNTIME, names=(kind, name)) for kind in PRECISIONS for name in RUNTIME),
    *(Reason(Cause.NO_PRECISION_ON_PROVIDER, names=(kind, name)) for kind in PRECISIONS for name in PROVIDER),
    *(Reason(Cause.NO_CACHE_ON_PROVIDER, names=(kind, name)) for kind in PRECISIONS for name in PROVIDER),
    *(Reason(Cause.NO_GENERATION_ON_PROVIDER, names=(name,)) for name in PROVIDER),
    *(Reason(Cause.NO_PROVIDER, names=(name,)) for name in PROVIDER),
    *(Reason(Cause.NO_GENERATION_IN_RUNTIME, names=(name,)) for name in RUNTIME),
    *(Reason(Cause.NO_TRANSFERS, names=(name,)) for name in RUNTIME),
    *(Reason(Cause.NO_TEXT, names=(name,)) for name in RUNTIME),
    *(Reason(Cause.NO_PATH, names=("none", name)) for name in RUNTIME),
]


@pytest.mark.parametrize("row", [row for row in ROWS if not WORD.search(row)])
def test_a_reason_is_read_as_it_was_stored(row: ReasonRow) -> None:
    for reason in (Reason(row), Reason(row, "the facts: 3 of 4")):
        assert reason_from_text(str(reason)) == reason
        assert read_reason(reason.stored_code, reason.detail) == reason


def test_the_names_in_a_code_are_read_as_they_were_stored() -> None:
    assert str(Reason(Cause.NO_PRECISION_ON_PROVIDER, "why", ("int8+fp16", "cuda"))) == "no_int8+fp16_on_cuda: why"
    assert [read_reason(reason.stored_code) for reason in NAMED] == NAMED
    assert {reason.code for reason in NAMED} == {row for row in Cause if WORD.sub("", row) and WORD.search(row)}


@pytest.mark.parametrize(
    "text", ["a_later_code: with facts", "words of a plug-in", "no_licence", "RuntimeError", "gap: ", ""]
)
def test_a_code_that_is_not_known_here_stays_as_it_is(text: str) -> None:
    read = reason_from_text(text)
    assert (read.code, str(read)) == (ReasonCode.OTHER, text)
    assert not invalidate([read])


@pytest.mark.parametrize("names", [(), ("int8",), ("int8", "torch", "more")])
def test_each_word_of_a_code_needs_a_name(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="no_<precision>_in_<runtime> with the names"):
        Reason(Cause.NO_PRECISION_IN_RUNTIME, names=names)


def test_a_package_outside_pybench_gives_codes_of_its_own() -> None:
    error = UnsupportedError("no licence", code=ReasonCode.OTHER, names=("acme_no_licence",), hint="buy one")
    assert (error.reason.stored_code, error.reason.detail) == ("acme_no_licence", "no licence")
    assert error.in_one_line() == "no licence; buy one"
    assert read_reason(error.reason.stored_code, error.reason.detail) == error.reason


def test_one_reason_that_ends_the_validity_is_enough() -> None:
    throttled, gap = Reason(ReasonCode.THROTTLED, "heat"), Reason(ReasonCode.GAP, "0.3 s")
    assert invalidate([throttled, gap])
    assert not invalidate([throttled])
    assert not invalidate([])


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row is not ReasonCode.LINES_IN_BURSTS], ids=lambda row: row.name
)
def test_a_row_is_used(row: ReasonRow) -> None:
    name = f"{type(row).__name__}.{row.name}"
    assert any(name in text for text in TEXTS), f"{name} is used nowhere"


def test_a_code_has_one_row() -> None:
    named = [*ReasonCode.__members__.values(), *Cause.__members__.values()]  # two of one code are one member
    assert len({row.code for row in named}) == len(named)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_advice_says_what_to_do(row: ReasonRow) -> None:
    verbs = "check compare convert do end enlarge export free generate improve install keep leave let load look lower "
    verbs += (
        "measure mend mount name prefer put raise read rebuild report reserve run set submit take treat unset use wait"
    )
    assert row.advice.split()[0] in verbs.split()
    assert row.meaning.rstrip(".") == row.meaning
