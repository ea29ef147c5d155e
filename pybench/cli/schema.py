# SPDX-License-Identifier: Apache-2.0
"""`pybench schema`."""

from __future__ import annotations


def schema() -> None:
    """Print the JSON Schema of plans, for editors."""
    from pybench.case.factors import factors_of
    from pybench.catalogue.installed import installed_catalogue
    from pybench.plan.schema import plan_schema_text

    print(plan_schema_text(factors_of(installed_catalogue())), end="")
