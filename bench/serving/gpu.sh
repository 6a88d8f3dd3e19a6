#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The figures of docs/triton.md, as a table of what is asked and what is found.
#   bench/serving/gpu.sh BUILD TRITON [OPTION...]
# BUILD is a build (with CUDA and a GPU here, else --device host) after `make bench` and
# `make tests/cuda_faulty.la`; TRITON a folder of scripts/triton.sh; options are
# acceptance.py's.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:?BUILD is missing}" && pwd)
triton=$(cd "${2:?TRITON is missing}" && pwd)
shift 2
python=$triton/bin/python
export STRATA_PLUGIN_DIR="$build/plugins/.libs" STRATA_DEVICE_PATH="$build/kernels/.libs"
export LD_LIBRARY_PATH="$build/.libs"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/backends/strata" "$scratch/backends/null" "$scratch/faulty" "$scratch/perf"
ln -s "$build/serving/triton/.libs/libtriton_strata.so" "$scratch/backends/strata/"
ln -s "$build/bench/serving/.libs/libtriton_null.so" "$scratch/backends/null/"
site=$("$python" -c 'import pathlib, importlib.util as u
print(pathlib.Path(u.find_spec("pytriton").origin).parents[1])')
# What perf_analyzer needs and Debian has under other names, the server brought along.
ln -s "$site"/nvidia_pytriton.libs/libb64-*.so.0d "$scratch/perf/libb64.so.0d"
ln -s "$site"/nvidia_pytriton.libs/libcudart-*.so.12* "$scratch/perf/libcudart.so.12"
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
[ "$gpus" -gt 0 ] || set -- --device host "$@"
if [ -e "$build/tests/.libs/cuda_faulty.so" ]; then
    ln "$build/tests/.libs/cuda_faulty.so" "$scratch/faulty/" 2>/dev/null ||
        cp "$build/tests/.libs/cuda_faulty.so" "$scratch/faulty/"
    set -- --plugin-path "$scratch/faulty" "$@"
fi
"$python" "$here/bench/serving/acceptance.py" --strata "$build/strata" \
    --server "$site/pytriton/tritonserver/bin/tritonserver" \
    --backends "$scratch/backends" --gpus "$gpus" \
    --perf "$triton/perf/bin/perf_analyzer" --perf-libraries "$scratch/perf" \
    --copy-count "$build/bench/serving/.libs/copy_count.so" \
    --backend-time "$build/bench/serving/backend_time" \
    --batcher "$build/bench/serving/batcher" "$@"
