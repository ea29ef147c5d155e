# SPDX-License-Identifier: Apache-2.0
"""What a board's power sensor does to a known load: its delay, its response and how its counter ticks."""
