# SPDX-License-Identifier: Apache-2.0
"""How outputs are scored: a module for each task, each from outputs and data to the score of every unit.

`judge(outputs, samples, model, unit)` takes the outputs of a model, batch by batch in the order of the samples.
`model` and `unit` are names for messages.
It gives the columns that are stored for each unit, and the metrics that follow from them.
"""
