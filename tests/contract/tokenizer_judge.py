# SPDX-License-Identifier: Apache-2.0
"""Vocabularies as Hugging Face's `BpeTrainer` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from tests.contract.tokenizer_files import REGEXES

END = "<|endoftext|>"


def trained_by_judge(
    documents: Sequence[str],
    *,
    vocab_size: int,
    family: str = "gpt2",
    min_frequency: int = 0,
    special_tokens: Sequence[str] = (END,),
) -> bytes:
    judge = tokenizers.Tokenizer(models.BPE())
    regex = REGEXES[family]
    byte_level: Any = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex is None)
    if regex is not None:
        split = pre_tokenizers.Split(tokenizers.Regex(regex), behavior="isolated")
        byte_level = pre_tokenizers.Sequence([split, byte_level])
    judge.pre_tokenizer = byte_level
    judge.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=list(special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    judge.train_from_iterator(documents, trainer)
    return str(judge.to_str(pretty=True)).encode()
