# SPDX-License-Identifier: Apache-2.0
"""Names of nodes, as regular expressions such as `keep_fp32` match them: what a rewritten file calls the nodes of a
user's, and which of them an expression matches whole.

Does not follow local functions: their nodes are named when they are put into the main graph.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pybench.onnx_file.graph import OnnxGraph, OnnxModel, node_name
from pybench.onnx_file.inputs import Misfit

KEEP_LIST = "keep_fp32"
NAMED = 3  # nodes that a hint names
LEAST_SHARED = 3  # letters in a row that a near name has of an expression: two are in almost every name


def free_names(nodes: Iterable[tuple[str, str]]) -> list[str]:
    """A name for each (name, operator): its own, but for nodes without a name or with one that an earlier node has."""
    found: list[str] = []
    taken: set[str] = set()
    for number, (name, op) in enumerate(nodes):
        found.append(name if name and name not in taken else f"{name or op}_{number}")
        taken.add(found[-1])
    return found


def rewritten_names(model: OnnxModel, *, batch_is_freed: bool) -> list[str] | None:
    """What nodes are called where a lower precision is made of the file; None: that is not known before.

    `batch_is_freed`: whether the file is rewritten for another batch first. Constants become initialisers, so they have
    no name. Nodes of functions are named as they are put into the graph, and numbers follow the order of running.
    """
    graph = model.graph
    own = [node_name(node.name, next(iter(node.outputs), "")) if batch_is_freed else node.name for node in graph.nodes]
    is_numbered = "" in own or len(set(own)) < len(own)
    if model.functions or (is_numbered and not _is_in_running_order(graph)):
        return None
    names = free_names(zip(own, (node.op for node in graph.nodes), strict=True))
    return [
        name
        for name, node in zip(names, graph.nodes, strict=True)
        if node.op != "Constant" and not (node.op == "Identity" and node.inputs[0] in graph.weights)
    ]


def _is_in_running_order(graph: OnnxGraph) -> bool:
    waiting = Counter(name for node in graph.nodes for name in node.outputs)
    for node in graph.nodes:
        if any(waiting[name] for name in node.inputs):
            return False
        waiting.subtract(node.outputs)
    return True


def matched(expression: str, names: Sequence[str]) -> set[str]:
    """The names that a valid regular expression matches whole. Raises Misfit where there is none, with names like it:
    a plan would claim what is not so."""
    compiled = re.compile(expression)
    found = {name for name in names if compiled.fullmatch(name)}
    if found:
        return found
    part = next((name for name in names if compiled.search(name)), None)
    if part is not None:
        hint = f"it must match a whole name, but matches only a part of {part}: put .* around it"
    else:
        hint = f"names are like {', '.join(_near(expression, names))}"
    raise Misfit(f"no node's whole name matches {expression!r}", hint, KEEP_LIST)


def _near(expression: str, names: Sequence[str]) -> list[str]:
    """The few names that have the longest part in common with an expression, or the first ones."""
    plain = re.sub(r"\\(.)|[.*+?^$()\[\]{}|]", r"\1", expression)
    matcher = difflib.SequenceMatcher(b=plain, autojunk=False)
    shared: dict[str, int] = {}
    for name in names:
        matcher.set_seq1(name)
        shared[name] = matcher.find_longest_match().size
    near = [name for name in shared if shared[name] >= LEAST_SHARED]
    return list(dict.fromkeys([*sorted(near, key=lambda name: -shared[name]), *names]))[:NAMED]
