# SPDX-License-Identifier: Apache-2.0
"""YAML with places: what scalars mean, what is refused, and where."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from pybench.document import MAXIMUM_BYTES, FileKind, Place, core_scalar, parse_text, read_document
from pybench.errors import PlanError, ScenarioError


def plain(text: str) -> Any:
    root, problems = parse_text(text, "p.yaml")
    assert problems == ()
    return root.plain()


def refusal(text: str) -> str:
    with pytest.raises(PlanError) as raised:
        parse_text(text, "p.yaml")
    return str(raised.value)


def beside(text: str) -> list[str]:
    return [problem.render("p.yaml") for problem in parse_text(text, "p.yaml")[1]]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", "on"), ("off", "off"), ("yes", "yes"), ("true", True), ("False", False), ("~", None), ("", None),
        ("012", 12), ("0o14", 12), ("0x1F", 31), ("+3", 3), ("-3", -3), ("1_000", "1_000"), ("1e-3", 0.001),
        (".5", 0.5), ("1.", 1.0), ("-.inf", -math.inf), ("2001-01-01", "2001-01-01"), ("1:30", "1:30"),
        ("0b11", "0b11"), ("=", "="),
    ],
)  # fmt: skip
def test_a_plain_scalar_means_what_yaml_1_2_says(written: str, meant: Any) -> None:
    found = core_scalar(written)
    assert found == meant
    assert type(found) is type(meant)


def test_a_quoted_scalar_is_text() -> None:
    assert plain("a: '12'\nb: \"true\"\nc: |\n  1\n") == {"a": "12", "b": "true", "c": "1\n"}


def test_every_key_and_value_knows_its_line_and_column() -> None:
    root, _ = parse_text("a: 1\nb:\n  - c: [x, y]\n", "p.yaml")
    assert root.key_place(("b", 0, "c")) == Place(3, 5)
    assert root.at(("b", 0, "c", 1)).place == Place(3, 12)
    assert root.at(("b", 0, "nothing", 7)).place == Place(3, 5)


def test_columns_count_characters_not_bytes() -> None:
    assert parse_text("é: {ü: 1, x: 2}", "p.yaml")[0].key_place(("é", "x")) == Place(1, 11)


def test_aliases_and_merge_keys_are_read_and_what_is_written_wins() -> None:
    text = "one: &one {a: 1, b: 2}\ntwo: &two {b: 3, c: 4}\nsum: {<<: [*one, *two], a: 5}\nsame: *one\n"
    assert plain(text)["sum"] == {"a": 5, "b": 2, "c": 4}
    assert plain(text)["same"] == {"a": 1, "b": 2}


def test_a_quoted_merge_sign_is_a_plain_key() -> None:
    assert plain("'<<': 1") == {"<<": 1}


def test_a_value_that_is_left_out_is_at_its_key() -> None:
    root, _ = parse_text("first:\n\n# comment\nnext: 1\nlast:\n", "file")
    assert root.children is not None
    places = {key: (child.place.line, child.place.column) for key, child in root.children.items()}
    assert places == {"first": (1, 1), "next": (4, 7), "last": (5, 1)}


def test_all_duplicate_keys_are_named_with_both_places() -> None:
    assert beside("a: 1\nb: {c: 1, c: 2}\na: 2\n") == [
        "p.yaml:2:11: key `c` is given twice (first on line 2)",
        "p.yaml:3:1: key `a` is given twice (first on line 1)",
    ]


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        ("a:\n\t- 1\n", "2:1", "tabs"),
        ("a: [1,\n  2", "2:4", "check that it is complete"),
        ("a: 'text\n", "2:1", "it began on line 1"),
        ("a: b: c\n", "1:5", "quote text"),
        ("text\n# heading\nmore text\n", "3:1", "text after the end of a value (every line is `key: value`"),
        ("a: *nothing\n", "1:4", "names no anchor"),
        ("a: &a [1, *a]\n", "1:11", "names no anchor"),
        ("a: 1\n---\nb: 2\n", "3:1", "second document"),
        ("a: \x07\n", "1:4", "U+0007"),
        ("# nothing\n", "1:1", "no value"),
        ("[" * 100, "1:32", "deeper"),
        ("%YAML 3.0\n---\na: 1\n", "1:1", "incompatible"),
    ],
)
def test_what_cannot_be_read_is_one_problem_at_its_place(text: str, place: str, part: str) -> None:
    said = refusal(text)
    assert said.startswith(f"p.yaml:{place}: ")
    assert part in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: !!python/object:os.system x", "tags"),
        ("a: !mine 1", "tags"),
        ("1: 2", "a key has to be text"),
        ("? [a]\n: 2", "a key has to be text"),
        ("<<: 3", "merges only mappings"),
        ("a: " + "9" * 5000, "digits"),
    ],
)
def test_what_can_be_read_past_is_a_problem_beside_the_rest(text: str, part: str) -> None:
    assert any(part in said for said in beside(text))


def test_aliases_of_aliases_cannot_multiply_without_bound() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert "more than 20000 values" in refusal("\n".join(lines))


def read_refusal(path: Path) -> str:
    with pytest.raises(PlanError) as raised:
        read_document(path)
    return str(raised.value)


def test_a_missing_file_names_the_plans_beside_it(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("a: 1")
    assert "other.yaml" in read_refusal(tmp_path / "plan.yaml")
    assert "pybench init" in read_refusal(tmp_path / "nowhere" / "plan.yaml")


def test_a_folder_an_empty_file_and_one_too_large_are_refused(tmp_path: Path) -> None:
    assert "folder" in read_refusal(tmp_path)
    (tmp_path / "empty").write_bytes(b" \n")
    assert "empty" in read_refusal(tmp_path / "empty")
    (tmp_path / "large").write_bytes(b"#" * (MAXIMUM_BYTES + 1))
    assert "larger" in read_refusal(tmp_path / "large")


def test_a_byte_that_is_not_utf_8_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: é\nb: ".encode() + b"\xe9\n")
    assert read_refusal(path) == f"{path}:2:4: not UTF-8: byte 0xe9 (save the file as UTF-8)"


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_document(path).root.plain() == {"a": 1}


def test_a_file_of_another_kind_is_one_problem() -> None:
    assert refusal("name: x\nquery: {}\n") == "p.yaml: is a scenario, not a plan (`pybench project` takes it)"
    assert plain("matrix: []\nquery: {}\n") == {"matrix": [], "query": {}}  # a plan with an unknown key
    kind = FileKind("scenario", "", ScenarioError)
    with pytest.raises(ScenarioError, match=r"^p\.yaml: is a plan, not a scenario \(`pybench run` takes it\)$"):
        parse_text("matrix: []\n", "p.yaml", kind=kind)
    assert parse_text("query: {}\n", "p.yaml", kind=kind)[0].plain() == {"query": {}}
