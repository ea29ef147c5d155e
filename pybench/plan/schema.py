# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a plan, for editors and other readers: generated from the models. schemas/ holds a copy."""

from __future__ import annotations

import json
from typing import Any

from pybench.plan import shape

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> dict[str, Any]:
    """The schema as data. It knows names, types, ranges and choices, not which factors go together."""
    generated = shape.Plan.model_json_schema()
    title = {"$schema": DIALECT, "title": "pybench plan"}
    return {**title, **{key: value for key, value in generated.items() if key != "title"}}


def plan_schema_text() -> str:
    """The schema as it is printed and committed."""
    return json.dumps(plan_schema(), indent=2, ensure_ascii=False) + "\n"
