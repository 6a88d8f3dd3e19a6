#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The figures of docs/triton.md that need GPUs, as a table: one GPU and all, by bench, by the
# batcher, by Triton. Median of ROUNDS, in turns with bench.
#   bench/serving/gpu.sh BUILD TRITON [NET.ini]
# BUILD is a build with CUDA and `make bench`; TRITON a folder of scripts/triton.sh; the
# network (bench/nets/resnet50.ini) takes its batch from -D batch.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:?BUILD is missing}" && pwd)
triton=$(cd "${2:?TRITON is missing}" && pwd)
net=${3:-$here/bench/nets/resnet50.ini}
rounds=${ROUNDS:-3} batch=${BATCH:-32} seconds=${SECONDS_EACH:-4} port=21000
python=$triton/bin/python
export STRATA_PLUGIN_DIR="$build/plugins/.libs" STRATA_DEVICE_PATH="$build/kernels/.libs"
export LD_LIBRARY_PATH="$build/.libs"
scratch=$(mktemp -d) pid=
stop() { [ -z "$pid" ] || { kill "$pid" 2>/dev/null; wait "$pid" || true; }; pid=; }
trap 'stop; rm -rf "$scratch"' EXIT
gpus=$(nvidia-smi -L | wc -l)
devices=$(seq -s, 0 $((gpus - 1)) | sed 's/\([0-9][0-9]*\)/cuda:\1/g')
mkdir -p "$scratch/backends/strata"
ln -s "$build/serving/triton/.libs/libtriton_strata.so" "$scratch/backends/strata/"
server=$("$python" -c 'import pathlib, importlib.util as u
print(pathlib.Path(u.find_spec("pytriton").origin).parent / "tritonserver/bin/tritonserver")')

"$build/strata" build "$net" -d cuda:0 -D "batch=$batch" --set build.precision=fp16 \
    --set build.math=tensor_op -o "$scratch/net.engine" --quiet
"$build/strata" deploy "$scratch/net.engine" -o "$scratch/models" --name=net

start() { # start VISIBLE: the server on these GPUs
    CUDA_VISIBLE_DEVICES=$1 "$server" --model-repository="$scratch/models" \
        --backend-directory="$scratch/backends" --http-port=$port \
        --grpc-port=$((port + 1)) --metrics-port=$((port + 2)) >"$scratch/log" 2>&1 &
    pid=$!
    tries=0
    until "$python" -c "import urllib.request as u
u.urlopen('http://127.0.0.1:$port/v2/models/net/ready')" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] && kill -0 $pid || { cat "$scratch/log" >&2; exit 1; }
        sleep 0.2
    done
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
bench() { # bench DEVICE OPTION...: rows/s
    device=$1
    shift
    "$build/strata" bench "$scratch/net.engine" --device "$device" --in-flight 2 \
        --duration="${seconds}s" "$@" -o json |
        "$python" -c "import json, sys
r = json.load(sys.stdin)
r = r[0] if isinstance(r, list) else r
print(r['items_per_second'])"
}
load() { # load CLIENTS ROWS: rows/s
    "$python" "$here/bench/serving/load.py" 127.0.0.1:$((port + 1)) net --clients "$1" \
        --rows "$2" --seconds "$seconds" |
        "$python" -c 'import json, sys; print(json.load(sys.stdin)["rows_per_s"])'
}
repeat() { # repeat NAME COMMAND...: its median
    name=$1
    shift
    for _ in $(seq "$rounds"); do "$@"; done | median | tee "$scratch/$name"
}

echo "$gpus GPUs, batch $batch, rows/s"
echo "bench, one, no transfers:  $(repeat bench1 bench cuda:0)"
echo "bench, one, transfers:     $(repeat bench1t bench cuda:0 --transfers)"
echo "bench, all, no transfers:  $(repeat benchn bench cuda:all)"
start 0
echo "Triton, one, shared memory: $(repeat triton1 load 8 "$batch")"
echo "Triton, one, 8 x 4 rows:    $(repeat triton4 load 8 4)"
curl -s "http://127.0.0.1:$((port + 2))/metrics" 2>/dev/null | grep '^strata_' || true
stop
start "$(seq -s, 0 $((gpus - 1)))"
echo "Triton, all, shared memory: $(repeat tritonn load $((8 * gpus)) "$batch")"
stop
"$build/bench/serving/batcher" "$scratch/net.engine" "$devices" "$batch" 4 "$seconds"
ratio() { awk -v a="$(cat "$scratch/$1")" -v b="$(cat "$scratch/$2")" \
    'BEGIN { printf "%.3f\n", a / b }'; }
echo "Triton over bench with transfers, one GPU (0.97): $(ratio triton1 bench1t)"
echo "8 clients of 4 rows over bench (0.95):            $(ratio triton4 bench1t)"
echo "Triton, all over one (1.95 for two):              $(ratio tritonn triton1)"
echo "bench, all over one:                              $(ratio benchn bench1)"
