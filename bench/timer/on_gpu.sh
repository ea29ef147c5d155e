#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the extension, then runs the GPU tests of the timer and the comparison of replay loops, on a machine with an NVIDIA
# GPU, torch and no network, from the repository root. Nothing is installed, save the extension beside the package.
#   usage: bench/timer/on_gpu.sh OUT       writes OUT/replay_cost.md and OUT/tests.txt; about three minutes
set -eu
out=${1:?usage: bench/timer/on_gpu.sh OUT}
build=/tmp/pybench-native
mkdir -p "$out"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1

cmake -S native -B "$build" -G Ninja -DPython_EXECUTABLE="$(command -v python3)" \
    -Dpybind11_DIR="$(python3 -P -m pybind11 --cmakedir)" >/dev/null
cmake --build "$build" >/dev/null
cp "$build"/_native*.so pybench/

python3 -P -m bench.timer.replay_cost | tee "$out/replay_cost.md"
python3 -P -m pytest tests/gpu/test_graph_replay.py -q 2>&1 | tee "$out/tests.txt"
