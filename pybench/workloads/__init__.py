# SPDX-License-Identifier: Apache-2.0
"""What is measured: one module a workload, each from a `Request` to a `Result`. A worker does exactly one.

    result = workloads.run(request)                                       # a case
    result = workloads.make(recipe, inputs, files, folder)                # an artefact: writes the recipe's file

Both import only what is asked for. Both raise UnsupportedError, InputError or DeviceMemoryError where those are the
answer.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pybench.measurement.result import Request, Result


def run(request: Request) -> Result:
    """Measures one case."""
    from pybench.runtimes.memory import memory_errors

    with memory_errors():
        result: Result = importlib.import_module(request.case.workload_row.module).run(request)
    return result


def make(recipe: Mapping[str, Any], inputs: Mapping[str, Path], files: Mapping[str, Path], folder: Path) -> Result:
    """Makes one artefact: writes the recipe's file into `folder`.

    `recipe`: the stored form of `pybench.recipe.Recipe`; `inputs`: role -> file of the artefact that it builds on;
    `files`: factor -> the user's file.
    """
    from pybench.runtimes.memory import memory_errors
    from pybench.workloads import making

    with memory_errors():
        return making.make(recipe, inputs, files, folder)
