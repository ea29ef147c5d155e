# SPDX-License-Identifier: Apache-2.0
"""The slow twin of `pybench_tokenizer.train`: after every merge all pairs are counted anew.

After Sennrich, Haddow and Birch (2016), figure 1, with the tie-breaking of Hugging Face's `BpeTrainer`. Shares no code
with what it judges; words come from Python's `re` (`gpt2_pattern`), so it knows GPT-2's rule only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from pybench.preprocess.python_bpe import byte_characters, gpt2_pattern


def learn(
    documents: Iterable[str], vocab_size: int, min_frequency: int, special_tokens: Sequence[str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """Tokens by id, and merges by rank, both as a tokenizer.json writes them."""
    written = byte_characters()
    words = Counter(
        tuple(written[byte] for byte in word.encode())
        for document in documents
        for word in gpt2_pattern().findall(document)
    )
    tokens = list(special_tokens)
    tokens += [character for character in sorted(written.values()) if character not in tokens]
    merges: list[tuple[str, str]] = []
    while len(tokens) < vocab_size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], tokens.index(pair[0]), tokens.index(pair[1])))
        if pairs[best] < min_frequency:
            break
        merges.append(best)
        if "".join(best) not in tokens:
            tokens.append("".join(best))
        words = Counter({merged(word, best): count for word, count in words.items()})
    return tokens, merges


def merged(word: Sequence[str], pair: tuple[str, str]) -> tuple[str, ...]:
    """`word` with the pair joined wherever it stands, from left to right."""
    symbols: list[str] = []
    rest = list(word)
    while rest:
        width = 2 if tuple(rest[:2]) == pair else 1
        symbols.append("".join(rest[:width]))
        del rest[:width]
    return tuple(symbols)
