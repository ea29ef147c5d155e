# SPDX-License-Identifier: Apache-2.0
"""The code that a row names, as `module:name`."""

from __future__ import annotations

import importlib
from typing import Any


def named_code(name: str) -> Any:
    """The object that `module:name` names. Importing its module may take seconds and import a framework."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def code_of(row: Any, name: str) -> Any:
    """The object that the property `name` of a row names. Raises ImportError or AttributeError with the property."""
    named = getattr(row, name)
    try:
        return named_code(named)
    except (ImportError, AttributeError) as error:
        raise type(error)(f"`{name}` of {row.name}, {named}: {error}", name=error.name) from error
