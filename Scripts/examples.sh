#!/usr/bin/env bash
# Builds the packages in Examples and runs their tests, against servers on 127.0.0.1 that they start themselves.
#
#   Scripts/examples.sh [PACKAGE…]    all packages unless some are named
#
# The packages share Martlet's own build directory: what is built for one, or for Martlet's tests, is not built again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -eq 0 ]; then
    for manifest in Examples/*/Package.swift; do set -- "$@" "$(basename "$(dirname "$manifest")")"; done
fi

for package in "$@"; do
    began=$SECONDS
    # The same versions as Martlet's own, so that nothing is built twice.
    if [ -f Package.resolved ]; then cp Package.resolved "Examples/$package/Package.resolved"; fi
    printf '== example %s\n' "$package"
    "${SWIFT:-swift}" test --disable-xctest --package-path "Examples/$package" --scratch-path .build
    printf '== example %s: %d s\n' "$package" "$((SECONDS - began))"
done
