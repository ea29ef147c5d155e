# SPDX-License-Identifier: Apache-2.0
"""Estimates with intervals, from plain numbers: nothing here knows of runs or cases."""
