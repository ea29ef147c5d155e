# SPDX-License-Identifier: Apache-2.0
"""Joules: samplers of boards and CPUs, their channels, and what these say about a window."""
