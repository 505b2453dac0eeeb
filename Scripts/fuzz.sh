#!/usr/bin/env bash
# Fuzzes the library with libFuzzer and the address sanitizer, in a separate build directory (.build-fuzz).
#
#   Scripts/fuzz.sh             fuzzes each entry for TIME seconds (60), or those in ENTRY; JOBS concurrently (1)
#   Scripts/fuzz.sh reproduce   runs INPUT once with ENTRY, by default the entry of its directory
#   Scripts/fuzz.sh coverage    prints the line coverage of the library by the stored inputs
#   Scripts/fuzz.sh minimise    adds new inputs to Fuzz/Corpus, a minimal set with the same coverage
#
# Generated inputs are stored in .build-fuzz/corpus for later runs. A finding is stored below Fuzz/Findings, and the
# script then fails after all entries have run. See Fuzz/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${TIME:-60}
# Swift's backtracer would hang for minutes after a crash; the sanitizer prints its own backtrace.
export SWIFT_BACKTRACE=enable=no
export MARTLET_FUZZ=1
work=.build-fuzz
# `--sanitize fuzzer` leaves the main function to libFuzzer. A second such option for the address sanitizer would
# override the first, and disable either the coverage or the sanitizer: the compiler uses only the last one.
build=(--configuration release --scratch-path "$work" --product MartletFuzzer --sanitize fuzzer
    -Xswiftc -sanitize=fuzzer,address -Xswiftc -assert-config -Xswiftc Debug)
# The limits whose violation is a finding: seconds per input, and MiB of resident memory and of one allocation. A
# process of this build starts with about 60 MiB, and the sanitizer retains up to 16 MiB of freed memory.
bounds=(-timeout=1 -rss_limit_mb=512 -malloc_limit_mb=32)
# Leaks are detected once, at the end of an entry's time. Checks after each input that seems to leak, because its tasks
# end a moment later, would take nine tenths of the time.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=16}

if [ "${1:-run}" = coverage ]; then
    build=(--scratch-path "$work/coverage" --product MartletFuzzer --sanitize fuzzer
        -Xswiftc -profile-generate -Xswiftc -profile-coverage-mapping)
fi
swift build "${build[@]}" >"/tmp/martlet-fuzz-build.$$" 2>&1 || {
    cat "/tmp/martlet-fuzz-build.$$" >&2
    rm -f "/tmp/martlet-fuzz-build.$$"
    exit 1
}
rm -f "/tmp/martlet-fuzz-build.$$"
fuzzer=$(swift build "${build[@]}" --show-bin-path)/MartletFuzzer

# Prints the directories of an entry's initial inputs.
inputs() {
    local kind
    for kind in Seeds Corpus Regressions; do
        if [ -d "Fuzz/$kind/$1" ]; then echo "Fuzz/$kind/$1"; fi
    done
}

entries=${ENTRY:-$(ls Fuzz/Seeds)}
for entry in $entries; do
    if [ ! -d "Fuzz/Seeds/$entry" ]; then
        echo "fuzz: there is no entry $entry; there are: $(ls Fuzz/Seeds | tr '\n' ' ')" >&2
        exit 2
    fi
done

# Fuzzes one entry, prints its row, and fails on a finding.
fuzz() {
    local entry=$1 log=$work/log/$1.log found=Fuzz/Findings/$1 status=0
    mkdir -p "$work/log" "$work/corpus/$entry" "$found"
    local dictionary=Fuzz/Dictionaries/$entry.dict folders
    mapfile -t folders < <(inputs "$entry")
    MARTLET_FUZZ_ENTRY=$entry "$fuzzer" "${bounds[@]}" -max_total_time="$time" -max_len=2048 \
        -dict="$dictionary" -artifact_prefix="$found/" -print_final_stats=1 -use_value_profile=1 -reload=0 \
        -detect_leaks=0 \
        "$work/corpus/$entry" "${folders[@]}" >"$log" 2>&1 || status=$?
    awk -v entry="$entry" -v status="$status" '
        match($0, /cov: [0-9]+/) { edges = substr($0, RSTART + 5, RLENGTH - 5) }
        match($0, /ft: [0-9]+/) { features = substr($0, RSTART + 4, RLENGTH - 4) }
        match($0, /corp: [0-9]+/) { inputs = substr($0, RSTART + 6, RLENGTH - 6) }
        /INITED/ { most = edges + 0 }
        /NEW .*cov:/ { if (edges + 0 > most) { most = edges + 0; split($1, at, "#"); latest = at[2] } }
        /^#[0-9]+/ { split($1, at, "#"); runs = at[2] + 0 }
        /stat::number_of_executed_units/ { runs = $2 }
        /stat::peak_rss_mb/ { peak = $2 }
        END {
            printf "%-16s %12d %8d %9d %7d %13s %5d MiB  %s\n", entry, runs, edges, features, inputs,
                (latest == "" ? "-" : sprintf("%.1f %%", 100 * latest / (runs ? runs : 1))), peak,
                (status == 0 ? "none" : "FINDING")
        }' "$log"
    if [ "$status" = 0 ]; then return 0; fi
    grep -E '^FINDING|Fatal error|ERROR: |SUMMARY: |Test unit written' "$log" | cut -c1-600 | sed 's/^/    /' || true
    echo "    again: make fuzz-reproduce ENTRY=$entry INPUT=$found/NAME; the whole log: $log"
    return 1
}

