#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: every code block of docs/writing-a-plugin.md compiles, without a warning. A block is
# a file of its own; one without an #include gets those that the page takes for granted.
srcdir=$(cd "${srcdir:-.}" && pwd)
page=$srcdir/docs/writing-a-plugin.md
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
number=0 failed=0
NVCC=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
quiet='-Wall -Wextra -Werror -Wno-unused -Wno-missing-field-initializers'

awk -v folder="$scratch" '
    /^```(c|cpp|cuda)$/ { kind = substr($0, 4); n++; first = 1
        file = sprintf("%s/%02d.%s", folder, n, kind == "cuda" ? "cu" : kind)
        next }
    /^```/ { kind = "" }
    kind && first && !/^#include/ {
        print "#include <string.h>\n#include <strata/layers.h>" >file }
    kind { print >file; first = 0; print FNR, $0 >(file ".lines") }
' "$page"

for block in "$scratch"/*.c "$scratch"/*.cpp "$scratch"/*.cu; do
    [ -e "$block" ] || continue
    number=$((number + 1))
    line=$(sed -n '1s/ .*//p' "$block.lines")
    claim="the block at line $line compiles"
    case $block in
    *.c) command="gcc -std=c11 $quiet -fsyntax-only" ;;
    *.cpp) command="g++ -std=c++20 $quiet -fsyntax-only" ;;
    *.cu)
        if [ -z "$NVCC" ]; then
            echo "ok $number - $claim # SKIP no nvcc"
            continue
        fi
        command="$NVCC -arch=sm_80 -Werror=all-warnings -c -o $scratch/out.o" ;;
    esac
    if $command -I"$srcdir/include" "$block" >"$scratch/log" 2>&1; then
        echo "ok $number - $claim"
    else
        failed=1
        echo "not ok $number - $claim"
        sed 's/^/# /' "$scratch/log"
    fi
done

number=$((number + 1))
if sed 1d "$srcdir/examples/plugins/leaky_relu/leaky_relu.c" |
    cmp - "$scratch/01.c" >"$scratch/log" 2>&1; then
    echo "ok $number - the first block is the example"
else
    failed=1
    echo "not ok $number - the first block is the example"
    sed 's/^/# /' "$scratch/log"
fi
echo "1..$number"
exit $failed
