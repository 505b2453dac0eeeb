#!/usr/bin/env bash
# Runs the long scenarios, each in a separate process, and prints their figures with their targets.
#
#   Scripts/soak.sh [ONLY] [MINUTES] [COUNT] [SEED]
#
# ONLY is a list of scenarios (`in-flight storm`). Without it all scenarios run, and then the sanitizers. MINUTES is the
# length of `storm` and `websocket` (60), COUNT the number of requests of the others (by default their own), and SEED
# the random seed. The exit status is 1 if a figure does not meet its target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

only=${1:-}
minutes=${2:-60}
count=${3:-}
seed=${4:-}

swift build --package-path Benchmarks/Soak -c release --product soak
program=$(swift build --package-path Benchmarks/Soak -c release --show-bin-path)/soak
# Swift's backtracer would hang for minutes after a crash.
export SWIFT_BACKTRACE=enable=no
# Ten thousand requests in flight need as many descriptors.
ulimit -n "$(ulimit -Hn)"

scenarios=${only//,/ }
if [ -z "$scenarios" ]; then
    scenarios="$("$program" list) sanitizers"
fi

printf '\n%s\n\n' "$(grep -m1 '^model name' /proc/cpuinfo | cut -d: -f2- | sed 's/^ *//'), $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg) at the start"
failed=()
for scenario in $scenarios; do
    if [ "$scenario" = sanitizers ]; then
        if make --no-print-directory sanitize; then
            printf '%-16s%-46s%-34s%-20s%s\n' sanitizers 'thread and address runs of all tests' clean clean met
        else
            printf '%-16s%-46s%-34s%-20s%s\n' sanitizers 'thread and address runs of all tests' 'see above' clean 'NOT MET'
            failed+=(sanitizers)
        fi
        continue
    fi
    "$program" "$scenario" --minutes "$minutes" ${count:+--count "$count"} ${seed:+--seed "$seed"} ||
        failed+=("$scenario")
    printf '\n'
done

if [ "${#failed[@]}" -gt 0 ]; then
    printf 'soak: not all targets met: %s\n' "${failed[*]}"
    exit 1
fi
printf 'soak: all targets met\n'
