# SPDX-License-Identifier: Apache-2.0
"""The licence of a publication: an identifier of SPDX, or an address.

The list is that of `packaging`, which follows SPDX. Expressions of several licences are not taken: the crate names one
entity by its address. Source: SPDX 2.3, Annex A and D.
"""

from __future__ import annotations

import difflib
import re

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from pybench.errors import UsageError

# Licences of data and of code that a hint names; each is in the list of SPDX.
USUAL = (
    "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-ND-4.0", "CC-BY-NC-SA-4.0", "CC-BY-3.0", "CC0-1.0",
    "ODbL-1.0", "ODC-By-1.0", "PDDL-1.0", "CDLA-Permissive-2.0", "Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause",
    "ISC", "MPL-2.0", "EUPL-1.2", "GPL-2.0-only", "GPL-3.0-only", "GPL-3.0-or-later", "LGPL-3.0-or-later",
    "AGPL-3.0-or-later", "Unlicense",
)  # fmt: skip
_SEVERAL = re.compile(r"\b(OR|AND|WITH)\b")
_IDENTIFIER = re.compile(r"(?!LicenseRef-)[A-Za-z0-9.-]+", re.IGNORECASE)


def checked_licence(given: str) -> str:
    """The licence as SPDX writes it, or the address as it is. Raises UsageError for anything else."""
    if re.fullmatch(r"https://\S+", given):
        return given
    if _IDENTIFIER.fullmatch(given):
        try:
            return canonicalize_license_expression(given)
        except InvalidLicenseExpression:
            pass
    raise UsageError(f"--license {given}: no licence in SPDX's list has this identifier", hint=_hint(given))


def _hint(given: str) -> str:
    usual = {name.upper(): name for name in USUAL}
    near = difflib.get_close_matches(given.upper(), usual, 1)
    if near and not _SEVERAL.search(given):
        return f"did you mean `{usual[near[0]]}`?"
    return "give one of https://spdx.org/licenses, or an https:// address"
