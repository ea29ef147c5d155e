# SPDX-License-Identifier: Apache-2.0
"""The recipes of CONTRIBUTING.md are the packages that the tests next to this one install and run."""

from __future__ import annotations

from tests.plugins.quotes import PAGE, quoted, renewed, written


def test_the_recipes_are_the_files_of_the_tested_packages() -> None:
    text = PAGE.read_text()
    quotes = quoted(text)
    assert {path.split("/")[3] for path in quotes} == {"sorting", "scripted", "models", "decoders"}
    assert len(quotes) == 9
    assert all(quotes[path] == written(path) for path in quotes), "python -m tests.plugins.quotes"


def test_a_recipe_that_differs_from_its_file_is_written_again() -> None:
    text = PAGE.read_text()
    path = "tests/plugins/packages/models/acme_models/two_layers.py"
    damaged = text.replace("WIDTH = 32", "WIDTH = 33")
    assert quoted(damaged)[path] != written(path)
    assert renewed(damaged) == text
