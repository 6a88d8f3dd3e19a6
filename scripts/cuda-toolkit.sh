#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A CUDA toolkit of PyPI's packages: compiler, run-time library, cuBLAS and cuDNN, as
# scripts/cuda-toolkit.txt pins them. For machines that have none; x86-64 only.
#   scripts/cuda-toolkit.sh FOLDER      afterwards: configure --with-cuda=FOLDER
#   scripts/cuda-toolkit.sh --useful    exit code 0 where a driver lacks a toolkit
# Safe to repeat. Needs Python with venv; nothing outside of FOLDER is changed.
set -eu
pins=$(cd "$(dirname "$0")" && pwd)/cuda-toolkit.txt
folder=${1:?FOLDER is missing}
driver=/proc/driver/nvidia/version

# CUDA 13 needs a driver of release 580.
useful() {
    [ -e $driver ] && [ "$(uname -m)" = x86_64 ] || return
    ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ] || return
    release=$(sed -n 's/^NVRM.*  *\([0-9][0-9]*\)\.[0-9.]* .*/\1/p' $driver)
    [ "${release:-0}" -ge 580 ] && return
    echo "cuda-toolkit.sh: CUDA 13 needs a driver of release 580, not ${release:-this}" >&2
    return 1
}

# The wheels' own layout, in pieces, as the toolkit's installer would lay it.
lay_out() {
    (cd "$folder/wheels/nvidia/cu13" && cp -al . "$folder/")
    cp -al "$folder/wheels/nvidia/cudnn/include" "$folder/wheels/nvidia/cudnn/lib" "$folder/"
    ln -s lib "$folder/lib64"
    for library in "$folder"/lib/lib*.so.*; do
        ln -sf "${library##*/}" "${library%%.so.*}.so"
    done
}

if [ "$folder" = --useful ]; then
    useful
    exit
fi
if cmp -s "$pins" "$folder/pins"; then
    exit 0
fi
if [ "$(uname -m)" != x86_64 ]; then
    echo "cuda-toolkit.sh: the pinned packages are for x86_64, this is $(uname -m)" >&2
    exit 1
fi
if [ ! -e "$folder/pins" ] && [ ! -e "$folder/unfinished" ] &&
   [ -n "$(ls -A "$folder" 2>/dev/null)" ]; then
    echo "cuda-toolkit.sh: $folder holds something else; name an empty folder" >&2
    exit 1
fi
echo "cuda-toolkit.sh: a CUDA toolkit into $folder (1 GB to fetch)"
rm -rf "$folder"
mkdir -p "$folder"
: >"$folder/unfinished"
folder=$(cd "$folder" && pwd)
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps \
    --require-hashes --only-binary :all: --target "$folder/wheels" -r "$pins"
lay_out
rm -rf "$folder/venv" "$folder/wheels" "$folder/unfinished"
cp "$pins" "$folder/pins"
