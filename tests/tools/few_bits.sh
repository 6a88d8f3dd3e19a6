#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: a decoder whose weights have few bits, from strata quantise to its text.
. "${srcdir:-.}/tests/tap.sh"
export STRATA_COSTS=analytic
cd "$scratch" || exit 99
if ! command -v python3 >/dev/null 2>&1; then
    skip 'decoders of few bits' 'no python3'
    finish
fi
sizes=layers=2,hidden=64,heads=4,kv_heads=2,ffn=176,vocabulary=300
python3 "$srcdir/examples/language/decoder.py" --random $sizes --seed $$ --context 32 \
    -o d.ini || exit 99
quantise() { # quantise NAME OPTION..
    name=$1
    shift
    "$strata" quantise d.ini --weights-only "$@" -o "$name.ini"
}

expect 0 '^15 layers are int8' 'int8 is what weights alone become' quantise eight
expect 0 '^15 layers are int8' 'with a scale a group, too' quantise grouped --group 32
expect 0 '^block1/down +MatrixMultiply +4 bits +2[0-9]\.' 'or 4 bits, and what it costs' \
    quantise four --bits 4 --group 32
expect 0 '^weight_bits = 4$' 'the network says how many' cat four.ini
expect 0 '^weight_group = 32$' 'and how many share a scale' cat four.ini
expect 0 '"block0/up.b":\{"dtype":"U8","shape":\[176,32\]' 'two are in a byte' \
    head -c 9000 four.safetensors
expect 0 '"block0/down.weight_scale":\{"dtype":"F32","shape":\[64,6\]' \
    'a scale is for each group, the last for the rest' head -c 9000 four.safetensors

# ---- what comes of it ----
# pinned NET IMPL: all products of the network by one impl
pinned() {
    sed "s/^type = MatrixMultiply\$/&\nimpl = $2/" "$1.ini" >"$1-$2.ini"
}
text() { "$strata" generate "$@" --ids 5,17,3 --length 9; }
for name in eight grouped four; do
    expect 0 '^ok: ' "$name: impls that keep the bits give what their products give" \
        "$strata" compare $name.ini --impls c,few_bits --tolerance 1e-5
    pinned $name c
    pinned $name few_bits
    expect 0 '^5 17 3( [0-9]+){9}$' "$name: a text comes out" text $name-few_bits.ini
    cp out few.out
    expect 0 '' "$name: by the products, too" text $name-c.ini
    cmp -s out few.out
    result $? "$name: it is the same text"
done
expect 0 '^ok: ' 'int8 leaves all as it was but for little' \
    "$strata" compare d.ini eight.ini --tolerance 0.1
expect 0 '^ok: ' 'so do 4 bits, less' "$strata" compare d.ini four.ini --tolerance 0.6
for name in four eight grouped; do
    sed 's/T = .*/T = 1/' $name.ini >one-$name.ini
    sed 's/T = .*/T = 1/' $name-c.ini >one-$name-c.ini
    expect 0 'few_bits' "$name: a run of a token is planned with the bits" \
        "$strata" explain one-$name.ini
    expect 0 '^ok: ' "$name: which gives the same" \
        "$strata" compare one-$name-c.ini one-$name.ini --tolerance 1e-5
    "$strata" build one-$name.ini -o one-$name.engine >/dev/null 2>&1
    expect 0 '^ok: ' "$name: from an engine file, too" \
        "$strata" compare one-$name-c.ini one-$name.engine --tolerance 1e-5
done
expect 0 '^block0/\{query,key,value\} +MatrixMultiply +few_bits' \
    'products of one input become one of their bits' "$strata" explain one-four.ini
sed '/^type = MatrixMultiply/,/^$/s/^weights = w:block0.key$/&\nweight_scale = none/' \
    one-four.ini >none.ini
expect 2 "nothing says by what they are multiplied; give 'weight_scale'" \
    '4 bits need a scale' "$strata" explain none.ini
expect 0 'few_bits' 'explain tells what that costs beside the others' \
    "$strata" explain one-four.ini --impls block0/up
expect 0 'few bits beside its factors' 'and that floats are none of it' \
    "$strata" explain d.ini --refused
expect 2 'bits .3.: 8 or 4' '3 bits are refused' quantise three --bits 3
expect 2 'group' 'and groups of none' quantise none --group 0
expect 2 'are of --weights-only' 'bits are of weights alone' \
    "$strata" quantise d.ini --ranges r.txt --bits 4 -o x.ini
finish
