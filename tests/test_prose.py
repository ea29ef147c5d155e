# SPDX-License-Identifier: Apache-2.0
"""`.ci/prose`: what it accepts and what it refuses, each by an example."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

CHECKER = Path(__file__).parents[1] / ".ci/prose"
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


THIRTY = "\n".join(textwrap.wrap(LONG.strip() + ".", 60))
THIRTY_ONE = "And " + THIRTY
INDENTED = textwrap.indent(THIRTY_ONE, "    ")


def commented(sign: str, text: str) -> str:
    return textwrap.indent(text, sign)


GOOD_PROGRAMS = {
    "thirty words in three lines.py": f'"""{THIRTY}"""\n',
    "two sentences.py": f'"""{THIRTY} {THIRTY}"""\n',
    "fields.py": f'"""Of one case.\n\nfirst: {LONG[:100]}\nsecond: {LONG[:100]}\n    more\n"""\n',
    "items.py": f'"""It has:\n\n- {LONG.strip()}\n- {LONG.strip()}\n"""\n',
    "rows of columns.py": f'"""It has:\n\nfirst   {LONG[:100]}\nsecond  {LONG[:100]}\n"""\n',
    "indented code.py": f'"""As in\n\n{INDENTED}\n"""\n',
    "a text that is no docstring.py": f'print(\n    """{THIRTY_ONE}"""\n)\nhelp = """{THIRTY_ONE}"""\n',
    "a sign of a comment in a string.py": f'a = "# {LONG} {LONG}"\n',
    "a licence.cpp": "// SPDX-License-Identifier: Apache-2.0\n" + commented("// ", THIRTY) + "\n",
    "comments apart.cpp": commented("// ", THIRTY[:-1]) + "\nint a;\n" + commented("// ", THIRTY) + "\n",
    "an address in a string.go": f'var a = "https://example.org" // {LONG[:50]}\n',
    "lifetimes.rs": f"fn f<'a>(x: &'a str) {{}}\n// {LONG[:50]}\nlet c = 'a';\n",
}
BAD_PROGRAMS = {
    "docstring of a module.py": f'# SPDX-License-Identifier: Apache-2.0\n"""{THIRTY_ONE}"""\n',
    "docstring of a class.py": f'class A:\n    """A.\n\n{INDENTED}"""\n',
    "docstring of a field.py": f'class A:\n    a: int\n    """\n{INDENTED}"""\n',
    "comment.py": commented("# ", THIRTY_ONE) + "\n",
    "comment behind code.py": f"a = 1  # {LONG}and more\n",
    "after a fence.py": f'"""```\ncode\n```\n\n{THIRTY_ONE}"""\n',
    "comment.cpp": commented("// ", THIRTY_ONE) + "\n",
    "comment over lines.h": "/* " + THIRTY_ONE.replace("\n", "\n * ") + " */\n",
    "comment.go": commented("\t// ", THIRTY_ONE) + "\n",
    "docstring.rs": "fn f<'a>(x: &'a str) {}\n" + commented("//! ", THIRTY_ONE) + "\n",
}


def check(text: str, folder: Path, name: str = "page.md") -> subprocess.CompletedProcess[str]:
    (folder / name).write_text(text + "\n")
    return subprocess.run(
        [sys.executable, CHECKER, folder / name], capture_output=True, text=True, check=False, timeout=60
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


@pytest.mark.parametrize("name", GOOD_PROGRAMS)
def test_good_docstrings_and_comments_pass(name: str, tmp_path: Path) -> None:
    checked = check(GOOD_PROGRAMS[name], tmp_path, name)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_a_long_sentence_in_a_program_is_named(name: str, tmp_path: Path) -> None:
    checked = check(BAD_PROGRAMS[name], tmp_path, name)
    assert checked.returncode == 1
    assert checked.stderr.count("words, at most 30") == 1


def test_a_problem_names_its_file_and_line(tmp_path: Path) -> None:
    assert "page.md:3: more than one sentence" in check("# Title\n\nOne. Two.", tmp_path).stderr


def test_a_problem_in_a_program_names_the_line_on_which_the_sentence_begins(tmp_path: Path) -> None:
    checked = check(f'"""One.\n\nTwo\nends. {THIRTY_ONE}\n"""', tmp_path, "a.py")
    assert "a.py:4: 31 words, at most 30: And word word word word word ..." in checked.stderr
