#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes one virtual environment for each engine that side_by_side.py compares, at the versions that its figures name.
#   bench/tokenizer/peers.sh FOLDER WHEEL      WHEEL: of pybench-tokenizer, as `maturin build --release` writes it
set -eu
folder=$1
wheel=$2
for engine in "ours $wheel" "hf tokenizers==0.23.3" "hf1 tokenizers==1.0.0rc3" "tiktoken tiktoken==0.14.0" \
    "fastokens fastokens==0.3.5" "gigatoken gigatoken==0.10.0"; do
    name=${engine%% *}
    uv venv --quiet "$folder/$name"
    uv pip install --quiet --python "$folder/$name/bin/python" --prerelease=allow numpy "${engine#* }"
done
