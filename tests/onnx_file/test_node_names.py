# SPDX-License-Identifier: Apache-2.0
"""What nodes are called once a file is rewritten, compared with the files that are rewritten."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from pybench.errors import PybenchError
from pybench.onnx_file.graph import read_model
from pybench.onnx_file.inputs import Misfit
from pybench.onnx_file.node_names import free_names, matched, rewritten_names
from pybench.precision.network import open_network
from tests.support.onnx_files import FILES, write


def test_names_are_those_of_the_network_that_is_rewritten(tmp_path: Path) -> None:
    compared = 0
    for name in FILES:
        path = write(name, tmp_path / name)
        try:
            nodes, found = open_network(path).nodes, rewritten_names(read_model(path), batch_is_freed=False)
        except (PybenchError, onnx.checker.ValidationError):
            continue  # of such a file nothing is made
        if found is not None:
            assert found == [node.name for node in nodes], name
            compared += 1
    assert compared > 40


def test_a_name_that_is_taken_or_missing_gets_the_nodes_number() -> None:
    assert free_names([("a", "Relu"), ("", "Add"), ("a", "Relu")]) == ["a", "Add_1", "a_2"]


def test_an_expression_matches_whole_names_or_says_which_are_near() -> None:
    names = ["/stem/Conv", "/body/branch2/Conv", "/body/branch2/Relu", "/head/Gemm"]
    assert matched(r"/body/.*|/head/Gemm", names) == set(names[1:])
    with pytest.raises(Misfit) as raised:
        matched(r"/body\.branch2/.*/Gelu", names)
    assert raised.value.hint == "names are like /body/branch2/Conv, /body/branch2/Relu, /head/Gemm"
    with pytest.raises(Misfit) as raised:
        matched("xyz", names)
    assert raised.value.hint == "names are like /stem/Conv, /body/branch2/Conv, /body/branch2/Relu"
