# SPDX-License-Identifier: Apache-2.0
"""What the tokenizer raises.

TokenizerError
├── ArgumentError       what is no text, offsets out of order, a buffer that is not contiguous, a number out of range,
│                       any other type that the argument, which the message names, cannot have
├── FileError           the file cannot be read
├── FormatError         the file is not well formed
├── UnsupportedError    well formed, but asks for something that is not implemented; the message names it
├── Utf8Error           the text is not UTF-8; `position` is the byte offset of the first bad byte. Of a stream: in the
│                       document whose number, from 0, is `document`
├── MemoryLimitError    training needs more memory for distinct words than was granted
├── IdError             an id or a token outside the vocabulary; `position` is its index, where there is one
└── InternalError       a defect of this library
"""

from __future__ import annotations


class TokenizerError(Exception):
    """Root of the tree."""


class ArgumentError(TokenizerError):
    """A call that makes no sense."""


class FileError(TokenizerError):
    """The file cannot be read."""


class FormatError(TokenizerError):
    """The file is not well formed."""


class UnsupportedError(TokenizerError):
    """The file asks for something that is not implemented."""


class Utf8Error(TokenizerError):
    """The text, or document number `document` of a stream, is not UTF-8 at byte `position`."""

    def __init__(self, position: int, document: int | None = None) -> None:
        name = "the text" if document is None else f"document {document}"
        super().__init__(f"{name} is not UTF-8 at byte {position}")
        self.position = position
        self.document = document


class MemoryLimitError(TokenizerError):
    """Training needs more memory for distinct words than was granted."""


class IdError(TokenizerError):
    """An id or a token outside the vocabulary."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class InternalError(TokenizerError):
    """A defect of this library: a caught panic, or an object that does not fit its Python half."""
