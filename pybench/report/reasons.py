# SPDX-License-Identifier: Apache-2.0
"""Texts of reasons, grouped by their codes: what differs from run to run is shown once, as an example."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pybench.analysis.comparability import Comparability
from pybench.catalogue.reasons import Reason, ReasonCode, reason_from_text

NOT_MEASURED = "not measured"
_SIDE = re.compile(r"(the case|the baseline): ")


def codes_of(text: str) -> str:
    """What texts of the same reasons have in common: the codes, and the side that they are said of. Other texts have
    nothing in common."""
    side, reasons = _read(text)
    codes = dict.fromkeys(reason.stored_code for reason in reasons)
    return side + "; ".join(codes) if reasons else text


def group_text(texts: Sequence[str], count: str = "") -> str:
    """One text for those of a group. `count`: of what they are said, as in `15 cells`; it is told where they differ.
    A code without facts has its meaning."""
    texts = [_once(text) for text in texts]
    side, reasons = _read(texts[0])
    is_bare = bool(reasons) and not any(reason.detail for reason in reasons)
    meanings = "; ".join(f"{reason.stored_code}: {reason.code.meaning}" for reason in reasons)
    if len(set(texts)) == 1 or not reasons:
        return side + meanings if is_bare else texts[0]
    details = "; ".join(reason.detail for reason in reasons if reason.detail)
    told = "; ".join(part for part in (count, f"one of them: {details}" if details else "") if part)
    return f"{side}{meanings} ({told})" if told else f"{side}{meanings}"


def because(why: str) -> str:
    """A reason as the end of a sentence: its colons, if any, are in brackets."""
    lead, _, rest = why.partition(": ")
    if _SIDE.match(why):
        return f"because {lead} " + ("was not measured" if rest == NOT_MEASURED else f"has no value ({rest})")
    if lead == Comparability.NOT_COMPARABLE.value:
        return f"because {rest}"
    if why == NOT_MEASURED:
        return "because it was not measured"
    return f"because {'' if ' ' in lead else 'of '}{lead}" + (f" ({rest})" if rest else "")


def _once(text: str) -> str:
    """A text without reasons that it has already said: a value of two windows can lack both for the same one."""
    side, reasons = _read(text)
    kept = list(dict.fromkeys(reasons))
    return text if len(kept) == len(reasons) else side + "; ".join(map(str, kept))


def _read(text: str) -> tuple[str, list[Reason]]:
    """The side in front of a text, and its reasons; none where it does not begin with a code."""
    side = found[0] if (found := _SIDE.match(text)) else ""
    reasons: list[Reason] = []
    for part in text.removeprefix(side).split("; "):
        reason = reason_from_text(part)
        if reason.code is not ReasonCode.OTHER:
            reasons.append(reason)
        elif reasons:  # a semicolon inside the facts
            reasons[-1] = Reason(reasons[-1].code, f"{reasons[-1].detail}; {part}", reasons[-1].names)
        else:
            return "", []
    return side, reasons
