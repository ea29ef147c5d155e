# SPDX-License-Identifier: Apache-2.0
"""Metrics of energy of GPU and CPU together, and of a whole edge module."""

from __future__ import annotations

from pybench.catalogue.metrics.metric import Metric

ROWS = (
    # --- both ---
    Metric(
        name="system_energy_j",
        group="energy of both",
        unit="J",
        better="none",
        label="GPU and CPU energy",
        meaning="energy of the GPU board and the CPU packages in the energy window, where both are measured",
        rests_on="energy",
    ),
    Metric(
        name="system_energy_per_token_j",
        group="energy of both",
        unit="J",
        better="lower",
        label="GPU and CPU energy/token",
        meaning="energy of the GPU board and the CPU packages, divided by the tokens of the energy window",
        rests_on="energy",
        of="system_energy_j",
        per="token",
    ),
    Metric(
        name="cpu_energy_share_ratio",
        group="energy of both",
        unit="1",
        better="none",
        label="CPU share of energy",
        meaning="energy of the CPU packages, divided by that of GPU board and CPU packages in the energy window",
        rests_on="energy",
        scale="difference",
        is_share=True,
    ),
    # --- the module ---
    Metric(
        name="module_energy_j",
        group="energy of the module",
        unit="J",
        better="none",
        label="Module energy",
        meaning="energy of an edge module in the energy window, from its power rails",
        rests_on="energy",
    ),
    Metric(
        name="module_energy_per_sample_j",
        group="energy of the module",
        unit="J",
        better="lower",
        label="Module energy/sample",
        meaning="energy of the module, divided by the samples of the energy window",
        rests_on="energy",
        of="module_energy_j",
        per="sample",
        gated=True,
    ),
    Metric(
        name="module_energy_per_token_j",
        group="energy of the module",
        unit="J",
        better="lower",
        label="Module energy/token",
        meaning="energy of the module, divided by the tokens of the energy window",
        rests_on="energy",
        of="module_energy_j",
        per="token",
    ),
    Metric(
        name="module_energy_per_input_token_j",
        group="energy of the module",
        unit="J",
        better="lower",
        label="Module energy/input token",
        meaning="energy of the module in the prefill window, divided by the tokens of the prompts",
        rests_on="energy",
        of="module_energy_j",
        per="input_token",
    ),
    Metric(
        name="module_energy_per_output_token_j",
        group="energy of the module",
        unit="J",
        better="lower",
        label="Module energy/output token",
        meaning="energy of the module in the decode window, divided by the tokens that the window produced",
        rests_on="energy",
        of="module_energy_j",
        per="output_token",
    ),
)
