# SPDX-License-Identifier: Apache-2.0
"""Boards through NVML: which there are, what they are set to, setting them and putting them back."""
