# SPDX-License-Identifier: Apache-2.0
"""From text to batches of token ids: the paths that are compared, behind one interface.

    corpus = resolve_corpus("python-stdlib", limit_bytes=1_000_000)
    with open_batches("rust", find_tokenizer("tok32k"), corpus, batch=8, seq_len=128, threads=1) as stream:
        for ids in stream: ...                                                # int64 [batch, seq_len]
        stream.text_bytes, stream.tokens, stream.wait_s, stream.ids_sha256

`corpus` finds and checks the documents, `documents` reads them, `packing` defines how they become batches, `batches`
opens a path, `stream` is what each gives, `tensors` brings it to a device. The paths are `python_bpe` (readable), `hf`
(Hugging Face tokenizers), `rust` (this project's, in process), `go_rust` and `synthetic` (`none`). `go_rust` is the
object of `rust`, called by the Go orchestrator in a process of its own. Each is imported when asked for.
`program` finds and starts that process, `orchestrator` reads its counters, and `ring` its batches from shared memory.
`vocabulary` is the file of a tokenizer, and `unicode_classes` the characters of its splitting rule.
"""

from pybench.preprocess.batches import open_batches, open_ragged
from pybench.preprocess.corpus import Corpus, resolve_corpus
from pybench.preprocess.stream import SlotStream
from pybench.preprocess.vocabulary import find_tokenizer, vocabulary_size

__all__ = [
    "Corpus",
    "SlotStream",
    "find_tokenizer",
    "open_batches",
    "open_ragged",
    "resolve_corpus",
    "vocabulary_size",
]
