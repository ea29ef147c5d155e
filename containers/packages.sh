#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of sections of debs.txt: packages.sh SECTION... (for Containerfile and apptainer.def)
set -eu
names=$(for section in "$@"; do
    sed -n "/^\[$section\]$/,/^\[/p" "$(dirname "$0")/debs.txt" | grep -v '^\[\|^#\|^$'
done)
apt-get update -qq
# shellcheck disable=SC2086  one word a package
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $names
apt-get clean
