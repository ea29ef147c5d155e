# SPDX-License-Identifier: Apache-2.0
"""Energy in detail: the power and the budget of one run of each case."""
