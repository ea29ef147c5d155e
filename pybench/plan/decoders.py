# SPDX-License-Identifier: Apache-2.0
"""Whether the model of a config.json continues text, and has positions for it: as far as the config tells.

The library judges the rest before the first run, and all of a type that is named without a config.
"""

from __future__ import annotations

from pybench.case import Case
from pybench.plan.files import UserFiles

_POSITIONS = ("max_position_embeddings", "n_positions")  # what configs call the tokens of the longest sequence


def decoder_problem(case: Case, files: UserFiles) -> tuple[str, str, str] | None:
    """The factor that cannot be, what is wrong, and what to do; None: nothing is known to be wrong."""
    library = case.library
    if library is None or not case.workload_row.generates:
        return None
    config = files.config(str(case.model))
    ends = " or ".join(library.decoders)
    if config.get("is_encoder_decoder") is True:
        what = f"{case.model} has an encoder and a decoder, and {case.workload} continues text by a decoder alone"
        return "model", what, f"take a model whose class ends with {ends}"
    listed = config.get("architectures")
    named = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    if named and not any(name.endswith(library.decoders) for name in named):
        what = f"{case.model} names {named[0]} in `architectures`, which does not continue text"
        return "model", what, f"take a model whose class ends with {ends}"
    longest = next((config[name] for name in _POSITIONS if isinstance(config.get(name), int)), None)
    total = case.seq_len + case.new_tokens
    if longest is None or total <= longest:
        return None
    what = f"{case.model} takes sequences of up to {longest} tokens, and seq_len {case.seq_len} with new_tokens "
    return "seq_len", f"{what}{case.new_tokens} is {total}", "use fewer `new_tokens`, or a shorter `seq_len`"
