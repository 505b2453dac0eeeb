#!/usr/bin/env bash
# Runs the tests under a sanitizer, in a separate build directory (.build-tsan, .build-asan).
#
#   Scripts/sanitize.sh thread|address [FILTER [OPTION…]]
#
# FILTER is a filter of `swift test --filter`: a regular expression over TARGET.Suite/test. Without it, all tests run.
# The options are those of `swift build`, such as `--enable-all-traits`.
set -euo pipefail
cd "$(dirname "$0")/.."

# Swift's backtracer would hang for minutes after a crash; the sanitizer prints its own backtrace.
export SWIFT_BACKTRACE=enable=no
# Tests that measure memory skip themselves, and so do tests that use resources of the sanitizer.
export MARTLET_SANITIZED=${1:-}
# Many tests start processes, which use ten times the memory here: hundreds of concurrent ones would not fit.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-8}
filter=${2:-}
given=("${@:3}")

# Builds and runs the tests. Arguments: sanitizer, build directory, preloaded library. It fails if no test ran.
run() {
    local log=$2/sanitize.log
    local options=(--sanitize "$1" --scratch-path "$2" "${given[@]}")
    "${SWIFT:-swift}" build --build-tests "${options[@]}"
    env ${3:+LD_PRELOAD="$3"} Scripts/test.sh "$filter" --skip-build "${options[@]}" | tee "$log"
    if ! grep -q 'Test run with [1-9]' "$log"; then
        echo "sanitize: no test ran${filter:+ ($filter)}" >&2
        exit 1
    fi
}

case "${1:-}" in
    thread)
        clang=$(dirname "$(readlink -f "$(command -v "${SWIFT:-swift}")")")/clang
        [ -x "$clang" ] || clang=clang
        mkdir -p .build-tsan
        preload=$PWD/.build-tsan/mutex-slow-path.so
        "$clang" -O1 -Wall -Werror -shared -fPIC Scripts/sanitize/MutexSlowPath.c -o "$preload"
        run thread .build-tsan "$preload"
        ;;
    address)
        # Suppressed leaks are not printed to standard error, which tests of the program read.
        export LSAN_OPTIONS="suppressions=$PWD/Scripts/sanitize/leaks.txt:print_suppressions=0"
        run address .build-asan
        ;;
    *)
        echo "usage: $0 thread|address [FILTER]" >&2
        exit 2
        ;;
esac
