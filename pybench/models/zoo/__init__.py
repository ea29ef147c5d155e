# SPDX-License-Identifier: Apache-2.0
"""Models of the field's libraries, with seeded random weights or a user's own, made into files that run without them.

    feeds                 what a model is fed with, as a file that is made of it carries it
    build                 a module by its name, its weights, and what it is fed with
    timm                  names and inputs of this library's models, and how one is built
    torchvision           the same of this library
    transformers          the same of this library
    transformers_decoder  a decoder of this library that is given its cache
    weights               a user's tensors in a model
    program               a module as a torch program in a file, and back
    decoder_program       a decoder as two programs, of a prompt and of a token
    offline               no library may reach the network

Importing a library takes seconds (timm 7 to 12). The making of artefacts does it, and questions before any run do it;
no run pays for it.
"""
