# SPDX-License-Identifier: Apache-2.0
"""Precision: how it is put into an ONNX graph (`int8`), and what of it is really there.

`audit` judges graphs (reading `onnx_graph`), kernels of onnxruntime and modules of torch; `engine_audit` judges engines
of TensorRT (reading `engine_layers`), with the operations that `flops` counts. Importing this package imports nothing;
`int8` and `flops` need onnx, `int8` onnxruntime too, the rest only numpy.
"""
