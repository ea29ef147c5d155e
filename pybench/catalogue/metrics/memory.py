# SPDX-License-Identifier: Apache-2.0
"""Metrics of memory and size, and of the time until a model is ready."""

from __future__ import annotations

from pybench.catalogue.metrics.metric import Metric

ROWS = (
    Metric(
        name="peak_host_bytes",
        group="memory and size",
        unit="bytes",
        better="lower",
        label="Peak host memory",
        meaning="largest resident set of the worker in the timing window",
        rests_on=None,
    ),
    Metric(
        name="peak_device_bytes",
        group="memory and size",
        unit="bytes",
        better="lower",
        label="Peak device memory",
        meaning="largest device memory of the worker",
        rests_on=None,
    ),
    Metric(
        name="model_bytes",
        group="memory and size",
        unit="bytes",
        better="lower",
        label="Model size",
        meaning="size of what the runtime executes: its file, or the parameters where there is no file",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="kv_cache_bytes",
        group="memory and size",
        unit="bytes",
        better="lower",
        label="Cache of keys and values",
        meaning="size of the keys and values of a whole request",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="build_s",
        group="memory and size",
        unit="s",
        better="lower",
        label="Engine build time",
        meaning="time from the ONNX file to the TensorRT engine on its GPU, without loading TensorRT",
        rests_on=None,
    ),
    Metric(
        name="compile_s",
        group="memory and size",
        unit="s",
        better="lower",
        label="Compile time",
        meaning="time in which the runtime made the model ready: graph passes, compilation with empty caches, capture",
        rests_on=None,
    ),
)
