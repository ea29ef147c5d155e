# SPDX-License-Identifier: Apache-2.0
"""What an ONNX file says of itself, read without the onnx package and without its weights.

`wire` walks protobuf, `graph` reads the model, `faults` names what no runtime can run, `inputs` says which sizes are
fed, `products` in which types it multiplies. Plans judge a user's file with it before the first run; workers audit what
they ran. Importing it imports the standard library only.
"""
