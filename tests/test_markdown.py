# SPDX-License-Identifier: Apache-2.0
"""`.ci/markdown`: what it accepts and what it refuses, each by an example."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKER = Path(__file__).parents[1] / ".ci/markdown"
LONG = "word " * 30

GOOD = {
    "one sentence a line": "The report is one page.\nIt is in `report/`.",
    "thirty words": LONG.strip() + ".",
    "an abbreviation inside": "Choose a rate, e.g. half of it, as Yang et al. did.",
    "a number with a point": "It takes 3.5 s with pybench 1.2.0 on Python 3.11.",
    "a code span is one word": f"Run `{LONG}` and wait.",
    "a full stop in a code span": "Type `pybench run x. y` and wait.",
    "a citation is no words": LONG.strip() + " (Johnson 1978, J. Am. Stat. Assoc. 73:536).",
    "an address is no word": "Read [the chapter](https://example.org/a.b?c=d) first.",
    "items of a list": "It has:\n\n- a page\n- tables.\n  They are sorted.",
    "a sentence inside brackets": "The block is done again (its runs stay. They do not count) from the start.",
    "a heading inside a line": "**Clocks.** An idle board may not show them.",
    "a heading": "# What runs. And when\n\nA case runs.",
    "code in a fence": f"Type this:\n\n```\n{LONG}. {LONG}\nand this\n```",
    "indented code": f"The equation:\n\n    {LONG}. {LONG}\n    and this\n\nIt holds.",
    "a comment": f"<!-- {LONG} {LONG}. -->\n\nText.",
    "lines made by a program": f"<!-- rooms: begin -->\n| {LONG * 2} |\n<!-- rooms: end -->\n",
    "a table of 159 columns": "| " + "x" * 155 + " |",
    "a list after a colon": "It stores:\nthe plan.",
    "an ellipsis": "The hosts are `host-1`, `host-2`, ... in each file.",
    "a link to a heading": "# A b: `c`\n\nSee [above](#a-b-c).",
}
BAD = {
    "two sentences in a line": ("The report is one page. It is in a folder.", "more than one sentence"),
    "a sentence over two lines": ("The report is\none page.", "goes on in the next line"),
    "an item over two lines": ("- The report is\n  one page. It", "more than one sentence"),
    "thirty-one words": ("And " + LONG.strip() + ".", "31 words, at most 30"),
    "a long line": ("x" * 201, "201 characters, at most 200"),
    "a wide table": ("| " + "x" * 156 + " |", "160 characters, at most 159"),
    "a question and an answer": ("Why? Because of this.", "more than one sentence"),
    "a sentence that begins with code": ("It ends. `check` begins.", "more than one sentence"),
    "a link to no file": ("See [there](gone.md).", "gone.md leads nowhere"),
    "a link to no heading": ("# One\n\nSee [two](#two).", "#two leads nowhere"),
    "text after code": ("```\ncode\n```\n\nOne. Two.", "more than one sentence"),
}


def check(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "page.md").write_text(text + "\n")
    return subprocess.run(
        [sys.executable, CHECKER, folder / "page.md"], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_good_prose_passes(text: str, tmp_path: Path) -> None:
    checked = check(text, tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(("text", "complaint"), BAD.values(), ids=BAD)
def test_bad_prose_is_named(text: str, complaint: str, tmp_path: Path) -> None:
    checked = check(text, tmp_path)
    assert checked.returncode == 1
    assert complaint in checked.stderr


def test_a_problem_names_its_file_and_line(tmp_path: Path) -> None:
    assert "page.md:3: more than one sentence" in check("# Title\n\nOne. Two.", tmp_path).stderr
