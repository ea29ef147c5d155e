# SPDX-License-Identifier: Apache-2.0
"""Tables of a file: fields that no key fills."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.document import parse_text
from pybench.document.keys import read_table, whole
from pybench.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Lamp:
    power_w: int = whole(0)
    file: str = ""


def test_a_field_without_a_reader_is_no_key() -> None:
    problems: list[Problem] = []
    assert read_table(Lamp, parse_text("power_w: 5", "lamp.yaml")[0], problems) == Lamp(power_w=5)
    assert read_table(Lamp, parse_text("power_w: 5\nfile: x", "lamp.yaml")[0], problems) is None
    assert [(one.what, one.hint) for one in problems] == [("unknown key `file`", "valid keys here: power_w")]
