#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Downloads the wheels of peers.txt, for carrying to a machine with an NVIDIA GPU, torch and no network.
#   usage: peers.sh FOLDER [PYTHON_VERSION]        (the version of that machine's python3; 3.12 where none is given)
set -eu
folder=${1:?usage: peers.sh FOLDER [PYTHON_VERSION]}
python_version=${2:-3.12}
here=$(cd "$(dirname "$0")" && pwd)

# pip matches a platform tag exactly, so each glibc that a wheel may be built for is named.
platforms=""
for tag in manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014 manylinux1; do
    platforms="$platforms --platform ${tag}_x86_64"
done
mkdir -p "$folder"
rm -f "$folder"/*.whl
# shellcheck disable=SC2086 # the platforms are words of their own
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --implementation cp \
    --python-version "$python_version" $platforms --dest "$folder" --requirement "$here/peers.txt"
du -ch "$folder"/*.whl | tail -n 1
