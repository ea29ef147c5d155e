# SPDX-License-Identifier: Apache-2.0
"""Windows of text with labels: sources of Python's standard library, frozen, so that no installed Python matters."""
