# SPDX-License-Identifier: Apache-2.0
"""The path `rust`: this project's tokenizer, in process. Files are gathered into calls of about 128 KiB of text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pybench_tokenizer

from pybench.preprocess.corpus import Corpus
from pybench.preprocess.documents import DocumentPlace, not_utf8
from pybench.preprocess.packing import Tokenised, TokenisedDocument
from pybench.preprocess.vocabulary import end_of_text, malformed, read_error, refused

# One call for many small files: a call costs microseconds, its text milliseconds, and its ids stay in the cache. A
# mebibyte is hardly faster, and would be tokenised in one iteration for hundreds of batches, more than a window has.
GATHERED_BYTES = 1 << 17


class RustEncoder:
    """`pybench_tokenizer` as an `Encoder`."""

    def __init__(self, tokenizer: Path) -> None:
        try:
            self._tokenizer = pybench_tokenizer.Tokenizer.from_file(tokenizer)
        except pybench_tokenizer.FileError as error:
            raise read_error(tokenizer, str(error)) from error
        except pybench_tokenizer.FormatError as error:
            raise malformed(tokenizer, str(error)) from error
        except pybench_tokenizer.UnsupportedError as error:
            raise refused(tokenizer, str(error)) from error
        self.made = Tokenised()
        self.end_id = end_of_text(self._token_to_id, tokenizer)

    def _token_to_id(self, token: str) -> int | None:
        try:
            return self._tokenizer.token_to_id(token)
        except pybench_tokenizer.IdError:
            return None

    def documents(self, corpus: Corpus) -> Iterator[TokenisedDocument]:
        places: list[DocumentPlace] = []
        texts: list[bytes] = []
        gathered = 0
        for place, text in corpus.documents():
            places.append(place)
            texts.append(text)
            gathered += len(text)
            if gathered >= GATHERED_BYTES:
                yield from self._encode(places, texts)
                places, texts, gathered = [], [], 0
        yield from self._encode(places, texts)

    def _encode(self, places: list[DocumentPlace], texts: list[bytes]) -> Iterator[TokenisedDocument]:
        offsets = np.zeros(len(texts) + 1, np.uint64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        try:
            ids, id_offsets = self._tokenizer.encode_batch(b"".join(texts), offsets)
        except pybench_tokenizer.Utf8Error as error:
            index = int(np.searchsorted(offsets, error.position, "right")) - 1
            raise not_utf8(places[index], error.position - int(offsets[index])) from error
        self.made = self.made.with_documents(len(texts), len(ids), int(offsets[-1]))
        for text, begin, end in zip(texts, id_offsets[:-1].tolist(), id_offsets[1:].tolist(), strict=True):
            yield TokenisedDocument(ids[begin:end], len(text))
