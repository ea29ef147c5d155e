# SPDX-License-Identifier: Apache-2.0
"""Precision: how it is put into an ONNX graph (`int8`), and what of it is really there (`audit`, reading `onnx_graph`).

Importing this package imports nothing; `int8` needs onnx and onnxruntime, `audit` and `onnx_graph` only numpy.
"""
