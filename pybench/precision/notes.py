# SPDX-License-Identifier: Apache-2.0
"""What pybench notes in an ONNX file: properties of the file, among them which nodes were left in higher precision.

Read by the wire format, as `onnx_graph` does, so that a run does not pay for importing the onnx package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pybench.precision.onnx_graph import read_properties

KEPT_KEY = "pybench.kept"  # JSON: names of nodes that were deliberately not quantised or not lowered


@dataclass(frozen=True, slots=True)
class Notes:
    """`metadata`: every property of the file; `kept`: names of nodes that stay in higher precision."""

    metadata: dict[str, str]
    kept: tuple[str, ...]


def read_notes(path: Path) -> Notes:
    """Raises InputError when the file is no ONNX file."""
    metadata = read_properties(path)
    try:
        kept = json.loads(metadata.get(KEPT_KEY, "[]"))
    except ValueError:
        kept = []  # another program's property of that name
    return Notes(metadata, tuple(str(name) for name in kept) if isinstance(kept, list) else ())
