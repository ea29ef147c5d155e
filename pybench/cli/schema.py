# SPDX-License-Identifier: Apache-2.0
"""`pybench schema`."""

from __future__ import annotations

from pybench.cli.show import say


def schema() -> None:
    """Print the JSON Schema of plans, for editors."""
    from pybench.catalogue.installed import installed
    from pybench.plan.schema import plan_schema_text

    found = installed()
    for error in found.refused:
        say(f"warning: {error}")
    print(plan_schema_text(found.catalogue), end="")
