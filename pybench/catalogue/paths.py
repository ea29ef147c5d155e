# SPDX-License-Identifier: Apache-2.0
"""How token ids reach a model: a row for each path. Their order is the order of pictures."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.catalogue.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPath:
    """One path.

    name: as plans name it
    measures: what the time of its iterations includes, in a phrase for plans' authors
    needs: what has to be installed; its row (`pybench.catalogue.packages`) says how
    reads_text: whether it reads a corpus; else its ids are random
    encoder: `module:class` of a tokenizer in the process of the model; None: they come ready, or are random
    """

    name: str
    measures: str
    needs: tuple[str, ...] = ()
    reads_text: bool = True
    encoder: str | None = None


_ROWS = (
    TokenPath(name="none", measures="no tokenizing: the ids are random", reads_text=False),
    TokenPath(
        name="python",
        measures="a tokenizer in Python, in the process of the model",
        encoder="pybench.preprocess.python_bpe:PythonEncoder",
    ),
    TokenPath(
        name="hf",
        measures="Hugging Face's tokenizers, in the process of the model",
        needs=("hf",),
        encoder="pybench.preprocess.hf:HfEncoder",
    ),
    TokenPath(
        name="rust",
        measures="pybench's tokenizer in Rust, in the process of the model",
        needs=("rust",),
        encoder="pybench.preprocess.rust:RustEncoder",
    ),
    TokenPath(
        name="go_rust",
        measures="the same tokenizer in a process of its own, which packs batches into shared memory",
        needs=("go_rust",),
    ),
)

PATHS = Rows("path", _ROWS)
