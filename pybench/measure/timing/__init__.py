# SPDX-License-Identifier: Apache-2.0
"""Clocks, windows, replay of work, latency, processor time and memory of the process that runs the work."""
