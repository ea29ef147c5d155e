# SPDX-License-Identifier: Apache-2.0
"""Protocols of papers that a plan can ask for, next to the house's own statistics."""
