# SPDX-License-Identifier: Apache-2.0
"""The built-in models as plain torch modules, the images they are judged on, their export and their training.

Importing this package imports no framework. `images` needs numpy at most, and only `building` and what it calls import
torch, so that an onnxruntime case never pays for it. What is known of a model without building it is its row in
`pybench.catalogue.models`.
"""