case "${1:-run}" in
    run)
        printf '%-16s %12s %8s %9s %7s %13s %9s  %s\n' \
            entry inputs-run edges features corpus 'last new edge' peak findings
        failed=0
        running=0
        for entry in $entries; do
            if [ "$running" = "${JOBS:-1}" ]; then
                wait -n || failed=1
                running=$((running - 1))
            fi
            fuzz "$entry" &
            running=$((running + 1))
        done
        while [ "$running" != 0 ]; do
            wait -n || failed=1
            running=$((running - 1))
        done
        if [ "$failed" != 0 ]; then
            echo "fuzz: there are findings. Fix each, and store its input in Fuzz/Regressions/ENTRY." >&2
            exit 1
        fi
        ;;
    reproduce)
        : "${INPUT:?INPUT=… names the input to run}"
        MARTLET_FUZZ_ENTRY=${ENTRY:-$(basename "$(dirname "$INPUT")")} "$fuzzer" "${bounds[@]}" "$INPUT"
        ;;
    coverage)
        tools=$(dirname "$(readlink -f "$(command -v swift)")")
        profiles=$work/coverage/profiles
        rm -rf "$profiles"
        mkdir -p "$profiles"
        for entry in $entries; do
            mapfile -t folders < <(inputs "$entry")
            find "${folders[@]}" -type f -print0 | MARTLET_FUZZ_ENTRY=$entry \
                LLVM_PROFILE_FILE=$profiles/$entry.profraw xargs -0 "$fuzzer" >"$work/log/$entry-coverage.log" 2>&1
        done
        "$tools/llvm-profdata" merge -o "$profiles/all.profdata" "$profiles"/*.profraw
        "$tools/llvm-cov" report "$fuzzer" -instr-profile "$profiles/all.profdata" Sources \
            | awk 'NR == 1 || /^-/ || /^TOTAL/ { next }
                NF > 9 { split($1, part, "/"); folder = part[1] "/" (part[3] == "" ? "" : part[2])
                    lines[folder] += $8; missed[folder] += $9 }
                END { for (folder in lines) if (lines[folder] > missed[folder])
                    printf "%-36s %6d lines %6.1f %%\n", folder, lines[folder],
                        100 * (1 - missed[folder] / lines[folder]) }' | sort
        ;;
    minimise)
        for entry in $entries; do
            fresh=$work/minimised/$entry
            rm -rf "$fresh"
            mkdir -p "$fresh" "$work/corpus/$entry" "Fuzz/Corpus/$entry"
            # Only edges count: with execution counts, hundreds of inputs that differ by a digit would be retained.
            MARTLET_FUZZ_ENTRY=$entry "$fuzzer" "${bounds[@]}" -merge=1 -set_cover_merge=1 -use_counters=0 \
                "$fresh" "Fuzz/Seeds/$entry" "Fuzz/Corpus/$entry" "$work/corpus/$entry" \
                >"$work/log/$entry-merge.log" 2>&1
            rm -rf "Fuzz/Corpus/$entry"
            mkdir -p "Fuzz/Corpus/$entry"
            for input in "$fresh"/*; do
                if [ -e "$input" ] && ! cmp -s "$input" "Fuzz/Seeds/$entry/$(basename "$input")"; then
                    cp "$input" "Fuzz/Corpus/$entry/"
                fi
            done
            printf '%-16s %5d inputs, %7d bytes\n' "$entry" "$(ls "Fuzz/Corpus/$entry" | wc -l)" \
                "$(cat "Fuzz/Corpus/$entry"/* | wc -c)"
        done
        ;;
    *)
        echo "usage: $0 [run|reproduce|coverage|minimise]" >&2
        exit 2
        ;;
esac
