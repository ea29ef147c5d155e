# SPDX-License-Identifier: Apache-2.0
"""`pybench schema`."""

from __future__ import annotations


def schema() -> None:
    """Print the JSON Schema of plans, for editors."""
    from pybench.plan.schema import plan_schema_text

    print(plan_schema_text(), end="")
