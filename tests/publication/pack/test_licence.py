# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from pybench.cli import main
from pybench.errors import UsageError
from pybench.publication.pack.licence import USUAL, checked_licence


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("CC-BY-4.0", "CC-BY-4.0"),
        ("cc-by-4.0", "CC-BY-4.0"),
        ("gpl-3.0-OR-later", "GPL-3.0-or-later"),
        ("https://example.org/licence", "https://example.org/licence"),
    ],
)
def test_an_identifier_is_stored_as_spdx_writes_it(given: str, stored: str) -> None:
    assert checked_licence(given) == stored


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("CC-BY-40", "did you mean `CC-BY-4.0`?"),
        ("Apache 2.0", "did you mean `Apache-2.0`?"),
        ("foo", "give one of https://spdx.org/licenses, or an https:// address"),
        ("MIT OR Apache-2.0", "give one of https"),
        ("LicenseRef-mine", "give one of https"),
        ("http://example.org", "give one of https"),
        ("", "give one of https"),
        ("or", "give one of https"),
    ],
)
def test_anything_else_is_refused(given: str, hint: str) -> None:
    with pytest.raises(UsageError, match="no licence in SPDX's list") as refused:
        checked_licence(given)
    assert str(refused.value.hint).startswith(hint)


@pytest.mark.parametrize("name", USUAL)
def test_what_a_hint_names_is_accepted(name: str) -> None:
    assert checked_licence(name) == name


def test_a_misspelt_licence_is_refused_before_anything_is_packed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", str(tmp_path), "--license", "CC-BY-40", "--archive", str(tmp_path / "a.zip")]) == 2
    assert capsys.readouterr().err == (
        "error: --license CC-BY-40: no licence in SPDX's list has this identifier\n  hint: did you mean `CC-BY-4.0`?\n"
    )
