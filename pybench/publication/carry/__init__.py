# SPDX-License-Identifier: Apache-2.0
"""A packed campaign as one file or as an OCI artefact, and its way to a registry and back."""
