# SPDX-License-Identifier: Apache-2.0
"""Metrics of the kernels of an iteration, by a profile."""

from __future__ import annotations

from pybench.catalogue.metrics.metric import Metric

ROWS = (
    Metric(
        name="kernels_count",
        group="kernels",
        unit="count",
        better="none",
        label="Kernels",
        meaning="kernels that one iteration runs, by a profile that was made after every window",
        rests_on=None,
        scale="difference",
        is_counted=True,
    ),
    Metric(
        name="moving_kernels_count",
        group="kernels",
        unit="count",
        better="none",
        label="Moving kernels",
        meaning="kernels that only copy, transpose, cast or change the layout of a tensor; "
        "those that quantise are not among them",
        rests_on=None,
        scale="difference",
        is_counted=True,
    ),
    Metric(
        name="qdq_nodes_count",
        group="kernels",
        unit="count",
        better="none",
        label="Q/DQ nodes",
        meaning="nodes of the ONNX file that quantise or dequantise a tensor",
        rests_on=None,
        scale="difference",
        is_counted=True,
    ),
    Metric(
        name="multiplying_time_ratio",
        group="kernels",
        unit="1",
        better="none",
        label="Time multiplying",
        meaning="share of the profiled kernels' time in convolutions and matrix products",
        rests_on=None,
        scale="difference",
        is_share=True,
    ),
    Metric(
        name="moving_time_ratio",
        group="kernels",
        unit="1",
        better="none",
        label="Time moving",
        meaning="share of the profiled kernels' time in kernels that only copy, transpose, cast or change a layout",
        rests_on=None,
        scale="difference",
        is_share=True,
    ),
    Metric(
        name="quantising_time_ratio",
        group="kernels",
        unit="1",
        better="none",
        label="Time quantising",
        meaning="share of the profiled kernels' time in kernels that only quantise or dequantise",
        rests_on=None,
        scale="difference",
        is_share=True,
    ),
    Metric(
        name="gpu_busy_ratio",
        group="kernels",
        unit="1",
        better="none",
        label="GPU busy",
        meaning="time in which at least one kernel of an iteration runs, recorded after every window, divided by the "
        "unprofiled time of an iteration",
        rests_on="timing",
        scale="difference",
        is_share=True,
    ),
)
