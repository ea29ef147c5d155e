# SPDX-License-Identifier: Apache-2.0
"""Every code that pybench stores as a reason has a row, and every row is used: read from the source of pybench."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.catalogue.causes import CAUSES, Cause
from pybench.catalogue.packages import PACKAGES
from pybench.catalogue.reasons import ReasonCode

SOURCE = Path(__file__).parents[2] / "pybench"
FIELDS = {  # of f-strings: which word of a row's code they stand for
    "lacking.name": "<type>",
    "missing": "<package>",
    "precision": "<precision>",
    "runtime.name": "<runtime>",
    "NAME": "<runtime>",
    "backend.name": "<provider>",
    "provider": "<provider>",
    "path": "<path>",
}
# Expressions that are no literal: the row of what they say, or None where they hand on what was said elsewhere.
SEEN_ELSEWHERE = ("() if valid else (code,)",)
HANDED_ON = {
    "code": None,  # of a ReasonCode, or of a table that this test reads as well
    "str(report.get('reason'))": None,
    "report.get('reason')": None,
    "run.get('reason')": None,
    "made.reason": None,
    "outcome.reason": None,
    "outcome.name": None,
    "*reason": None,
    "reasons": None,
    "found.reasons": None,
    "error.code": None,
    "type(error).__name__": "<exception>",
    "error.evidence": "<evidence>",
    "end.signal": "<signal>",
    "state.state": "<state>",
    "FORGOTTEN": "job_forgotten",
    "RESTARTED": "REQUEUED",
}


def literals(node: ast.expr) -> Iterator[str]:
    """The codes that an expression can be; a field of an f-string becomes the word of a row."""
    if isinstance(node, ast.Constant):
        if node.value is not None:
            yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            FIELDS[ast.unparse(part.value)] if isinstance(part, ast.FormattedValue) else ast.literal_eval(part)
            for part in node.values
        )
    elif isinstance(node, ast.IfExp):
        yield from [*literals(node.body), *literals(node.orelse)]
    elif isinstance(node, ast.BinOp):
        yield from [*literals(node.left), *literals(node.right)]
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from literals(value)
    elif isinstance(node, ast.Tuple | ast.List):
        for each in node.elts:
            yield from literals(each.value if isinstance(each, ast.Starred) else each)
    elif (row := HANDED_ON[ast.unparse(node)]) is not None:
        yield row


def argument(call: ast.Call, place: int, *keywords: str) -> Iterator[ast.expr]:
    yield from call.args[place : place + 1]
    yield from (each.value for each in call.keywords if each.arg in keywords)


def codes_of_calls(tree: ast.AST) -> Iterator[str]:
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        if name == "UnsupportedError":
            yield from (code for given in argument(call, 1, "code") for code in literals(given))
        if name == "Outcome":
            yield from (code for given in argument(call, 1, "reason") for code in literals(given))
        if name == "_judge_share":
            yield from literals(call.args[3])
        if name in ("Audit", "Validity"):
            for given in argument(call, 2 if name == "Audit" else 1, "reasons"):
                if isinstance(given, ast.Tuple | ast.IfExp) and ast.unparse(given) not in SEEN_ELSEWHERE:
                    yield from literals(given)


def codes_of_audits(tree: ast.AST) -> Iterator[str]:
    """What is put into a variable or field `reasons`, and what `_reasons` gives."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == ["reasons"]:
            if not isinstance(node.value, ast.Call):
                yield from literals(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "reasons.append":
            yield from literals(node.args[0])
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "replace":
            yield from (code for each in node.keywords if each.arg == "reasons" for code in literals(each.value))
        elif isinstance(node, ast.FunctionDef) and node.name == "_reasons":
            (table,) = (each for each in ast.walk(node) if isinstance(each, ast.Dict))
            yield from (code for key in table.keys if key is not None for code in literals(key))


def codes_of_refusals(tree: ast.AST) -> Iterator[str]:
    """What functions return that give a code and a sentence."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        if function.returns is None or ast.unparse(function.returns) != "Reason | None":
            continue
        for returned in (node.value for node in ast.walk(function) if isinstance(node, ast.Return)):
            pair = returned.body if isinstance(returned, ast.IfExp) else returned
            if isinstance(pair, ast.Tuple):
                yield from literals(pair.elts[0])


def codes_of_table(tree: ast.AST) -> Iterator[str]:
    """Second place of each row of `_NOT_TAKEN`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_NOT_TAKEN":
            assert isinstance(node.value, ast.Tuple)
            yield from (code for row in node.value.elts if isinstance(row, ast.Tuple) for code in literals(row.elts[1]))


def codes_of_reports(tree: ast.AST) -> Iterator[str]:
    """`{"outcome": ..., "reason": ...}` that a worker sends."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [ast.unparse(key) if key is not None else "" for key in node.keys]
            if "'outcome'" in keys and "'reason'" in keys:
                yield from literals(node.values[keys.index("'reason'")])


def used() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        tree, place = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(SOURCE)
        readers = [codes_of_calls]
        if place.parent.name == "precision" or place.name == "audits.py":
            readers.append(codes_of_audits)
        if place.parent.name == "machine":
            readers.append(codes_of_refusals)
        if place.name == "onnxruntime_errors.py":
            readers.append(codes_of_table)
        if place.parent.name == "worker":
            readers.append(codes_of_reports)
        found |= {code: place for reader in readers for code in reader(tree)}
    return found


USED = used()


def row_of(code: str) -> Cause | None:
    if code.removeprefix("no_") in PACKAGES:
        code = "no_<package>"
    exact = (cause for cause in CAUSES if cause.code == code)
    path = (cause for cause in CAUSES if cause.code.replace("<path>", "none") == code)
    return next(exact, None) or next(path, None)


def test_each_way_of_giving_a_code_is_read() -> None:
    of_calls = {
        "no_gpu",
        "timeout",
        "outputs_differ",
        "not_asked",
        "no_integer_kernels",
        "no_<precision>_on_<provider>",
    }
    elsewhere = {"products_not_seen", "tf32_kernels", "no_plugin", "opset_too_new", "input_refused", "<signal>"}
    assert of_calls | elsewhere <= set(USED)


@pytest.mark.parametrize("code", sorted(USED))
def test_a_code_that_is_used_has_a_row(code: str) -> None:
    assert row_of(code) is not None, f"{USED[code]}: {code}: add a row to pybench/catalogue/causes.py"


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.code)
def test_a_row_is_used(cause: Cause) -> None:
    assert cause in [row_of(code) for code in USED], f"{cause.code} is used nowhere"


@pytest.mark.parametrize("code", [code for code in ReasonCode if code is not ReasonCode.LINES_IN_BURSTS])
def test_a_reason_of_a_value_is_used(code: ReasonCode) -> None:
    name = f"ReasonCode.{code.name}"
    assert any(name in path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")), name


def test_a_code_has_one_row_of_its_kind() -> None:
    assert len({(cause.code, cause.kind) for cause in CAUSES}) == len(CAUSES)


@pytest.mark.parametrize("row", [*ReasonCode, *CAUSES], ids=lambda row: row.code)
def test_an_advice_says_what_to_do(row: Cause | ReasonCode) -> None:
    verbs = "check compare convert do end enlarge export free generate improve install keep leave let load look lower "
    verbs += (
        "measure mend mount name prefer put raise read rebuild report reserve run set submit take treat unset use wait"
    )
    assert row.advice.split()[0] in verbs.split()
    assert row.meaning.rstrip(".") == row.meaning
