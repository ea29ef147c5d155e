# SPDX-License-Identifier: Apache-2.0
"""The path `hf`: Hugging Face tokenizers, as a training script uses it, on the calling thread.

Special tokens in the text become their id; documents are taken whole: no token is added around one, and whatever the
file says about truncation and padding is switched off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tokenizers

from pybench.preprocess.corpus import Corpus
from pybench.preprocess.documents import not_utf8
from pybench.preprocess.packing import Tokenised, TokenisedDocument
from pybench.preprocess.vocabulary import end_of_text, malformed


class HfEncoder:
    """`tokenizers.Tokenizer` as an `Encoder`."""

    def __init__(self, tokenizer: Path) -> None:
        # The library has no argument for it: without this it encodes on all CPUs behind the caller's back.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # the library raises nothing more precise
            raise malformed(tokenizer, str(error)) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.made = Tokenised()
        self.end_id = end_of_text(self._tokenizer.token_to_id, tokenizer)

    def documents(self, corpus: Corpus) -> Iterator[TokenisedDocument]:
        for place, text in corpus.documents():
            try:
                decoded = text.decode()
            except UnicodeDecodeError as error:
                raise not_utf8(place, error.start) from error
            # The batch call with one document: the plain call also computes character offsets.
            (encoding,) = self._tokenizer.encode_batch_fast([decoded], add_special_tokens=False)
            ids = np.array(encoding.ids, np.uint32)
            self.made = self.made.with_documents(1, len(ids), len(text))
            yield TokenisedDocument(ids, len(text))
