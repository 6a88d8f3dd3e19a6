#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A Triton server, its Python clients and its load generator of PyPI's packages, as
# scripts/triton.txt and triton-load.txt pin them, and digits served by it. x86-64 and
# Python 3.11 alone; no container, no GPU needed.
#   scripts/triton.sh FOLDER          install there (115 MB to fetch, 450 MB on disk)
#   scripts/triton.sh FOLDER BUILD    and serve the digits with the backend of that build
# Safe to repeat. Nothing outside of FOLDER is changed.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
pins=$here/scripts/triton.txt load=$here/scripts/triton-load.txt
folder=${1:?FOLDER is missing}

fetch() {
    "$folder/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps \
        --require-hashes --only-binary :all: "$@"
}

install_server() {
    if cat "$pins" "$load" | cmp -s - "$folder/pins"; then
        return
    fi
    if [ "$(uname -m)" != x86_64 ]; then
        echo "triton.sh: the pinned packages are for x86_64, this is $(uname -m)" >&2
        exit 1
    fi
    if ! python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
        echo "triton.sh: the pinned packages are for Python 3.11, this is $(python3 -V)" >&2
        exit 1
    fi
    if [ -e "$folder" ] && [ ! -e "$folder/pins" ] && [ ! -e "$folder/unfinished" ] &&
       [ -n "$(ls -A "$folder")" ]; then
        echo "triton.sh: $folder holds something else; name an empty folder" >&2
        exit 1
    fi
    echo "triton.sh: a Triton server into $folder (115 MB to fetch)"
    rm -rf "$folder"
    mkdir -p "$folder"
    : >"$folder/unfinished"
    python3 -m venv "$folder"
    fetch -r "$pins"
    fetch --target "$folder/perf" -r "$load"
    chmod +x "$folder/perf/bin/perf_analyzer"
    rm "$folder/unfinished"
    cat "$pins" "$load" >"$folder/pins"
}

server_of() {
    "$folder/bin/python" -c 'import pathlib, importlib.util as u
print(pathlib.Path(u.find_spec("pytriton").origin).parent / "tritonserver/bin/tritonserver")'
}

stop() {
    [ -z "${pid:-}" ] || kill "$pid" 2>/dev/null || true
    wait
    rm -rf "$scratch"
}

wait_ready() {
    tries=0
    until "$folder/bin/python" -c "import urllib.request as u
u.urlopen('http://127.0.0.1:$1/v2/models/digits/ready')" 2>/dev/null; do
        tries=$((tries + 1))
        if [ $tries -gt 100 ] || ! kill -0 "$pid" 2>/dev/null; then
            cat "$scratch/log" >&2
            exit 1
        fi
        sleep 0.2
    done
}

# The digits by three ways in, with throughput and accuracy; then what the server counted.
demo() {
    build=$(cd "$1" && pwd)
    digits=$here/examples/digits
    scratch=$(mktemp -d)
    trap stop EXIT
    export STRATA_PLUGIN_DIR="$build/plugins/.libs" LD_LIBRARY_PATH="$build/.libs"
    mkdir -p "$scratch/backends/strata"
    ln -s "$build/serving/triton/.libs/libtriton_strata.so" "$scratch/backends/strata/"
    "$build/strata" build "$digits/digits.ini" -D batch=N \
        --set 'profile.N=1, 2, 4, 8, 16, 32' -o "$scratch/digits.engine" --quiet
    "$build/strata" deploy "$scratch/digits.engine" -o "$scratch/models"
    port=${STRATA_SERVING_PORT:-8000}
    "$(server_of)" --model-repository="$scratch/models" \
        --backend-directory="$scratch/backends" --http-address=127.0.0.1 \
        --grpc-address=127.0.0.1 --metrics-address=127.0.0.1 --http-port="$port" \
        --grpc-port=$((port + 1)) --metrics-port=$((port + 2)) >"$scratch/log" 2>&1 &
    pid=$!
    wait_ready "$port"
    echo "serving digits at 127.0.0.1:$port"
    for way in http grpc shm; do
        "$folder/bin/python" "$here/examples/triton/digits_client.py" "$digits" \
            --way $way --http "127.0.0.1:$port" --grpc "127.0.0.1:$((port + 1))" \
            --repeat 10
    done
    echo "metrics of 127.0.0.1:$((port + 2))/metrics:"
    "$folder/bin/python" -c "import urllib.request as u
for line in u.urlopen('http://127.0.0.1:$((port + 2))/metrics').read().decode().splitlines():
    if line.startswith(('strata_', 'nv_inference_request_success', 'nv_inference_count',
                        'nv_inference_exec_count', 'nv_inference_queue_duration_us',
                        'nv_inference_compute_infer_duration_us')):
        print(' ', line)"
}

case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
install_server
[ -z "${2:-}" ] || demo "$2"
