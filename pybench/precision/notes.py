# SPDX-License-Identifier: Apache-2.0
"""What pybench notes in an ONNX file: properties of the file, among them which nodes were left in higher precision.

Read by the wire format, as `onnx_file.graph` does, so that a run does not pay for importing the onnx package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pybench.onnx_file.graph import read_properties

KEPT_KEY = "pybench.kept"  # JSON: node -> why it was not quantised or not lowered, in a word


@dataclass(frozen=True, slots=True)
class Notes:
    """`metadata`: every property of the file; `kept`: nodes that stay in higher precision, each with the reason."""

    metadata: dict[str, str]
    kept: dict[str, str]


def read_notes(path: Path) -> Notes:
    """Raises InputError when the file is no ONNX file."""
    metadata = read_properties(path)
    return Notes(metadata, kept_nodes(metadata) or {})


def kept_nodes(metadata: Mapping[str, str]) -> dict[str, str] | None:
    """Node -> why it was kept, out of a file's properties; None: the file declares nothing."""
    try:
        kept = json.loads(metadata.get(KEPT_KEY, "null"))
    except ValueError:
        return None  # another program's property of that name
    return {str(name): str(reason) for name, reason in kept.items()} if isinstance(kept, dict) else None
