#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: the plugin ABI against what it was: the types' description by abidw, and a module
# built at ABI 1.0, kept as a file and run.
#   tests/check-abi.sh --update    after a field was added at an end: describe anew
. "${srcdir:-.}/tests/tap.sh"
abi=$srcdir/tests/abi

describe() { # from a folder of its own: no path of this machine gets in
    cp "$abi/surface.c" "$scratch" &&
        (cd "$scratch" && $CC -gdwarf-4 -O0 -shared -fPIC -fvisibility=hidden \
            -ffile-prefix-map="$srcdir"=. -ffile-prefix-map="$scratch"=. \
            -I"$srcdir/include" surface.c -o surface.so)
}
if [ "${1:-}" = --update ]; then
    describe && abidw --no-show-locs --no-comp-dir-path --no-corpus-path \
        "$scratch/surface.so" >"$abi/plugin-1.abi"
    exit
fi

claim='the types of the plugin ABI are as described'
machine=$(uname -m)
if [ "$machine" != x86_64 ]; then
    skip "$claim" "the description is for x86_64, this is $machine"
elif command -v abidiff >/dev/null; then
    describe >"$log" 2>&1 && abidiff "$abi/plugin-1.abi" "$scratch/surface.so" >>"$log" 2>&1
    result $? "$claim"
    # And a moved field is seen.
    sed 's/int32_t device;                  \/\* STRATA_HOST/int64_t device; \/* STRATA_HOST/' \
        "$srcdir/include/strata/plugin.h" >"$scratch/plugin.h"
    mkdir -p "$scratch/moved/strata"
    cp -R "$srcdir"/include/strata/* "$scratch/moved/strata"
    cp "$scratch/plugin.h" "$scratch/moved/strata/"
    $CC -gdwarf-4 -shared -fPIC -fvisibility=hidden -I"$scratch/moved" "$abi/surface.c" \
        -o "$scratch/moved.so" >"$log" 2>&1
    ! cmp -s "$scratch/plugin.h" "$srcdir/include/strata/plugin.h" &&
        ! abidiff "$abi/plugin-1.abi" "$scratch/moved.so" >"$log" 2>&1 &&
        grep -q strata_node "$log"
    result $? 'a field that grows is noticed'
else
    skip "$claim" 'no abidiff (package abigail-tools)'
fi

# ---- the kept module ----------------------------------------------------------------------
kept=$scratch/plugin-1.0.so
cat >"$scratch/net.ini" <<'INI'
[network]
format = 1
outputs = y
[input x]
shape = 1 x 2 x 1 x 2
[weights zero]
random = 0
[layer twice]
type = Scale
scale = 2
shift = 1
impl = old
[layer kept]
type = org.example.kept::Kept
inputs = x, twice
weight = zeros
[layer y]
type = Activation
kind = relu
INI
# Where the network is changed: y = x*factor + (2x + 1)*0.5 + shift
gives() { # gives CLAIM VALUES OPTION...
    claim=$1 values=$2
    shift 2
    "$strata" run "$scratch/net.ini" "$scratch/x" --plugin "$kept" --top 4 -o csv \
        "$@" >"$scratch/out" 2>"$log"
    got=$(sed 1d "$scratch/out" | sort -t, -k4n | cut -d, -f5 | tr '\n' ' ')
    echo "got $got, not $values" >>"$log"
    [ "$got" = "$values" ]
    result $? "$claim"
}
if [ "$machine" != x86_64 ]; then
    skip 'a module of ABI 1.0 runs' "it is for x86_64, this is $machine"
else
    cp "$abi/plugin-1.0-x86_64.so" "$kept" && chmod 755 "$kept"
    # -1, 0, 1, 2 as FP32
    printf '\000\000\200\277\000\000\000\000\000\000\200\077\000\000\000\100' >"$scratch/x"
    gives 'a module of ABI 1.0 runs, fused' '0 1.5 4.5 7.5 '
    gives 'and alone' '0 1.5 4.5 7.5 ' --set build.fusion=no
    gives 'with its attributes' '0 0 3 9 ' --set 'layer kept.shift=-2' \
        --set 'layer kept.mode=double' --set 'layer kept.title=plain'
    gives 'in its other format' '0 1.5 4.5 7.5 ' --set 'layer kept.format=fp32:nhwc'
    "$strata" run "$scratch/net.ini" "$scratch/x" --plugin "$kept" \
        --set 'layer kept.kernel=5' >"$scratch/out" 2>"$log"
    [ $? -eq 2 ] && grep -q 'kernel is not 3x3' "$log"
    result $? 'and its refusals are told'
    if "$strata" check --help >/dev/null 2>&1; then
        "$strata" check "$kept" >"$log" 2>&1
        result $? 'it passes the checker'
    fi
fi
finish
