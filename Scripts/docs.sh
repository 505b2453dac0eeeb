#!/usr/bin/env bash
# Builds the documentation of all libraries as one static site: the pages of Sources/Martlet/Martlet.docc and the API of
# the products Martlet, MartletUploads, MartletWebSocket, MartletMetalink, MartletXML, MartletImages and
# MartletTesting. Any warning of DocC is an error.
#
#   Scripts/docs.sh OUTPUT [BASE]   OUTPUT: the directory to write; BASE: the path that the site is served under
#
# Reads the modules of the debug build in MARTLET_BUILD_PATH (.build/debug), which must exist (`make docs` builds it).
# If MARTLET_SYMBOL_GRAPHS is set, the symbol graphs are stored in that directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

output=${1:?usage: Scripts/docs.sh OUTPUT [BASE]}
base=${2:-}
build=${MARTLET_BUILD_PATH:-.build/debug}
toolchain=$(dirname "$(realpath "$(command -v "${SWIFT:-swift}")")")
packages=$(realpath "$build")/../../checkouts
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
graphs=${MARTLET_SYMBOL_GRAPHS:-$temporary}

# The modules that `import Martlet` re-exports; their API is documented in the module Martlet.
reexported=$(sed -n 's/^@_exported public import \(Martlet[A-Za-z]*\)$/\1/p' Sources/*/*.swift | sort -u | paste -sd,)

arguments=(-I "$build/Modules" -resource-dir "$toolchain/../lib/swift" -target "$(uname -m)-unknown-linux-gnu")
for map in Sources/*/module.modulemap "$build/CMartletLinux.build/module.modulemap" \
    "$packages"/swift-system/Sources/*/include/module.modulemap; do
    arguments+=(-Xcc "-fmodule-map-file=$(realpath "$map")")
done
for module in Martlet MartletUploads MartletWebSocket MartletMetalink MartletXML MartletImages MartletTesting; do
    "$toolchain/swift-symbolgraph-extract" -module-name "$module" "${arguments[@]}" -output-dir "$graphs" \
        -minimum-access-level public -emit-extension-block-symbols -skip-synthesized-members \
        -experimental-allowed-reexported-modules="$([ "$module" = Martlet ] && printf %s "$reexported")"
done

rm -rf "$output"
"$toolchain/docc" convert Sources/Martlet/Martlet.docc --additional-symbol-graph-dir "$graphs" \
    --fallback-display-name Martlet --fallback-bundle-identifier martlet --warnings-as-errors \
    --transform-for-static-hosting --hosting-base-path "$base" --output-path "$output"
