#!/usr/bin/env bash
# Installs the missing requirements of a task with apt. It prints nothing if all are installed, and never asks.
#
#   Scripts/install.sh build    headers to compile against
#   Scripts/install.sh test     the same, and the servers for the tests; those of PyPI, into .build
#   Scripts/install.sh traits   the same as build, and the libraries of the package traits
#   Scripts/install.sh lint     installs nothing; checks that the toolchain has swift-format
#   Scripts/install.sh bench    the same as build, the server, the peers and the measuring tools; those of PyPI too
#   Scripts/install.sh soak     the same as test, for the long scenarios and the sanitizers
set -euo pipefail

export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

fail() {
    printf 'install: %s\n' "$1" >&2
    exit 1
}

# Returns whether a package's contents are present, whatever installed them.
is_present() {
    case "$1" in
        pkg-config) command -v pkg-config ;;
        libssl-dev) pkg-config --exists 'openssl >= 3.0' ;;
        zlib1g-dev) pkg-config --exists zlib ;;
        libexpat1-dev) pkg-config --exists expat ;;
        libbrotli-dev) pkg-config --exists libbrotlidec libbrotlienc ;;
        libzstd-dev) pkg-config --exists libzstd ;;
        libpng-dev) pkg-config --exists libpng ;;
        libturbojpeg0-dev) pkg-config --exists libturbojpeg ;;
        apache2-bin) command -v apache2 ;;
        aria2) command -v aria2c ;;
        tinyproxy-bin) command -v tinyproxy ;;
        golang-go) command -v go ;;
        golang-github-gorilla-websocket-dev) test -d /usr/share/gocode/src/github.com/gorilla/websocket ;;
        libcurl4-openssl-dev) pkg-config --exists libcurl ;;
        libc6-dev) test -e /usr/include/stdlib.h ;;
        util-linux) command -v setpriv ;;
        iproute2) command -v ip ;;
        python3-venv) python3 -c 'import ensurepip, venv' ;;
        publicsuffix) test -s /usr/share/publicsuffix/public_suffix_list.dat ;;
        ca-certificates) test -s /etc/ssl/certs/ca-certificates.crt ;;
        *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

find_missing() {
    missing=()
    local package
    for package in "${wanted[@]}"; do
        is_present "$package" || missing+=("$package")
    done
}

# Installs httpbin, its server and WebSocket servers in a virtual environment in the build directory. The stamp records
# complete installations with their versions. Of two concurrent runs, one waits for the other.
install_python_servers() {
    local root environment packages log
    root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
    environment="$root/.build/httpbin"
    packages='httpbin==0.10.4 waitress==3.0.2 websockets==15.0.1 aiohttp==3.12.15 wsproto==1.2.0'
    [ "$(cat "$environment/stamp" 2>/dev/null)" = "$packages" ] && return
    mkdir -p "$root/.build"
    (
        flock 9
        [ "$(cat "$environment/stamp" 2>/dev/null)" = "$packages" ] && exit
        printf 'install: pip install %s\n' "$packages"
        log="$root/.build/httpbin.log"
        # The variable is unquoted, because the packages are separate words.
        # shellcheck disable=SC2086
        if ! python3 -m venv --clear "$environment" >"$log" 2>&1 ||
            ! "$environment/bin/python" -m pip install --quiet --retries 5 $packages >>"$log" 2>&1; then
            tail -n 20 "$log" >&2
            fail "httpbin or a WebSocket server could not be installed from PyPI; the last lines are above"
        fi
        rm -f "$log"
        printf '%s\n' "$packages" >"$environment/stamp"
    ) 9>"$root/.build/httpbin.lock"
}

# Requirements without a Debian package.
install_rest() {
    case "$1" in
        test | soak | bench) install_python_servers ;;
    esac
}

build=(pkg-config libssl-dev zlib1g-dev libexpat1-dev)
case "${1:-}" in
    build) wanted=("${build[@]}") ;;
    test | soak)
        wanted=("${build[@]}" nginx apache2-bin python3 python3-venv openssl curl util-linux ca-certificates)
        wanted+=(publicsuffix squid tinyproxy-bin microsocks lighttpd strace tmux iproute2 faketime)
        ;;
    bench)
        wanted=("${build[@]}" nginx wrk curl openssl python3 python3-venv golang-go golang-github-gorilla-websocket-dev)
        wanted+=(libcurl4-openssl-dev gcc libc6-dev valgrind wget2 aria2 axel)
        ;;
    traits) wanted=("${build[@]}" libbrotli-dev libzstd-dev libpng-dev libturbojpeg0-dev) ;;
    lint) wanted=() ;;
    *) fail "usage: $0 build|test|traits|lint|bench|soak" ;;
esac

command -v swift >/dev/null 2>&1 || fail "no 'swift' in PATH: Swift 6.2 or later is the one thing to bring along (https://swift.org/install)"
if [ "$1" = lint ]; then
    swift format --version >/dev/null 2>&1 || fail "this Swift toolchain has no 'swift format'; a release toolchain of 6.2 or later has it"
fi

find_missing
if [ "${#missing[@]}" -eq 0 ]; then
    install_rest "$1"
    exit
fi

list="${missing[*]}"
command -v apt-get >/dev/null 2>&1 || fail "missing: $list. There is no apt-get here; install their equivalents by hand and run this again"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || fail "missing: $list. Neither root nor sudo: ask for 'apt-get install $list'"
    as_root=(sudo)
fi

# Debian's server packages start their service on installation. The tests start their own servers, so a policy forbids
# this during the installation. A policy that already exists on the machine is not replaced.
policy=/usr/sbin/policy-rc.d
mark='# Martlet: no service is started while packages are installed'
log=$(mktemp)
clean_up() {
    rm -f "$log"
    if grep -qsF "$mark" "$policy"; then "${as_root[@]}" rm -f "$policy"; fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

printf 'install: apt-get install %s\n' "$list"
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
fi

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -q -y \
        -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null >"$log" 2>&1 && return
    tail -n 20 "$log" >&2
    fail "'apt-get $*' failed; its last lines are above"
}
apt update
apt install --no-install-recommends "${missing[@]}"

find_missing
[ "${#missing[@]}" -eq 0 ] || fail "installed, yet not usable: ${missing[*]} (OpenSSL 3.0 or later is needed: Debian 12 or later has it)"
install_rest "$1"
