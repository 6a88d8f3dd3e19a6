#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The public headers compile alone, without a warning, in every language they promise.
top=${srcdir:-.}
include=$top/include
work=$(mktemp -d "${TMPDIR:-/tmp}/check-header-XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
count=0

# A C++ plugin uses the macros, exceptions included.
cat >"$work/plugin.cc" <<'END'
#include <strata/plugin.h>
static int run(const strata_run *r)
{
    STRATA_GUARD(r, if (r->n_in != 1) throw r->n_in; return STRATA_OK;)
}
static const strata_row rows[] = {{{STRATA_FOUR}, {STRATA_SAME}}};
static const strata_impl impls[] = {{1, STRATA_HOST, 0, 0, 0, 0, "cpp",
    STRATA_ARRAY(rows), 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, run}};
static const strata_layer layer = {sizeof(strata_layer), 1, "Plus", "C++", 1, 1, 1, 0, 0,
    {NULL, 0, 0}, {NULL, 0, 0}, STRATA_ARRAY(impls), NULL, NULL, NULL, NULL, NULL};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("org.example", "1.0.0", "Plus", layers)
END

# compile COMPILER STANDARD FLAGS FILE NAME
compile()
{
    count=$((count + 1))
    if "$1" -std="$2" -pedantic-errors -Wall -Wextra -Werror $3 -I"$include" -c "$4" \
        -o "$work/out.o" 2>"$work/log"; then
        echo "ok $count - $5 with $1 as $2"
    else
        echo "not ok $count - $5 with $1 as $2"
        sed 's/^/# /' "$work/log"
    fi
}

headers()
{
    for header in plugin layers half narrow strata batcher module parts sizes state \
        elements fused images places products quantized rows sequences windows; do
        [ -e "$include/strata/$header.h" ] || header=layers/$header
        echo "#include <strata/$header.h>" >"$work/alone.$3"
        compile "$1" "$2" "" "$work/alone.$3" "$header.h"
    done
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null 2>&1 || continue
    for standard in c99 c11 c17; do
        headers $compiler $standard c
        compile $compiler $standard -Wno-missing-field-initializers \
            "$top/examples/plugins/leaky_relu/leaky_relu.c" "a plugin"
    done
done
for compiler in g++ clang++; do
    command -v $compiler >/dev/null 2>&1 || continue
    for standard in c++14 c++17 c++20; do
        headers $compiler $standard cc
        compile $compiler $standard -Wno-missing-field-initializers "$work/plugin.cc" \
            "a plugin"
    done
done
# CUDA's language: all headers, and cuda.h, which is for nvcc.
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
if [ -n "$nvcc" ]; then
    for header in layers half strata cuda; do
        echo "#include <strata/$header.h>"
    done >"$work/alone.cu"
    for standard in c++14 c++17 c++20; do
        count=$((count + 1))
        if "$nvcc" -std=$standard -arch=sm_80 -Werror=all-warnings \
            --compiler-options=-Wall,-Wextra,-Werror -I"$include" -c "$work/alone.cu" \
            -o "$work/out.o" 2>"$work/log"; then
            echo "ok $count - all headers with nvcc as $standard"
        else
            echo "not ok $count - all headers with nvcc as $standard"
            sed 's/^/# /' "$work/log"
        fi
    done
    # Its host part is C too, for plugins that call the runtime alone.
    count=$((count + 1))
    echo '#include <strata/cuda.h>' >"$work/alone.c"
    if gcc -std=c99 -Wall -Wextra -Werror -I"$include" \
        -I"$(dirname "$nvcc")/../include" -c "$work/alone.c" -o "$work/out.o" 2>"$work/log"
    then
        echo "ok $count - cuda.h with gcc as c99"
    else
        echo "not ok $count - cuda.h with gcc as c99"
        sed 's/^/# /' "$work/log"
    fi
else
    count=$((count + 1))
    echo "ok $count - headers with nvcc # SKIP no nvcc"
fi
echo "1..$count"
