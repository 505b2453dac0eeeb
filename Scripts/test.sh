#!/usr/bin/env bash
# Runs `swift test`, and lists the failed tests again at the end, because they are hard to find among thousands of
# lines.
#
#   Scripts/test.sh FILTER [OPTION…]
#
# FILTER is a filter of `swift test --filter`, empty for all tests; the options are those of `swift test`.
set -uo pipefail
cd "$(dirname "$0")/.."

filter=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"${SWIFT:-swift}" test --disable-xctest "$@" ${filter:+--filter "$filter"} 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
if [ "$status" -ne 0 ]; then
    printf '\n== what failed\n'
    # Lines of the issue's own text can follow it, each with an arrow.
    grep -E -A 3 'recorded an issue|^[^ ]+: error:|Fatal error|unexpected signal|ERROR: |WARNING: ' "$log" |
        grep -E 'recorded|rror|signal|WARNING|↳' | cut -c 1-600
    grep -E '^✘ (Test|Suite)' "$log" | grep -v 'recorded an issue' | cut -c 1-300
fi
exit "$status"
