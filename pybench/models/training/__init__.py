# SPDX-License-Identifier: Apache-2.0
"""Training of the image models that pybench judges: on scikit-learn's digits, and on synthetic-100."""
