# SPDX-License-Identifier: Apache-2.0
# For tests with a real server, to be sourced: what tap.sh gives, servers on loopback, and
# clients. Long: skipped by name without STRATA_TEST_LONG, or without what
# `./bootstrap serving` installs.
. "${srcdir:-.}/tests/tap.sh"
tools=${STRATA_SERVING:-$builddir/tritonserver}
python=$tools/bin/python
whole() { # whole REASON: nothing can be tried
    echo "1..1"
    echo "ok 1 - ${0##*/} # SKIP $1"
    exit 0
}
[ -n "${STRATA_TEST_LONG:-}" ] || whole 'takes a minute; make check-long'
[ -n "${SANITIZER_CFLAGS:-}" ] && whole 'the server is not built with the sanitizers'
[ -x "$python" ] || whole 'no server: ./bootstrap serving'
server=$("$python" -c 'import pathlib, importlib.util as u
print(pathlib.Path(u.find_spec("pytriton").origin).parent / "tritonserver/bin/tritonserver")')
[ -e "$builddir/serving/triton/.libs/libtriton_strata.so" ] || whole 'no backend is built'

backends=$scratch/backends repository=$scratch/models digits=$srcdir/examples/digits
mkdir -p "$backends/strata" "$repository"
ln -s "$builddir/serving/triton/.libs/libtriton_strata.so" "$backends/strata/"
export LD_LIBRARY_PATH="$builddir/.libs"
# The first of thirty that nobody has, below those that the system gives to clients.
port=$("$python" - $$ <<'EOF'
import socket, sys
def free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
first = int(sys.argv[1]) % 400
places = (20000 + (first + k) % 400 * 30 for k in range(400))
print(next(p for p in places if all(free(p + k) for k in range(30))))
EOF
) || whole 'no ports are free'
pids=
stop_all() {
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill $pids 2>/dev/null
    wait
    rm -rf "$scratch"
}
trap stop_all EXIT

start() { # start PORT OPTION...: http at PORT, grpc and metrics behind it; its pid in $pid
    at=$1
    shift
    "$server" --model-repository="$repository" --backend-directory="$backends" \
        --http-address=127.0.0.1 --grpc-address=127.0.0.1 --metrics-address=127.0.0.1 \
        --http-port="$at" --grpc-port=$((at + 1)) --metrics-port=$((at + 2)) \
        --model-control-mode=explicit "$@" >"$scratch/server.$at" 2>&1 &
    pid=$!
    pids="$pids $pid"
    wait_for "$at"
}
wait_for() { # wait_for PORT: until the server there is alive
    tries=0
    until ask "$1" /v2/health/live >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { cat "$scratch/server.$1" >>"$log"; return 1; }
        sleep 0.1
    done
}
ask() { # ask PORT PATH [JSON]: GET, or POST of JSON; the status first
    "$python" - "$@" <<'EOF'
import sys, urllib.request, urllib.error
port, path, *body = sys.argv[1:]
data = body[0].encode() if body else None
try:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
EOF
}
load() { # load PORT CLIENTS: in the background, until stop_load; its counts in $scratch/load
    rm -f "$scratch/stop" "$scratch/stop.begun"
    "$python" "$srcdir/tests/serving/load.py" "127.0.0.1:$1" digits "$scratch/stop" "$2" \
        >"$scratch/load" 2>&1 &
    loading=$!
    tries=0
    until [ -e "$scratch/stop.begun" ] || [ $tries -ge 600 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
}
stop_load() { # and whether there were answers, no error, and one of each plan at most
    touch "$scratch/stop"
    wait $loading
    cat "$scratch/load" >"$log"
    grep -qE '^answers [1-9][0-9]+ errors 0 different [1-3]$' "$scratch/load"
}
digits_engine() { # digits_engine FILE
    mkdir -p "$(dirname "$1")"
    "$strata" build "$digits/digits.ini" -D batch=N --set 'profile.N=1, 4, 32' -o "$1" \
        >"$log" 2>&1
}
