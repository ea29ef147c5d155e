# SPDX-License-Identifier: Apache-2.0
"""YAML files that people write: a plan, a site file, a scenario.

`tree` reads a text as values that know their line and column; `keys` reads such a tree into frozen dataclasses.
"""

from pybench.document.tree import (
    MAXIMUM_BYTES,
    FileKind,
    Node,
    Place,
    Plain,
    Scalar,
    Unplaced,
    core_scalar,
    parse_text,
    read_document,
    read_text,
)

__all__ = [
    "MAXIMUM_BYTES",
    "FileKind",
    "Node",
    "Place",
    "Plain",
    "Scalar",
    "Unplaced",
    "core_scalar",
    "parse_text",
    "read_document",
    "read_text",
]
