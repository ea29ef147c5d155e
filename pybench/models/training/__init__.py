# SPDX-License-Identifier: Apache-2.0
"""Training of built-in models: a module for each built-in data set, and the images of the workload `fit`."""
