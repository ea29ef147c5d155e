# SPDX-License-Identifier: Apache-2.0
"""What ran of a model, kernel by kernel: read from what runtimes tell, and stored in one form for all of them.

    profile         kernels of one case with their nodes, types and times, and the form that they are stored in
    engine_layers   the layers of a TensorRT engine, read from its inspector's JSON
    engine          the profile of such an engine
    executed        which nodes of an ONNX file each node of onnxruntime's optimised graph came from
    launches        profiles of the kernels that a call launched, and of operators of torch
    operators       the profile of a run that onnxruntime recorded

Workers write profiles and the report reads them, so this room imports neither half. Runs nothing.
"""
