# SPDX-License-Identifier: Apache-2.0
"""TensorRT 10.6 and later, and 11: engines built strongly typed from ONNX files, and run without a framework.

- `library`: the vendor's module, found at import, and what differs between its majors
- `building`: an ONNX file into an engine
- `session`: an engine into something that runs
- `parts`: engines of a model's parts, one for each head
- `inspection`: what an engine says of its layers, and how long each takes

Precision is in the ONNX file, save for TF32, which is a flag of the build.
"""
