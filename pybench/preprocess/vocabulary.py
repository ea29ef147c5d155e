# SPDX-License-Identifier: Apache-2.0
"""The file of a tokenizer: where it lies, and what every path has to know of it.

`tok32k` ships with pybench: a byte-level BPE of 32,000 tokens with GPT-2's splitting rule, trained by Hugging Face
tokenizers 0.23.3 on 48 MiB of documentation and source text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pybench.errors import InputError

BUILT_IN = {"tok32k": Path(__file__).with_name("tok32k_gpt2.json")}
# The token behind each document: the first of these that a vocabulary has (GPT-2's and o200k's, Llama 3's).
ENDS_OF_TEXT = ("<|endoftext|>", "<|end_of_text|>")
# No tokenizer.json comes near; a larger file is something else.
FILE_BYTES_MAX = 1 << 28


def find_tokenizer(name: str) -> Path:
    """The file of a built-in tokenizer, or the path itself. Raises `InputError` when there is none."""
    path = BUILT_IN.get(name, Path(name))
    if not path.is_file():
        raise InputError(
            f"tokenizer {name} does not exist",
            hint=f"give a tokenizer.json, or a built-in name: {', '.join(sorted(BUILT_IN))}",
        )
    return path


def read_tokenizer(path: Path) -> dict[str, Any]:
    """The parsed file, known to have a model with a vocabulary: token -> id. Raises `InputError`."""
    try:
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            raise InputError(f"{path}: {size} bytes are too many for a tokenizer.json")
        parsed = json.loads(path.read_bytes())
    except OSError as error:
        raise read_error(path, error.strerror) from error
    except (ValueError, RecursionError) as error:
        raise malformed(path, str(error)) from error
    model = parsed.get("model") if isinstance(parsed, dict) else None
    vocabulary = _vocabulary(model) if isinstance(model, dict) else None
    if vocabulary is None or not all(type(id_) is int and id_ >= 0 for id_ in vocabulary.values()):
        raise malformed(path, "no model with a vocabulary of tokens and ids")
    parsed["model"]["vocab"] = vocabulary
    added = parsed.setdefault("added_tokens", [])
    if not isinstance(added, list) or not all(_is_added_token(token) for token in added):
        raise malformed(path, "added_tokens is not a list of tokens")
    checked: dict[str, Any] = parsed
    return checked


def vocabulary_size(path: Path) -> int:
    """How many ids the tokenizer can give: the largest one and 1, which is what an embedding needs."""
    parsed = read_tokenizer(path)
    ids = [*parsed["model"]["vocab"].values(), *ids_of_added_tokens(parsed).values()]
    if not ids:
        raise malformed(path, "its vocabulary is empty")
    return int(max(ids)) + 1


def ids_of_added_tokens(parsed: dict[str, Any]) -> dict[str, int]:
    """Added token -> the id that Hugging Face gives it: that of the vocabulary, else the next free one.

    Hugging Face disregards the id in the file.
    """
    vocabulary: dict[str, int] = parsed["model"]["vocab"]
    ids: dict[str, int] = {}
    next_id = len(vocabulary)
    for token in parsed["added_tokens"]:
        content = token["content"]
        if content and content not in ids:  # it leaves out the others
            ids[content] = vocabulary.get(content, next_id)
            next_id = max(next_id, ids[content] + 1)
    return ids


def read_error(path: Path, reason: str | None) -> InputError:
    """The error for a file that cannot be read."""
    return InputError(f"tokenizer {path} cannot be read: {reason}")


def malformed(path: Path, what: str) -> InputError:
    """The error for a file that is not a tokenizer.json."""
    return InputError(
        f"tokenizer {path} is not a well-formed tokenizer.json: {what}",
        hint="save it again with Hugging Face tokenizers (Tokenizer.save)",
    )


def refused(path: Path, what: str, rules: str = "GPT-2, Llama 3, cl100k or o200k") -> InputError:
    """The error for a tokenizer that a path does not implement. `rules`: by which it splits."""
    return InputError(
        f"tokenizer {path} is not supported: {what}",
        hint=f"use a byte-level BPE with the splitting rule of {rules}; path hf takes any",
    )


def end_of_text(token_to_id: Callable[[str], int | None], path: Path) -> int:
    """The id of the token between documents. `token_to_id`: None for a token that there is not. Raises InputError."""
    found = (token_to_id(token) for token in ENDS_OF_TEXT)
    id_ = next((id_ for id_ in found if id_ is not None), None)
    if id_ is None:
        raise InputError(
            f"tokenizer {path} has no token {' or '.join(ENDS_OF_TEXT)}, which separates the documents of a batch",
            hint="add one as a special token",
        )
    return id_


def _vocabulary(model: dict[str, Any]) -> dict[str, Any] | None:
    """Token -> id. Unigram's vocabulary is a list of tokens and their scores: the id of a token is its place."""
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, list):
        is_scored = all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in vocabulary)
        return {pair[0]: id_ for id_, pair in enumerate(vocabulary)} if is_scored else None
    return vocabulary if isinstance(vocabulary, dict) else None


def _is_added_token(token: object) -> bool:
    return (
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and type(token.get("id")) is int
        and token["id"] >= 0
    )
