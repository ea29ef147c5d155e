# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from pybench.catalogue.reasons import Reason, ReasonCode, invalidate, reason_from_text


@pytest.mark.parametrize("code", list(ReasonCode))
def test_a_reason_is_read_as_it_was_stored(code: ReasonCode) -> None:
    reason = Reason(code, "the facts: 3 of 4")
    assert reason_from_text(str(reason)) == reason


@pytest.mark.parametrize("text", ["a_later_code: with facts", "words of a plug-in", "no_profile", ""])
def test_a_code_that_is_not_known_here_stays_as_it_is(text: str) -> None:
    read = reason_from_text(text)
    assert (read.code, str(read)) == (ReasonCode.OTHER, text)
    assert not invalidate([read])


def test_one_reason_that_ends_the_validity_is_enough() -> None:
    throttled, gap = Reason(ReasonCode.THROTTLED, "heat"), Reason(ReasonCode.GAP, "0.3 s")
    assert invalidate([throttled, gap])
    assert not invalidate([throttled])
    assert not invalidate([])
