# SPDX-License-Identifier: Apache-2.0
"""The ONNX files of one environment, each in a folder of its own.

    python bench/onnx_files/made.py MODULE OUT      # MODULE: one of ENVIRONMENTS, such as by_torch

Every module registers its files with `made`. The folder OUT/NAME then has `model.onnx` and `made.json`: the exporter
with its version, and what is odd about the file. Imports the standard library only, because it runs in environments
that have no pybench.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Module -> the packages it needs, None: those of pybench's own environment. Versions of November 2026.
ENVIRONMENTS: dict[str, tuple[str, ...] | None] = {
    "by_helper": None,
    "by_onnxruntime": None,
    "by_torch": None,
    "by_sklearn": (
        "skl2onnx==1.20.0",
        "onnxmltools==1.16.0",
        "lightgbm==4.7.0",
        "onnxconverter-common==1.16.0",
        "pandas==2.3.3",
    ),
    "by_tensorflow": ("tf2onnx==1.17.0", "tensorflow-cpu==2.21.0"),
    "by_paddle": ("paddle2onnx==2.1.0", "paddlepaddle==3.3.1", "packaging==26.0"),
    "by_jax": ("jax2onnx==0.17.1",),
    "by_spox": ("spox==0.18.2", "onnxslim==0.1.98", "onnxruntime==1.31.1"),
}

Write = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class MadeFile:
    """One file. `exporter`: what made it; `odd`: what is unusual about it; `write`: writes it to a path."""

    name: str
    exporter: str
    odd: str
    write: Write


REGISTERED: list[MadeFile] = []


def made(name: str, exporter: str, odd: str) -> Callable[[Write], Write]:
    """Registers a function that writes one file."""

    def register(write: Write) -> Write:
        REGISTERED.append(MadeFile(name, exporter, odd, write))
        return write

    return register


def main(module: str, out: Path) -> None:
    sys.modules["made"] = sys.modules[__name__]  # so that what a module registers is in this list
    importlib.import_module(module)
    for file in REGISTERED:
        folder = out / file.name
        folder.mkdir(parents=True)
        file.write(folder / "model.onnx")
        (folder / "made.json").write_text(json.dumps({"exporter": file.exporter, "odd": file.odd}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
