# SPDX-License-Identifier: Apache-2.0
"""Outputs of a file in lower precision against FP32's, on samples; a file whose outputs mean nothing says so itself.

It says so in a property, which the engine that is built of it carries on: so every run of either can doubt it.
"""

from __future__ import annotations

from pathlib import Path

from pybench.artefacts.samples import CalibrationSamples
from pybench.measurement.doubts import (
    HARDLY_VARY_KEY,
    LOST_KEY,
    agreement_note,
    hardly_varying,
    lost_outputs,
    output_cautions,
)
from pybench.measurement.result import Result


def judge_agreement(result: Result, source: Path, path: Path, precision: str, samples: CalibrationSamples) -> None:
    """Adds labels `against_fp32_*` to a result and a note to the file; doubts about the outputs go to both."""
    from pybench.precision.execution import compare_files
    from pybench.precision.int8 import stamp

    labels = compare_files(source, path, precision, samples.compared())
    result.labels |= labels | {"outputs_hardly_vary": hardly_varying(labels)}
    doubts = {LOST_KEY: lost_outputs(labels), HARDLY_VARY_KEY: hardly_varying(labels)}
    note = agreement_note(labels) | {key: why for key, why in doubts.items() if why is not None}
    stamp(path, note)
    result.cautions += output_cautions(note)
