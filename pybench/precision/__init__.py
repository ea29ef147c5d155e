# SPDX-License-Identifier: Apache-2.0
"""Precision: how it is put into an ONNX graph, and what of it is really there.

Into a graph:

- `network`: a graph that is being rewritten
- `conversion`: to FP16 and BF16
- `calibration` finds ranges, `placement` says where Q/DQ nodes stand, `scales` how large they are, `qdq` writes them
- `int8` and `weight_only`: quantisers of onnxruntime, of all values or of weights alone
- `modelopt`: NVIDIA's quantiser; `modelopt_process` runs it in an environment of its own
- `pooling` writes MaxPool in other operators, `sensitivity` leaves out Q/DQ node by node
- `keeping` searches the nodes that have to stay in FP32
- `fake_quantisation` trains torch models with rounding

Of a graph: `execution` compares outputs with FP32's, FP16 and BF16 by `emulation`. `notes`: what a file says of itself.

Out of a graph: `audit` judges graphs (reading `onnx_file.graph`), kernels of onnxruntime and modules of torch.
`engine_audit` judges engines of TensorRT (reading `pybench.kernels`), with the operations that `flops` counts.
`shapes` infers the sizes for that.
Importing this package imports nothing; no audit imports onnx.
"""
