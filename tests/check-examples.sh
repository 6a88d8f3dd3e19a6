#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: the examples of applications are small, use public headers alone, and do what they
# say, on the host; so does a model with an operator of a plugin's.
. "${srcdir:-.}/tests/tap.sh"
digits=$srcdir/examples/digits

# The second test digit.
{ printf 'P5 8 8 255\n' && tail -c +81 "$digits/digits-test-images.idx" | head -c 64; } \
    >"$scratch/input"
label=$(od -An -tu1 -j9 -N1 "$digits/digits-test-labels.idx" | tr -d ' ')

lines=$(wc -l <"$srcdir/examples/minimal.c")
echo "$lines lines" >"$log"
[ "$lines" -lt 60 ]
result $? 'minimal.c is under 60 lines'

! grep -n '#include' "$srcdir"/examples/minimal.c "$srcdir"/examples/serve/*.c |
    grep -v '#include <' >"$log"
result $? 'the examples include no private header'

answer=$("$builddir/examples/minimal" "$digits/digits.ini" "$scratch/input" \
    2>"$log")
echo "answer '$answer', written $label" >>"$log"
[ "${answer%% *}" = "$label" ]
result $? 'minimal reads a digit'

# shellcheck disable=SC2046,SC2086
$CC ${SANITIZER_CFLAGS:-} "$srcdir/examples/minimal.c" -o "$scratch/minimal" $(
    PKG_CONFIG_PATH=$builddir/pkgconfig pkg-config --cflags --libs strata) >"$log" 2>&1 &&
    [ "$("$scratch/minimal" "$digits/digits.ini" "$scratch/input" 2>"$log")" = "$answer" ]
result $? 'a build tree serves pkg-config without an installation'

! "$builddir/examples/minimal" "$digits/digits.ini" "$digits/digits.ini" >"$log" 2>&1 &&
    grep -q '^minimal: .*digits.ini: .*not an image' "$log"
result $? 'minimal says what is wrong with its input'

"$builddir/examples/serve/serve" "$digits" host 8 1795 >"$log" 2>&1 &&
    grep -q '^1795 requests by 8 workers .*; 1780 right$' "$log"
result $? 'eight workers serve 1795 digits, 1780 of them right as by one'

"$builddir/examples/serve/serve" "$digits" host,host:0,host 5 1795 >"$log" 2>&1 &&
    grep -q '^1795 requests by 5 workers .*; 1780 right$' "$log"
result $? 'so do workers over several devices'

! "$builddir/examples/serve/serve" "$scratch" >"$log" 2>&1 &&
    grep -q 'cannot read' "$log"
result $? 'serve says what it cannot read'

# ---- an operator of one's own -------------------------------------------------------------
folder=$scratch/leaky_relu page=$srcdir/docs/onnx.md
cp -R "$srcdir/examples/plugins/leaky_relu" "$scratch" && chmod -R u+w "$folder"
block() { # block TEXT: the page's indented block that begins so
    awk -v text="    $1" '$0 == text { on = 1 } on && /^[^ ]/ { exit }
        on { print substr($0, 5) }' "$page" | sed '$ { /^$/d; }'
}
in_folder() { # in_folder COMMAND...: with the folder on the plugin path
    (cd "$folder" && STRATA_PLUGIN_PATH=$folder "$@")
}

expect 2 "'leaky' \(org.example::LeakyReLU, opset 1\): no layer for it" \
    'an operator without its plugin is named' \
    "$strata" import "$folder/leaky_relu.onnx" -o "$scratch/none.ini"

block 'make leaky_relu.so' >"$scratch/commands"
(cd "$folder" && unset CFLAGS LDFLAGS MAKEFLAGS MFLAGS MAKELEVEL &&
    PKG_CONFIG_PATH=$builddir/pkgconfig PATH=$builddir:$PATH \
        XDG_CACHE_HOME=$scratch sh -ex "$scratch/commands") >"$log" 2>&1 &&
    [ "$(grep -cE '^y +[01] +1 ' "$log")" -eq 4 ]
result $? 'the commands of docs/onnx.md import and run the model'

block '# From an ONNX model' | diff - "$folder/net.ini" >"$log"
result $? 'the network is the one that the page shows'

# 1, 2, 3 and 4, 5, 0 by w are 7, 2, -1, 1 and 4, 5, -4, -5.
{
    printf '\223NUMPY\001\000\166\000%-117s\n' \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    printf '\000\000\200\077\000\000\000\100\000\000\100\100'
    printf '\000\000\200\100\000\000\240\100\000\000\000\000'
} >"$folder/x.npy"
for model in net.ini leaky_relu.onnx; do
    XDG_CACHE_HOME=$scratch in_folder "$strata" run $model x.npy --top 4 -o csv \
        >"$scratch/out" 2>"$log"
    values=$(sed 1d "$scratch/out" | cut -d, -f2,4,5 | sort | tr '\n' ' ')
    echo "values $values" >>"$log"
    [ "$values" = '0,0,7 0,1,2 0,2,-0.5 0,3,1 1,0,4 1,1,5 1,2,-2 1,3,-2.5 ' ]
    result $? "$model gives the values of the layer's formula"
done

claim='the script writes the model'
if python3 -c 'import onnx' 2>"$log"; then
    mkdir "$folder/again"
    in_folder python3 leaky_relu_onnx.py again/leaky_relu.onnx >"$log" 2>&1 &&
        in_folder "$strata" import again/leaky_relu.onnx -o again/net.ini >>"$log" 2>&1 &&
        diff "$folder/net.ini" "$folder/again/net.ini" >>"$log" &&
        cmp "$folder/net.safetensors" "$folder/again/net.safetensors" >>"$log"
    result $? "$claim"
else
    skip "$claim" 'no onnx of Python'
fi
finish
