#!/usr/bin/env bash
# Runs the tests under a sanitizer, in a build folder of its own (.build-tsan, .build-asan).
#
#   Scripts/sanitize.sh thread|address [FILTER]
#
# FILTER is one of `swift test --filter`: a regular expression over TARGET.Suite/test. Without it, all tests run.
set -euo pipefail
cd "$(dirname "$0")/.."

# A crash in a sanitized process would hang for minutes in Swift's backtracer; the sanitizer prints its own.
export SWIFT_BACKTRACE=enable=no
# The tests that measure memory leave themselves out, and those that take what a sanitizer needs itself.
export MARTLET_SANITIZED=${1:-}
# Many tests start processes, which take ten times the memory here: hundreds at once would not fit.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-8}
filter=${2:-}

# Builds and runs the tests: sanitizer, build folder, preloaded library. It fails when no test ran.
run() {
    local log=$2/sanitize.log
    local options=(--sanitize "$1" --scratch-path "$2" ${MARTLET_TRAITS:+--traits "$MARTLET_TRAITS"})
    swift build --build-tests "${options[@]}"
    env ${3:+LD_PRELOAD="$3"} Scripts/test.sh "$filter" --skip-build "${options[@]}" | tee "$log"
    if ! grep -q 'Test run with [1-9]' "$log"; then
        echo "sanitize: no test ran${filter:+ ($filter)}" >&2
        exit 1
    fi
}

case "${1:-}" in
    thread)
        clang=$(dirname "$(readlink -f "$(command -v swift)")")/clang
        [ -x "$clang" ] || clang=clang
        mkdir -p .build-tsan
        preload=$PWD/.build-tsan/mutex-slow-path.so
        "$clang" -O1 -Wall -Werror -shared -fPIC Scripts/sanitize/MutexSlowPath.c -o "$preload"
        run thread .build-tsan "$preload"
        ;;
    address)
        # What is suppressed is not counted on standard error, where tests of the program read.
        export LSAN_OPTIONS="suppressions=$PWD/Scripts/sanitize/leaks.txt:print_suppressions=0"
        run address .build-asan
        ;;
    *)
        echo "usage: $0 thread|address [FILTER]" >&2
        exit 2
        ;;
esac
