# SPDX-License-Identifier: Apache-2.0
"""What a model puts out on what it was fed: whether its numbers are finite, by one more pass after the windows.

NaN and infinities change neither the types that ran nor, as a rule, the times, so a run with them stays valid; but what
was timed computes nothing. Whether finite outputs are right is not judged here: `accuracy` does that.
"""

from __future__ import annotations

import traceback
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


def look_at_outputs(result: Result, session: Session, fed: Arrays | None) -> None:
    """Adds the label `outputs`, and a caution for each output with NaN or infinities.

    `fed`: what the iterations were fed; None: the runtime read it itself, and nothing can be fed again. It comes last,
    because a session may be for nothing else after its audit but one more pass. A pass that fails costs no window.
    """
    if fed is None:
        result.labels[LABEL] = "not looked at: the runtime takes text alone"
        return
    try:
        outputs = session.run(fed)
    except Exception as error:  # whatever a framework throws, such as a GPU without room for one more output
        traceback.print_exc()
        result.labels[LABEL] = f"not known: one more pass failed ({in_short(error, _LONGEST_ERROR)})"
        return
    names = session.output_names or [f"output {place}" for place in range(1, len(outputs) + 1)]
    found = [said for name, array in zip(names, outputs, strict=True) if (said := not_finite(name, array))]
    result.labels[LABEL] = "; ".join(found) or "finite"
    result.cautions += [Caution(CautionCode.OUTPUTS_NOT_FINITE, said) for said in found]


def not_finite(name: str, values: npt.NDArray[Any]) -> str | None:
    """How many numbers of an output are NaN or infinite; None: all are finite, or it has no floating-point numbers."""
    is_floating = values.dtype.kind == "f" or is_bfloat16(values.dtype)
    if not is_floating or np.isfinite(values).all():
        return None
    counts = {"NaN": np.isnan(values).sum(), "inf": np.isposinf(values).sum(), "-inf": np.isneginf(values).sum()}
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"{name}: {said} of {values.size} numbers"
