# SPDX-License-Identifier: Apache-2.0
"""The kernels that onnxruntime's CPU provider runs of a file, with the time of each.

onnxruntime records a session from its start or not at all. So a second session is opened with the same options, after
every window, and thrown away; what it writes is read and removed.
"""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime

from pybench import measure
from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError
from pybench.kernels.operators import profile_of_runs
from pybench.kernels.profile import Profile
from pybench.onnx_file.facts import stored_bytes
from pybench.onnx_file.graph import read_graph
from pybench.runtimes import bfloat16
from pybench.runtimes.session import Arrays

SKIPPED_RUNS = 1  # the first one allocates
MOST_RUNS = 10
LONGEST_NS = 2_000_000_000  # after which no further run is begun
SPARE_RATIO = 0.25  # of the memory that is free: a file above it is not opened a second time


def profile_session(path: Path, options: Any, providers: Any, inputs: Arrays) -> Profile:
    """Opens a file as `options` and `providers` say, and records runs on `inputs`. Raises UnsupportedError for a file
    that might not fit into memory twice."""
    _refuse_large(path)
    with tempfile.TemporaryDirectory(prefix="pybench-profile-") as folder:
        optimised = Path(folder) / "optimised.onnx"
        options.optimized_model_filepath = str(optimised)
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "trace")
        session = onnxruntime.InferenceSession(path, options, providers=providers, enable_fallback=0)
        _run(session, inputs)
        trace = json.loads(Path(session.end_profiling()).read_bytes())
        return profile_of_runs(trace, read_graph(path), read_graph(optimised), skipped=SKIPPED_RUNS)


def _run(session: onnxruntime.InferenceSession, inputs: Arrays) -> None:
    run = partial(bfloat16.run_raw, session) if bfloat16.has_bfloat16(session) else session.run
    begin_ns = measure.monotonic_ns()
    for number in range(SKIPPED_RUNS + MOST_RUNS):
        run(None, dict(inputs))
        if number >= SKIPPED_RUNS and measure.monotonic_ns() - begin_ns > LONGEST_NS:
            return


def _refuse_large(path: Path) -> None:
    free_bytes = measure.available_bytes()
    file_bytes = stored_bytes(path)
    if free_bytes is not None and file_bytes > SPARE_RATIO * free_bytes:
        raise UnsupportedError(
            f"{path.name} has {file_bytes} bytes, and {free_bytes} bytes of memory are free: too few to open it twice",
            code=Cause.NO_ROOM_FOR_PROFILE,
        )
