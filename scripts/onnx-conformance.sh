#!/bin/sh
# Write docs/onnx/conformance.md: ONNX's node cases as PyPI's onnx 1.22.0 has them.
#   onnx-conformance.sh BUILD FILE.md
#   STRATA_ONNX_DATA=DIR  a folder with node/ in it, instead of the wheel from PyPI
set -eu
build=$1 table=$2
version=1.22.0
if [ -z "${STRATA_ONNX_DATA:-}" ]; then
    folder=$build/onnx-$version
    [ -d "$folder/onnx" ] || {
        python3 -m pip download --quiet --no-deps --only-binary :all: -d "$folder" \
            "onnx==$version"
        python3 -m zipfile -e "$folder"/onnx-*.whl "$folder"
    }
    STRATA_ONNX_DATA=$folder/onnx/backend/test/data
fi
export STRATA_ONNX_DATA STRATA_ONNX_TABLE="$table"
"$build/tests/network/import/onnx_cases" | grep -E '^(not ok|#)' || true
