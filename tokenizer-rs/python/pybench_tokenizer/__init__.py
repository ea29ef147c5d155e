# SPDX-License-Identifier: Apache-2.0
"""Exact byte-level BPE: the ids of Hugging Face tokenizers, from one shared object that Go can open too.

    tokenizer = Tokenizer.from_file("tokenizer.json")
    ids, id_offsets = tokenizer.encode_batch(text, offsets)     # numpy arrays; the GIL is free meanwhile

    json = train(documents, vocab_size=32_000)                  # a tokenizer.json with Hugging Face's merges

`object_path()` names the shared object; `include/pybench_tokenizer.h` of the sources describes its C ABI.
"""

from pybench_tokenizer.errors import (
    ArgumentError,
    FileError,
    FormatError,
    IdError,
    InternalError,
    MemoryLimitError,
    TokenizerError,
    UnsupportedError,
    Utf8Error,
)
from pybench_tokenizer.shared_object import build_id, object_path
from pybench_tokenizer.tokenizer import CACHE_ENTRIES, Tokenizer
from pybench_tokenizer.training import WORD_TABLE_BYTES, train

__all__ = [
    "CACHE_ENTRIES",
    "WORD_TABLE_BYTES",
    "ArgumentError",
    "FileError",
    "FormatError",
    "IdError",
    "InternalError",
    "MemoryLimitError",
    "Tokenizer",
    "TokenizerError",
    "UnsupportedError",
    "Utf8Error",
    "build_id",
    "object_path",
    "train",
]
