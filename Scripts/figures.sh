#!/usr/bin/env bash
# Prints first figures: small keep-alive GETs from nginx on this machine, by wrk and by Martlet, in turns.
#
#   Scripts/figures.sh [connections] [seconds of wrk] [requests of Martlet] [rounds]
#
# nginx, wrk and Martlet share the machine's processors, so the figures compare clients; they are no server's limit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

connections=${1:-64}
seconds=${2:-5}
requests=${3:-300000}
rounds=${4:-3}

fail() {
    printf 'figures: %s\n' "$1" >&2
    exit 1
}

swift build --package-path Benchmarks -c release --product small-gets
program=$(swift build --package-path Benchmarks -c release --show-bin-path)/small-gets

directory=$(mktemp -d)
nginx=
clean_up() {
    if [ -n "$nginx" ]; then
        kill "$nginx" 2>/dev/null || true
        wait "$nginx" 2>/dev/null || true
    fi
    rm -rf "$directory"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# One worker, in the foreground. The port is drawn at random: a taken one ends nginx at once, and another is drawn.
start_nginx() {
    port=$((10000 + RANDOM % 20000))
    cat >"$directory/nginx.conf" <<END
daemon off;
master_process off;
pid $directory/nginx.pid;
error_log $directory/error.log;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path $directory/body;
    proxy_temp_path $directory/proxy;
    fastcgi_temp_path $directory/fastcgi;
    uwsgi_temp_path $directory/uwsgi;
    scgi_temp_path $directory/scgi;
    server {
        listen 127.0.0.1:$port backlog=4096;
        location / { default_type text/plain; return 200 "Hello, world!"; }
    }
}
END
    nginx -e "$directory/error.log" -p "$directory" -c "$directory/nginx.conf" &
    nginx=$!
    local tries
    for tries in $(seq 100); do
        kill -0 "$nginx" 2>/dev/null || return 1
        curl -fs -o /dev/null "http://127.0.0.1:$port/" && return 0
        sleep 0.05
    done
    return 1
}
for attempt in 1 2 3; do
    start_nginx && break
    [ "$attempt" -lt 3 ] || fail "nginx does not start: $(cat "$directory/error.log")"
done
url="http://127.0.0.1:$port/"

middle() { sort -n | awk '{ line[NR] = $1 } END { print line[int((NR + 1) / 2)] }'; }

# Prints requests a second and µs of CPU for each.
run_wrk() {
    local output used
    output=$( { TIMEFORMAT='cpu %U %S'; time wrk -t1 -c"$connections" -d"${seconds}s" "$url"; } 2>&1)
    ! grep -q 'Non-2xx\|Socket errors' <<<"$output" || fail "wrk: $output"
    awk '/requests in/ { count = $1 } /^Requests\/sec:/ { rate = $2 } /^cpu / { used = $2 + $3 }
        END { printf "%d %.1f\n", rate, used * 1000000 / count }' <<<"$output"
}
run_martlet() {
    local output
    output=$("$program" "$url" "$connections" "$requests" "$@") || fail "$output"
    awk '{ print $1, $3 }' <<<"$output"
}

printf '\n%s\n' "$(grep -m1 '^model name' /proc/cpuinfo | cut -d: -f2- | sed 's/^ *//'), $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg) at the start"
printf '%s\n\n' "$connections connections, body of 13 bytes, nginx with one worker on the same machine"
printf '%-7s %-24s %12s %14s\n' round client req/s 'CPU us/req'
for round in $(seq "$rounds"); do
    for client in wrk martlet martlet-loop; do
        case $client in
            wrk) result=$(run_wrk) ;;
            martlet) result=$(run_martlet) ;;
            martlet-loop) result=$(run_martlet --loop) ;;
        esac
        read -r rate cost <<<"$result"
        printf '%s\n' "$rate" >>"$directory/$client.rate"
        printf '%s\n' "$cost" >>"$directory/$client.cost"
        printf '%-7s %-24s %12s %14s\n' "$round" "$client" "$rate" "$cost"
    done
done

printf '\n%-32s %12s %14s %10s\n' 'median' req/s 'CPU us/req' 'of wrk'
reference=$(middle <"$directory/wrk.rate")
for client in wrk martlet martlet-loop; do
    rate=$(middle <"$directory/$client.rate")
    cost=$(middle <"$directory/$client.cost")
    printf '%-32s %12s %14s %10s\n' "$client" "$rate" "$cost" \
        "$(awk -v rate="$rate" -v reference="$reference" 'BEGIN { printf "%.2f", rate / reference }')"
done
