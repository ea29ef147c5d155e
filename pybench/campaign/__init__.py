# SPDX-License-Identifier: Apache-2.0
"""A campaign's directory, where the measuring and the reading half meet: names of files, claims, digests, recipes.

Only this room knows what the files of a campaign are called. docs/formats/rundir.md describes them.
"""
