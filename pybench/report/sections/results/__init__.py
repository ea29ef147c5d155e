# SPDX-License-Identifier: Apache-2.0
"""All results and runs: tables of all cases, figures, artefacts, and the method."""
