# SPDX-License-Identifier: Apache-2.0
"""Metrics of energy of the CPU packages."""

from __future__ import annotations

from pybench.catalogue.metrics.metric import Metric

ROWS = (
    Metric(
        name="cpu_energy_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="CPU energy",
        meaning="energy of the CPU packages in the energy window, and of their memory where it is counted",
        rests_on="energy",
    ),
    Metric(
        name="cpu_energy_per_sample_j",
        group="energy of the CPU",
        unit="J",
        better="lower",
        label="CPU energy/sample",
        meaning="energy of the CPU packages, divided by the samples of the energy window",
        rests_on="energy",
        of="cpu_energy_j",
        per="sample",
    ),
    Metric(
        name="cpu_energy_per_token_j",
        group="energy of the CPU",
        unit="J",
        better="lower",
        label="CPU energy/token",
        meaning="energy of the CPU packages, divided by the tokens of the energy window",
        rests_on="energy",
        of="cpu_energy_j",
        per="token",
    ),
    Metric(
        name="cpu_energy_per_input_token_j",
        group="energy of the CPU",
        unit="J",
        better="lower",
        label="CPU energy/input token",
        meaning="energy of the CPU packages in the prefill window, divided by the tokens of the prompts in the "
        "prefill window",
        rests_on="energy",
        of="cpu_energy_j",
        per="input_token",
    ),
    Metric(
        name="cpu_energy_per_output_token_j",
        group="energy of the CPU",
        unit="J",
        better="lower",
        label="CPU energy/output token",
        meaning="energy of the CPU packages in the decode window, divided by the tokens that the decode window "
        "produced",
        rests_on="energy",
        of="cpu_energy_j",
        per="output_token",
    ),
    Metric(
        name="cpu_tokens_per_s_per_w",
        group="energy of the CPU",
        unit="1/J",
        better="higher",
        label="Tokens/s/W (CPU)",
        meaning="tokens per second for each watt of the CPU packages, which is tokens per joule",
        rests_on="energy",
        of="cpu_energy_j",
        per="token",
        is_inverse=True,
    ),
    Metric(
        name="cpu_energy_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="Bounds of CPU energy",
        meaning="interval for the energy of the CPU packages in the energy window, from assumed bounds of their power; "
        "no measurement",
        rests_on="energy",
        is_interval=True,
    ),
    Metric(
        name="cpu_energy_per_sample_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="Bounds of CPU energy/sample",
        meaning="interval for the energy of the CPU packages for one sample, from assumed bounds of their power; "
        "no measurement",
        rests_on="energy",
        is_interval=True,
        of="cpu_energy_estimate_j",
        per="sample",
    ),
    Metric(
        name="cpu_energy_per_token_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="Bounds of CPU energy/token",
        meaning="interval for the energy of the CPU packages for one token, from assumed bounds of their power; "
        "no measurement",
        rests_on="energy",
        is_interval=True,
        of="cpu_energy_estimate_j",
        per="token",
    ),
    Metric(
        name="cpu_energy_per_input_token_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="Bounds of CPU energy/input token",
        meaning="interval for the energy of the CPU packages for one input token of the prefill window, from assumed "
        "bounds of their power; no measurement",
        rests_on="energy",
        is_interval=True,
        of="cpu_energy_estimate_j",
        per="input_token",
    ),
    Metric(
        name="cpu_energy_per_output_token_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="Bounds of CPU energy/output token",
        meaning="interval for the energy of the CPU packages for one output token of the decode window, from assumed "
        "bounds of their power; no measurement",
        rests_on="energy",
        is_interval=True,
        of="cpu_energy_estimate_j",
        per="output_token",
    ),
)
