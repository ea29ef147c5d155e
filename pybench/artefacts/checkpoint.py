# SPDX-License-Identifier: Apache-2.0
"""Making of a checkpoint: a built-in model trained on a built-in data set, judged on what is held out of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pybench.artefacts.request import MakeRequest
from pybench.catalogue.code import named_code
from pybench.catalogue.data_sets import DATA_SETS
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import floor_cautions
from pybench.measurement.result import Result


def make(request: MakeRequest, path: Path) -> Result:
    import torch

    from pybench.runtimes.torch import allow_tf32

    allow_tf32(False)  # the verdict says FP32, whatever types training multiplies in
    parameters = request.parameters
    data = DATA_SETS[parameters["trained_on"]]
    trained = named_code(data.train)(request.model, parameters)
    state: dict[str, Any] = trained.model.state_dict()
    torch.save({name: value.detach().cpu().contiguous() for name, value in state.items()}, path)
    result = Result(labels={"trained_on": f"{data.name}, the {data.unit}s that do not judge", **trained.labels})
    for name, value in trained.scores.items():
        result.metrics[name] = _score(value, trained.judged, data.unit)
    result.cautions = floor_cautions(data, result.metrics)
    return result


def _score(value: float, judged: int, unit: str) -> Quantity:
    """A score of held-out data; no value where training diverged. The weights are kept: their runs say so, too."""
    method = f"FP32, held-out {unit}s"
    if math.isfinite(value):
        return Quantity(value=value, samples=judged, method=method)
    why = f"{value} after training: it diverged"
    return Quantity(samples=judged, method=method, reasons=(Reason(ReasonCode.NOT_FINITE, why),))
