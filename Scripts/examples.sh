#!/usr/bin/env bash
# Builds the packages in Examples and runs their tests, against servers on 127.0.0.1 that they start themselves.
#
#   Scripts/examples.sh [PACKAGE…]    all packages unless some are named
#
# With CONFIGURATION=release they are optimized, as users build them: the compiler then reports other errors, and runs
# other code.
#
# The packages share one build directory, so that Martlet is built once. SwiftPM would use the stored build plan of
# another package there, and run its tests, so the plan is created again each time. For the same reason the directory
# differs from that of Martlet's own tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -eq 0 ]; then
    for manifest in Examples/*/Package.swift; do set -- "$@" "$(basename "$(dirname "$manifest")")"; done
fi

options=()
if [ "${CONFIGURATION:-debug}" = release ]; then options=(-c release -Xswiftc -enable-testing); fi

for package in "$@"; do
    began=$SECONDS
    # All packages use the same versions, so that no dependency is built twice.
    if [ -f Package.resolved ]; then cp Package.resolved "Examples/$package/Package.resolved"; fi
    printf '== example %s\n' "$package"
    "${SWIFT:-swift}" test "${options[@]}" --disable-xctest --package-path "Examples/$package" \
        --scratch-path .build-examples --disable-build-manifest-caching
    printf '== example %s: %d s\n' "$package" "$((SECONDS - began))"
done
