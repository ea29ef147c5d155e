# SPDX-License-Identifier: Apache-2.0
"""What a model puts out on what it was fed: whether its numbers are finite, by one more pass after the windows.

NaN and infinities change neither the types that ran nor, as a rule, the times, so a run with them stays valid; but what
was timed computes nothing. Whether finite outputs are right is not judged here: `accuracy` does that.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench.catalogue.cautions import Caution, CautionCode
from pybench.errors import in_short
from pybench.measurement.result import Result
from pybench.runtimes.bfloat16 import is_bfloat16
from pybench.runtimes.session import Arrays, Session

LABEL = "outputs"
_LONGEST_ERROR = 200  # characters of a failed pass's message that are kept
_AT_ONCE = 1 << 24  # numbers that are looked at together: a mask of a large output would take its memory again


def look_at_outputs(result: Result, session: Session, fed: Arrays) -> None:
    """Adds the label `outputs`, and a caution for each output with NaN or infinities.

    `fed`: what the iterations were fed. It comes last, because a session that was audited and profiled is for no window
    any more. A pass that fails costs none.
    """
    try:
        found = _found(session, fed)
    except Exception as error:  # whatever a framework throws, such as a GPU without room for one more output
        traceback.print_exc()
        result.labels[LABEL] = f"not known: one more pass failed ({in_short(error, _LONGEST_ERROR)})"
        return
    result.labels[LABEL] = "; ".join(found) or "finite"
    result.cautions += [Caution(CautionCode.OUTPUTS_NOT_FINITE, said) for said in found]


def leave_outputs(result: Result, why: str) -> None:
    """Says in the label `outputs` that nothing was looked at."""
    result.labels[LABEL] = f"not looked at: {why}"


def _found(session: Session, fed: Arrays) -> list[str]:
    outputs = session.run(fed)
    names = session.output_names or [f"output {place}" for place in range(1, len(outputs) + 1)]
    return [said for name, array in zip(names, outputs, strict=True) if (said := not_finite(name, array))]


def not_finite(name: str, values: npt.NDArray[Any]) -> str | None:
    """How many numbers of an output are NaN or infinite; None: all are finite, or it has no floating-point numbers."""
    if values.dtype.kind != "f" and not is_bfloat16(values.dtype):
        return None
    tests: dict[str, Callable[..., npt.NDArray[np.bool_]]] = {"NaN": np.isnan, "inf": np.isposinf, "-inf": np.isneginf}
    counts = dict.fromkeys(tests, 0)
    flat = values.reshape(-1)
    for begin in range(0, flat.size, _AT_ONCE):
        part = flat[begin : begin + _AT_ONCE]
        if not np.isfinite(part).all():
            counts = {word: count + int(tests[word](part).sum()) for word, count in counts.items()}
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"{name}: {said} of {values.size} numbers" if said else None
