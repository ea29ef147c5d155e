# SPDX-License-Identifier: Apache-2.0
"""One row for each thing that a plan or a result names: what the thing is, as plain data.

A row is a frozen dataclass that survives JSON. Code is named as `module:name` and imported where it runs.
A rule that joins two things is a function elsewhere. It asks rows for properties, and never compares names.
This package imports `pybench.errors` alone.
"""
