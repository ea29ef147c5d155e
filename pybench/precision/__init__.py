# SPDX-License-Identifier: Apache-2.0
"""Precision: how it is put into an ONNX graph, and what of it is really there.

Put in: `conversion` (FP16, BF16), `calibration`, `placement`, `scales` and `qdq` (INT8, FP8), `int8` (onnxruntime's
quantiser), `modelopt` (NVIDIA's), all on `network`. Found: `audit` judges graphs, kernels of onnxruntime and modules of
torch, reading `onnx_graph` and `notes`; `engine_audit` judges engines of TensorRT, reading `engine_layers`, with the
operations that `flops` counts. Importing this package imports nothing, and no audit imports onnx.
"""
