#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: what is wrong with a command's files, sizes, names and devices is told before costs
# are measured, which takes minutes for large networks.
. "${srcdir:-.}/tests/tap.sh"
digits=$srcdir/examples/digits/digits.ini
image=$srcdir/examples/digits/images/3-011.pgm
unset STRATA_COSTS
costs=$scratch/measured.costs
mkdir "$scratch/samples"

# npy FILE SHAPE [DESCR]: 256 bytes of zeros.
npy() {
    printf '%b%-117s\n' '\0223NUMPY\001\000\0166\000' \
        "{'descr': '${3:-<f4}', 'fortran_order': False, 'shape': $2, }" >"$scratch/$1"
    head -c 256 /dev/zero >>"$scratch/$1"
}
npy good.npy '(1, 1, 8, 8)'
npy wide.npy '(1, 1, 4, 16)'
npy four.npy '(4, 1, 4, 4)'
npy complex.npy '(1, 1, 4, 8)' '<c8'
cp "$scratch/wide.npy" "$scratch/samples"
printf 'no tensor' >"$scratch/raw"
printf '[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x T\n[profile]\nT = 2..8/2
[layer y]\ntype = Activation\nkind = relu\n' >"$scratch/sizes.ini"
cp "$image" "$scratch/own.pgm"
printf '[network]\nformat = 1\noutputs = y\n[vars]\nbatch = 1\n[input x]
shape = ${batch} x 1 x 4 x 4\n[layer y]\ntype = Activation\nkind = relu\n' >"$scratch/vars.ini"
printf '[network]\nformat = 1\noutputs = y, z\n[input ids]\nshape = T\ndtype = i32
[profile]\nT = 1..4\n[weights w]\nrandom = 1\n[layer y]\ntype = Embedding\nrows = 8\ncolumns = 4
weights = w\n[layer z]\ntype = Activation\nkind = relu\n' >"$scratch/text.ini"

# early CODE PATTERN COMMAND NETWORK OPTION...: told, and nothing measured.
early() {
    code=$1 pattern=$2
    shift 2
    rm -f "$costs"
    expect "$code" "$pattern" "$1 ${3##*/} ${4##*/} ${5##*/}" $strata "$@" --costs measure \
        --save-costs "$costs"
    [ ! -e "$costs" ]
    result $? '  before anything is measured'
}

expect 0 '^prob' 'a run that is right' $strata run "$digits" "$scratch/good.npy" \
    --costs measure --save-costs "$costs"
[ -e "$costs" ]
result $? '  measures'

early 2 'wide.npy: shape \(1 x 1 x 4 x 16\)' run "$digits" "$scratch/wide.npy"
early 2 'four.npy: shape \(4 x 1 x 4 x 4\)' run "$digits" "$scratch/four.npy"
early 2 'is complex numbers' run "$digits" "$scratch/complex.npy"
early 2 'raw: neither .npy nor an image' run "$digits" "$scratch/raw"
early 2 'NAME is one of: image' run "$digits" "nosuch=$image"
early 2 'is given twice' run "$digits" "$image" "$image"
early 2 'no image 9999' run "$digits" "$srcdir/examples/digits/digits-test-images.idx" \
    --item 9999
early 2 'NAME is one of: prob' run "$digits" "$image" --output nosuch=x.npy
early 2 "no dimension 'T'" run "$digits" "$image" --dim T=4
early 2 'T = 9 is outside of 2..8' run "$scratch/sizes.ini" random:1 --dim T=9
early 2 'T = 3 is none of 2, 4' run "$scratch/sizes.ini" random:1 --dim T=3
early 2 'own.pgm: .*an image needs an input of' run "$scratch/sizes.ini" "$scratch/own.pgm"
early 2 'wide.npy: shape' bench "$digits" --input "$scratch/wide.npy"
early 2 "'fp61' is not one of" bench "$digits" --precision fp32,fp61
early 2 'good.npy: shape .* but input .image. is \(2 x' bench "$digits" --batch 1,2 \
    --input "$scratch/good.npy"
early 3 "device 'nosuch'" bench "$digits" --device host,nosuch
early 2 'wide.npy: shape' profile "$digits" --input "$scratch/wide.npy"
early 2 'wide.npy: shape' compare "$digits" --impls any,c --input "$scratch/wide.npy"
early 3 "device 'nosuch'" compare "$digits" --devices host,nosuch
early 2 'nosuch.ini: cannot be opened' compare "$digits" nosuch.ini
early 2 "'fp61' is not one of" compare "$digits" --precisions fp32,fp61
early 2 "makes a tensor 'nosuch'" compare "$digits" --impls any,c \
    --dump nosuch
early 2 'cannot write in folder' compare "$digits" --impls any,c --dump prob \
    --folder "$scratch/nosuch"
early 2 "no layer 'conv'; did you mean 'conv1'" explain "$digits" --impls conv
early 2 'wide.npy: shape' quantise "$digits" --data "$scratch/wide.npy" \
    -o "$scratch/int8.ini"
early 2 'samples/wide.npy: shape' quantise "$digits" --data "$scratch/samples" \
    -o "$scratch/int8.ini"
early 2 'a decoder has one input|is fp32; tokens are' generate "$digits" --ids 1,2
early 2 'which output is the logits' generate "$scratch/text.ini" --ids 1,2
early 2 'there is no such output' generate "$scratch/text.ini" --ids 1,2 --logits x
early 2 'token 8 of the prompt' generate "$scratch/text.ini" --ids 1,8 --logits y

expect 2 'four.npy: shape .*; -D batch=4 makes it that batch' 'a variable batch is named' \
    $strata run "$scratch/vars.ini" "$scratch/four.npy"
sed 's/[$]{batch}/1/; /^.vars/,/^batch/d' "$scratch/vars.ini" >"$scratch/fixed.ini"
expect 2 "; --set 'input x.shape=4 x 1 x 4 x 4' makes it that batch" 'a batch that is fixed, too' \
    $strata run "$scratch/fixed.ini" "$scratch/four.npy"
expect 0 '^y ' '  and it does' $strata run "$scratch/fixed.ini" "$scratch/four.npy" \
    --set 'input x.shape=4 x 1 x 4 x 4'
finish
