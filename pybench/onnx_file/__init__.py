# SPDX-License-Identifier: Apache-2.0
"""What an ONNX file says of itself, read without the onnx package and without its weights.

- `wire`: walks protobuf
- `graph`: reads the model; `facts`: what it says of itself, for people and programs
- `faults`: what no runtime can run; `batch`: whether a fixed batch can be another one
- `inputs`: which sizes are fed; `ranges`: which integers; `stored_arrays`: a user's arrays as inputs
- `products`: in which types it multiplies
- `node_names`: what its nodes are called once it is rewritten, and which of them an expression matches
- `slim`: the file without the values of its large weights

Plans judge a user's file with it before the first run; workers audit what
they ran. Importing it imports the standard library only.
"""
