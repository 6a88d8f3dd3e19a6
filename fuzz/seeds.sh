#!/bin/sh
# seeds.sh STRATA SOURCES FOLDER: what the fuzz targets start from, in FOLDER/corpus_*: the
# test data, and small engines of every kind of decision, built by the command.
set -eu
strata=$1 sources=$2 folder=$3
nets=$sources/fuzz/nets corpus=$folder/corpus_engine
mkdir -p "$corpus" "$folder/corpus_ini" "$folder/corpus_safetensors" "$folder/corpus_npy"
for f in "$sources"/examples/digits/*.ini "$sources"/examples/plugins/*/*.ini "$nets"/*.ini; do
    cp "$f" "$folder/corpus_ini/$(basename "$f")"
done
for f in "$sources"/tests/data/bad-ini/*/*.ini; do
    subject=$(dirname "$f")
    cp "$f" "$folder/corpus_ini/$(basename "$subject")-$(basename "$f")"
done
seed() { # TARGET NAME TEXT: escapes as printf has them
    printf "$3" >"$folder/corpus_$1/$2"
}
seed ini include '@[include]\nfile = a.inc\nfile = b.inc\n[network]\nformat = 1\n@[vars]\na = 1\n@[build]\nfusion = ${a}\n'
seed ini include-again '@[include]\nfile = a.inc\nfile = a.inc\n@[build]\nfusion = no\n@'
seed ini include-cycle '@[include]\nfile = a.inc\n@[include]\nfile = b.inc\n@[include]\nfile = a.inc\n'
seed ini include-missing '@[include]\nfile = c.inc\nfile = ../a\nfiel = x\nfile = ${no}\n@@'
seed ini options '+build.fusion=no\n+layer a.pad=3\n+x\n-a=5\n[vars]\na = 1\n[layer a]\npad = ${a}\n'
for d in '<f8' '<f4' '<f2' '<i8' '<i4' '<i2' '|i1' '<u8' '<u4' '<u2' '|u1' '|b1'; do
    for order in False True; do
        data=$(printf '%*s' $((6 * ${d#??})) '' | tr ' ' 7)
        seed npy ${d#?}-$order "\\0{'descr': '$d', 'fortran_order': $order, 'shape': (2, 3), }\\n$data"
    done
done
number=0
build() {
    number=$((number + 1))
    net=$1
    shift
    "$strata" build -q "$nets/$net.ini" -o "$corpus/seed$number.engine" "$@" >/dev/null
}
for net in branches shapes; do
    build $net --set build.formats=fp32:nchw
    build $net --set build.formats=fp32:nchw --set build.fusion=no
    build $net --set build.formats=fp32:nhwc,fp32:nchw
    build $net --set build.precision=fp16 --set build.formats=fp16:nhwc8,fp16:nchw
    build $net --set build.precision=fp16 --set build.formats=fp16:nc/2hw2
    build $net --set build.precision=any --set build.objective=reformats
done
build batches
build batches --set build.precision=fp16 --costs=measure
build branches --set 'layer conv.impl=any' --set 'layer second.impl=c' --costs=measure

for number in 1 5 9; do
    "$strata" inspect "$corpus/seed$number.engine" --section=weights \
        >"$folder/corpus_safetensors/seed$number"
done
