# SPDX-License-Identifier: Apache-2.0
"""`pybench explain`."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from pybench.cli.options import DirectoryArgument, JsonOption
from pybench.cli.show import print_json, print_tables

ROWS_SHOWN = 20


def explain(
    directory: DirectoryArgument,
    first: Annotated[str, typer.Argument(metavar="CASE", help="A case: its title, or the beginning of its id.")],
    second: Annotated[str, typer.Argument(metavar="CASE", help="The case to compare it with.")],
    rows: Annotated[
        Optional[int], typer.Option(min=0, metavar="N", help="How many rows of nodes are shown; 0 shows all.")
    ] = ROWS_SHOWN,
    as_json: JsonOption = False,
) -> None:
    """Explain why one case is slower than another, or needs more energy.

    The difference in profiled time is assigned to ONNX nodes, with the kernels of both cases and what is moved,
    reformatted and quantised around them.
    """
    from pybench.analysis.findings.explanation import explain as explain_cases
    from pybench.dataset import load
    from pybench.report.explanation import sentences
    from pybench.report.explanation_tables import explanation_tables

    dataset = load(directory)
    slow, fast = (dataset.plan.named(name, directory) for name in (first, second))
    explanation = explain_cases(dataset, (slow, fast))
    told = sentences(explanation)
    if as_json:
        print_json({"campaign": dataset.plan.name, "sentences": told, **explanation.as_json()})
        return
    slower, faster = explanation.sides
    print(f"{slower.case.title()} against {faster.case.title()}\n")
    print("\n".join(f"  {one}" for one in told) + "\n")
    print_tables(explanation_tables(explanation, rows or None))
