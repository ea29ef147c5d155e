#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records one part of the live campaign on a machine with an NVIDIA GPU, torch and no network, from the repository root.
#   usage: bench/energy/on_gpu.sh OUT [PART [OPTION ...]]      writes OUT/part-PART.tar.gz; options are record.py's
# Wheels that the machine lacks are taken from .gpu/wheels, where bench/energy/peers.sh put them. Nothing is installed
# outside a folder in /tmp, save the built extension beside the package. About 100 s on top of the recording.
set -eu
out=${1:?usage: bench/energy/on_gpu.sh OUT [PART [OPTION ...]]}
part=${2:-0}
shift "$(($# < 2 ? $# : 2))"
site=/tmp/pybench-site
build=/tmp/pybench-native
mkdir -p "$out"

if [ ! -d "$site" ]; then
    rm -rf "$site.new"
    mkdir -p "$site.new"
    if ls .gpu/wheels/*.whl >/dev/null 2>&1; then
        python3 -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --target "$site.new" \
            .gpu/wheels/*.whl
    fi
    mv "$site.new" "$site"
fi
export PYTHONPATH="$site:$PWD" PYTHONUNBUFFERED=1

python3 -P -c 'import torch, torchvision' & # fills the page cache while the compiler runs
cmake -S native -B "$build" -G Ninja -DPython_EXECUTABLE="$(command -v python3)" \
    -Dpybind11_DIR="$(python3 -P -m pybind11 --cmakedir)" >/dev/null
cmake --build "$build" >/dev/null
wait
cp "$build"/_native*.so pybench/

folder=$(mktemp -d)
python3 -P -m bench.energy.record "$folder/part-$part" --part "$part" "$@"
tar -C "$folder" -czf "$out/part-$part.tar.gz" "part-$part"
ls -l "$out/part-$part.tar.gz"
