# SPDX-License-Identifier: Apache-2.0
"""One row per thing: outside the catalogue and a thing's own module, code asks rows and compares no names.

A comparison of a case's workload, runtime, model, provider, precision or path with a literal, or a table with two such
names, shows that a row lacks a property. What remains is listed here, each with its reason. And one word for one thing:
no class name is given twice, with a leading underscore or without.
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.support.names import PACKAGE, Search, comparisons, constants_of, places, sources, tables, tree_of

MOST = 6  # comparisons, and tables

_OPTIONS = "onnxruntime's own options: each provider has other ones, and no other file knows them"
_FACTS = "facts of a machine: these are packages, some of which have the name of their runtime"

# "file: code" -> why it stays
COMPARISONS = {
    "runtimes/providers.py: provider == 'tensorrt'": _OPTIONS,
    "runtimes/providers.py: precision in ('tf32', 'fp16')": _OPTIONS,
    "quick/candidates.py: case.precision == BASELINE": "a choice of this command, made once",
}
TABLES = {
    "runtimes/providers.py: ('cpu', 'cuda', 'tensorrt')": _OPTIONS,
    "worker/probe.py: {'machine': _machine, 'cuda': _cuda, ...": _FACTS,
}


def test_names_are_compared_only_where_a_reason_is_listed() -> None:
    assert places(comparisons, sources()) == Counter(COMPARISONS.keys())
    assert len(COMPARISONS) <= MOST


def test_names_stand_in_tables_only_where_a_reason_is_listed() -> None:
    assert places(tables, sources()) == Counter(TABLES.keys())
    assert len(TABLES) <= MOST


def test_equal_lines_are_counted_file_by_file() -> None:
    once = ast.parse("x = provider == 'cuda'")
    twice = ast.parse("x = provider == 'cuda'\ny = provider == 'cuda'")
    counted = {"audits.py: provider == 'cuda'": 2, "runtimes/audits.py: provider == 'cuda'": 1}
    assert places(comparisons, {"audits.py": twice, "runtimes/audits.py": once}) == counted


@pytest.mark.parametrize(
    "code",
    [
        "case.runtime == 'torch'",
        "'torch' != case.runtime",
        "workload in ('train', 'infer')",
        "case.workload not in frozenset({'train'})",
        "own_provider == 'cuda'",
        "provider_name == 'cuda'",
        "case.provider.name == 'cuda'",
        "row.name == 'tensorrt'",
        "labels['provider'] == 'cuda'",
        "labels.get('provider') == 'cuda'",
        "labels.get('provider', None) == 'cuda'",
        "getattr(case, 'provider') == 'cuda'",
        "str(case.provider).lower() == 'cuda'",
        "(provider := case.provider) == 'cuda'",
        "(case.provider, threads) == ('cuda', 1)",
        "pl.col('provider') == 'cuda'",
        "case.runtime_row is RUNTIMES['torch']",
        "case.runtime.startswith('torch-')",
        "case.runtime.removesuffix('-compile')",
        "'graph' in case.runtime",
        "case.provider == _GPU",
        "case.workload in _TRAINING",
        "case.runtime == NAME",
        "case.precision == 'tf32'",
        "parameters['precision'] in ('fp32', 'tf32')",
        "own.name == 'int8+fp16'",
        "case.path != 'none'",
    ],
)
def test_a_comparison_is_seen(code: str) -> None:
    constants = "from pybench.runtimes.torch import NAME\n_GPU = 'cuda'\n_TRAINING = {'train', 'fit'}\n"
    assert code in _seen(constants + f"found = {code}", comparisons)


@pytest.mark.parametrize("pattern", ["'cuda'", "'auto' | 'cuda'", "'cuda' as found"])
def test_a_case_of_a_match_is_seen(pattern: str) -> None:
    code = f"match case.provider:\n    case {pattern}:\n        pass"
    assert _seen(code, comparisons) == [pattern]


@pytest.mark.parametrize(
    "code",
    [
        "device == 'cuda'",
        "row.rests_on == 'accuracy'",
        "split == 'train'",
        "case.runtime == case.provider",
        "floating_type(case.precision) == 'fp32'",
        "layer.type == 'tf32'",
        "rounding == 'none'",
    ],
)
def test_a_word_for_something_else_is_not_seen(code: str) -> None:
    assert _seen(code, comparisons) == []


@pytest.mark.parametrize(
    "code",
    [
        "{'torch': 1, 'tensorrt': 2}",
        "{1: 'torch', 2: 'tensorrt'}",
        "('train', 'infer')",
        "['auto', 'cpu', 'cuda']",
        "(('torch', 1), ('tensorrt', 2))",
        "dict(torch=1, tensorrt=2)",
        "Literal['torch', 'tensorrt']",
        "('int8+fp16', 'amp-bf16')",
    ],
)
def test_a_table_is_seen(code: str) -> None:
    assert len(_seen(f"found = {code}", tables)) == 1


@pytest.mark.parametrize(
    "code", ["{'torch': 1}", "('torch', 'train')", "{'torch': {'tensorrt': 1}}", "{'fp32': 4, 'int8': 1}"]
)
def test_names_of_two_kinds_are_no_table(code: str) -> None:
    assert _seen(f"found = {code}", tables) == []


def _seen(code: str, search: Search) -> list[str]:
    tree = ast.parse(code)
    return [ast.unparse(node) for node in search(tree, constants_of(tree))]


def classes(trees: dict[str, ast.AST]) -> dict[str, list[str]]:
    """Name of a class, without leading underscores -> the files that define one of this name."""
    found: dict[str, list[str]] = {}
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.lstrip("_"), []).append(file)
    return found


def test_a_class_name_is_given_once() -> None:
    found = classes({str(path.relative_to(PACKAGE)): tree_of(path) for path in PACKAGE.rglob("*.py")})
    assert len(found) > 300
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_a_class_name_that_is_given_twice_is_seen() -> None:
    trees: dict[str, ast.AST] = {
        "a.py": ast.parse("class One: pass\nclass Other: pass"),
        "b.py": ast.parse("def f():\n    class _One: pass"),
    }
    assert classes(trees) == {"One": ["a.py", "b.py"], "Other": ["a.py"]}
