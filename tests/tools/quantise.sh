#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: strata quantise as a user meets it: files, tables, ranges again, and what is refused.
. "${srcdir:-.}/tests/tap.sh"
cd "$scratch" || exit 99
cp "$srcdir"/examples/digits/digits* . && cp -r "$srcdir/examples/digits/images" images
q="$strata quantise digits.ini"
few='--data images'
all='--data digits-test-images.idx --labels digits-test-labels.idx --samples 60'

# ---- a network of int8 ----
expect 0 '^right: 356 in floats .*, 35[4-9] in int8' 'quantise keeps the answers' \
    $q $all --save-ranges r.txt --sensitivity -o int8.ini
cp out table
expect 0 '^conv2 +Convolution +int8 +[34][0-9]\.[0-9] +[34]' 'and tells the loss by layer' \
    cat table
expect 0 '^[0-9. ]+ relu1$' 'and the ranges' cat r.txt
sed 1,2d r.txt | LC_ALL=C sort -c -k 4 2>"$log"
result $? 'sorted by tensor'
expect 0 '"I8"' 'its weights are int8' head -c 3000 int8.safetensors
expect 0 '^inputs = relu1.dequantize$' 'its layers read what was int8' cat int8.ini
expect 0 '^prob +0 +1 +3 ' 'it runs' $strata run int8.ini images/3-011.pgm --top 1
! grep -v 'machine is busy' "$scratch/err" | grep -q warning
result $? 'without a warning'
expect 0 '^9 tensors compared' 'compare finds each tensor by its name' $strata compare \
    digits.ini int8.ini --no-fusion --input images/3-011.pgm
$q $few -o a.ini --ranges r.txt >"$log" && sed s/int8.safe/a.safe/ int8.ini | cmp - a.ini
result $? 'the same ranges make the same network'
expect 0 'alike|dB above' 'ranges do without data' sh -c "$q --ranges r.txt -o b.ini &&
    $strata compare a.ini b.ini --input images/3-011.pgm --tolerance 0.2 && echo alike"
for method in mse max percentile entropy; do
    expect 0 'of 20 samples 20 have' "$method gives the answers of floats" \
        $q $few --method $method -o m.ini
done
expect 0 '^\[\{"layer": "conv1"|"layer": "conv1"' 'it prints JSON' \
    $q $few -o m.ini --format json
expect 0 '^\| conv1 +\| Convolution' 'and Markdown' $q $few -o m.ini --format md
expect 0 '^[ab]' 'a layer that is kept stays float' sh -c "$q $few --keep conv1 -o k.ini &&
    grep -q '^inputs = image\$' k.ini && echo a"
expect 0 '^a' 'a first layer of few channels stays float where that is asked for' sh -c \
    "$q $few --float-first -o k.ini && grep -q '^inputs = image\$' k.ini &&
    grep -q '^inputs = relu1.dequantize\$' k.ini && echo a"
expect 2 'float-first is of convolutions' 'which weights alone do not have' \
    $q --weights-only --float-first -o k.ini
expect 0 '^right: .*356 in int8' 'a budget of nothing leaves what it takes' \
    $q $all --budget '0 %' -o budget.ini

expect 0 '^relu2 +int8 +0\.0[0-9]+ +0 +[0-9.]+ +[0-9.]+$' 'explain tells scale, range and share' \
    $strata explain int8.ini --quantised
expect 0 'no tensor is quantised' 'or that there is none' $strata explain digits.ini --quantised
$strata build int8.ini -o int8.engine >"$log" 2>&1
expect 0 '^relu2 +int8 +0\.0[0-9]+' 'of an engine file, too' $strata explain int8.engine --quantised

# ---- samples that are no data ----
# A .npy header of version 1 is 128 bytes; 0x7fc00000 is NaN.
npy() {
    printf '\223NUMPY\001\000\166\000%-117s\n' \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }"
    for i in $(seq 64); do printf "$1"; done
}
cp -r images odd && npy '\000\000\300\177' >odd/b.npy
expect 2 'odd/b.npy: element 0 is NaN; leave' 'a sample of NaN is refused by name' \
    $q --data odd -o odd.ini
# Infinite is what masks are; here conv1 makes NaN of it.
npy '\000\000\200\177' >odd/b.npy
expect 0 'b.npy: in floats the network makes NaN of it, 1 of 21 samples' \
    'one that floats make NaN of is named' sh -c "$q --data odd -o odd.ini 2>&1"
expect 0 '^prob ' 'and leaves none in the network' \
    $strata run odd.ini images/3-011.pgm --top 1
! grep -q NaN "$scratch/err"
result $? 'nor in its weights'
rm odd/*.pgm
expect 2 'none of its 64 values is finite' 'no other sample is no network' \
    $q --data odd -o no.ini

# ---- rows of an array ----
npys() { # npys SHAPE VALUES...: each is 32 bytes
    printf '\223NUMPY\001\000\166\000%-117s\n' \
        "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
    shift
    for v in "$@"; do for i in $(seq 64); do printf "$v"; done; done
}
one='\000\000\200\077' half='\000\000\000\077' nan='\000\000\300\177'
mkdir rows && npys '1, 1, 8, 8' "$one" >rows/a.npy && npys '1, 8, 8' "$half" >rows/b.npy
npys '2, 1, 8, 8' "$one" "$half" >rows.npy
expect 0 '^of 2 samples' 'a folder of arrays' $q --data rows -o r1.ini --save-ranges r1.txt
expect 0 '^of 2 samples' 'and one whose rows are samples' \
    $q --data rows.npy -o r2.ini --save-ranges r2.txt
cmp r1.txt r2.txt >"$log" 2>&1 && cmp r1.safetensors r2.safetensors >>"$log" 2>&1
result $? 'make the same network'
npys '2, 8, 8' "$one" "$nan" >rows.npy
expect 2 'rows.npy, row 1: element 0 is NaN' 'a row of NaN is named' $q --data rows.npy -o r3.ini
npys '2, 4, 16' "$one" "$half" >rows.npy
expect 2 'rows.npy: shape .2 x 4 x 16., but input' 'rows are of the shape of the input' \
    $q --data rows.npy -o r3.ini
npys '1, 1, 8, 8' "$one" >rows.npy
expect 0 '^of 1 samples' 'one row is a sample, too' $q --data rows.npy -o r3.ini

# ---- integers that are meant ----
printf '\223NUMPY\001\000\166\000%-117s\n\007' \
    "{'descr': '|i1', 'fortran_order': False, 'shape': (1,), }" >zero.npy
printf '\223NUMPY\001\000\166\000%-117s\n\000\000\000\077' \
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }" >scale.npy
cat >zero.ini <<'END'
[network]
format = 1
outputs = y
[input x]
shape = 2 x 3
[weights s]
file = scale.npy
[weights z]
file = zero.npy
[layer q]
type = Quantize
dtype = int8
scale = s
zero = z
[layer y]
type = Dequantize
scale = s
zero = z
END
expect 0 '^y ' 'a zero point of int8 runs' $strata run zero.ini random:1 --costs analytic
! grep -q warning "$scratch/err"
result $? 'without a warning that it is one of integers'

# ---- what is kept, and goes on ----
$q $few --collected c.txt -o a.ini >"$log" && cp c.txt c1.txt &&
    $q $few --collected c.txt -o a2.ini >>"$log" && cmp c.txt c1.txt && cmp a.safetensors a2.safetensors
result $? 'a collection that is complete is taken as it is'
expect 0 '^samples 20 of 20' 'and says how far it is' head -n 2 c.txt
sed 's/^samples 20/samples 10/' c1.txt >c.txt
$q $few --collected c.txt -o a.ini >"$log" && head -n 2 c.txt | grep -q 'samples 20 of 20' &&
    awk '/ image$/ { seen = $4 } END { exit seen != 30 * 64 }' c.txt
result $? 'one that was interrupted goes on from its sample'
expect 2 'is of 20 samples, not of 359' 'one of other data is refused' \
    $q --data digits-test-images.idx --collected c1.txt -o a.ini
# Ctrl-C: early, late or not at all, the end is the same.
images=digits-test-images.idx
$q --data $images --collected whole.txt -o whole.ini >"$log"
$q --data $images --collected i.txt -o i.ini >out 2>err &
pid=$!
sleep 0.1
kill -INT $pid 2>/dev/null
wait $pid
code=$?
{ [ $code -eq 0 ] || { [ $code -lt 128 ] && grep -q 'interrupted, ' err; }; } &&
    $q --data $images --collected i.txt -o i.ini >>"$log" 2>&1 && cmp whole.txt i.txt >>"$log" &&
    cmp whole.safetensors i.safetensors >>"$log"
result $? 'a collection that Ctrl-C ends goes on to the same network'
sed 's/:[0-9]*/:7/' c1.txt >c.txt
expect 2 'c.txt:4: error: the bins hold' 'a damaged one is refused' $q $few --collected c.txt -o a.ini
sed 's/ relu1$/ relu9/' c1.txt >c.txt
expect 2 "no tensor 'relu9' of this network" 'and one of another network' \
    $q $few --collected c.txt -o a.ini

# ---- labels ----
seq 20 | sed 's/.*/3/' >labels
expect 0 '^right: [0-9]+ in floats' 'labels may be lines' $q $few --labels labels -o a.ini
echo 3 >>labels
expect 2 'labels: 21 labels, but 20 samples' 'as many as samples' $q $few --labels labels -o a.ini
echo x >>labels
expect 2 'labels:22: error: a class is needed' 'that are numbers' $q $few --labels labels -o a.ini

# ---- what is refused ----
mkdir empty
expect 2 'empty: no file is in the folder' 'a folder without files' $q --data empty -o a.ini
expect 2 'nowhere: cannot be opened' 'no folder' $q --data nowhere -o a.ini
expect 2 "data 'y=images': write --data NAME=PATH.*: image" 'data of an input that is not there' \
    $q --data y=images -o a.ini
expect 2 'nothing to quantise' 'a network that is int8 already' \
    $strata quantise int8.ini $few -o a.ini
expect 2 'nothing to quantise: no MatrixMultiply' 'no MatrixMultiply for --weights-only' \
    $q --weights-only -o a.ini
expect 2 "no layer is called 'conv3'; did you mean 'conv" 'a layer that is not there' \
    $q $few --keep conv3 -o a.ini
sed 's/^0 /x /' r.txt >bad.txt
expect 2 'bad.txt:3: error: the low end is missing' 'damaged ranges' $q --ranges bad.txt -o a.ini
grep -v relu1 r.txt >bad.txt
expect 2 "bad.txt: no range of tensor 'relu1'" 'ranges that lack a tensor' \
    $q --ranges bad.txt -o a.ini
expect 2 'would be replaced' 'to replace the network' $q $few -o digits.ini
mkdir -p own && cp digits-test-images.idx own.idx && cp "$srcdir"/examples/digits/images/*.pgm own
own=$(ls own/*.pgm | head -n 1)
for c in '--data own.idx -o own.idx' "--data own -o $own" '--data own.idx --save-ranges own.idx -o b.ini' \
    '--data image=own.idx -o own.idx'; do
    expect 2 'would be replaced, but --data reads it' "its data: $c" $q $c
done
cmp -s own.idx digits-test-images.idx
result $? 'which are as they were'
for c in '-o b.safetensors' '--save-ranges b.safetensors -o b.ini'; do
    expect 2 "network's weights are written there" "what else it writes: $c" $q $few $c
done
sed 's/^outputs = .*/&\nlabels = names/' digits.ini >named.ini && seq 0 9 >names && mkdir -p away
seq 20 >away/d.labels && cp away/d.labels classes
expect 2 'away/d.labels: would be replaced, but --labels reads it' 'its labels, which go along' \
    $strata quantise named.ini $few --labels away/d.labels -o away/d.ini
expect 2 "network's labels are written there" 'or its ranges in their place' \
    $strata quantise named.ini $few --save-ranges away/e.labels -o away/e.ini
cmp away/d.labels classes >"$log" 2>&1
result $? 'none is written over'
expect 2 '--share is of --method percentile' 'a share that nothing takes' $q $few --share 50 -o b.ini
expect 2 'would be replaced' 'or its weights' $q $few -o digits.int8 --set 'weights w.file=digits.safetensors' \
    -o ./digits.xyz
expect 2 'a file is needed here, not a format' '-o with a format' $q $few -o json
expect 2 "method 'mes': .* did you mean 'mse'" 'a method that is not there' $q $few --method mes -o a.ini
for wishes in "$few" '-o a.ini' "$few --budget 1 -o a.ini" '--labels l --ranges r -o a.ini' \
    '--sensitivity --ranges r.txt -o a.ini' '--ranges r --save-ranges s -o a.ini' \
    '--ranges r --collected s -o a.ini' '--weights-only --ranges r -o a.ini' \
    '--ranges r.txt --method max -o a.ini' '--ranges r.txt --samples 3 -o a.ini'; do
    expect 2 '^Usage: strata quantise' "refused: $wishes" $q $wishes
done
# ---- e4m3 ----
cat >mlp.ini <<'END'
[network]
format = 1
outputs = y
[input x]
shape = 40 x 64
[weights w]
random = 7
[layer a]
type = MatrixMultiply
units = 48
b = w
bias = w
[layer r]
type = Activation
[layer y]
type = MatrixMultiply
units = 16
b = w
END
printf 'strata-ranges 1\n0 3 9 r\n-1 1 9 x\n' >mlp.txt
expect 0 '^y +MatrixMultiply +e4m3 +3[0-9]\.' 'products become e4m3' \
    $strata quantise mlp.ini --ranges mlp.txt --to e4m3 -o e4m3.ini
expect 0 '^dtype = e4m3$' 'between Quantize and Dequantize' cat e4m3.ini
expect 0 '"y.b":.*"F8_E4M3"' 'by weights of e4m3' head -c 800 e4m3.safetensors
expect 0 '^r +e4m3 +0\.0066[0-9]+ +0 +3' 'explain tells their scales' $strata explain e4m3.ini --quantised
expect 0 'within the tolerance of 0.2' 'the answers are near those of floats' \
    $strata compare mlp.ini e4m3.ini --input x=random:3
expect 2 'max or percentile' 'a method of even steps is refused' \
    $strata quantise mlp.ini --ranges mlp.txt --to e4m3 --method mse -o b.ini
expect 2 "to 'e5m2': int8 or e4m3" 'and another dtype' \
    $strata quantise mlp.ini --ranges mlp.txt --to e5m2 -o b.ini
expect 2 'nothing to quantise: no FullyConnected of matrices' 'convolutions are not for e4m3' \
    $q $few --to e4m3 -o b.ini

# ---- matrices, several inputs, .npy ----
cat >mm.ini <<'END'
[network]
format = 1
outputs = y
[input a]
shape = 1 x 4 x 16
[input c]
shape = 1 x 4 x 24
[weights w]
random = 3
[layer one]
type = MatrixMultiply
inputs = a
units = 24
b = w
[layer both]
type = ElementWise
inputs = one, c
[layer y]
type = MatrixMultiply
units = 8
transpose_b = yes
b = w
END
mkdir a c
for i in 1 2 3; do
    for input in a=16 c=24; do
        { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (4, ${input#*=}), }"
            seq 99 | tr -d '\n' | cut -c "$i-$((i + 4 * ${input#*=} - 1))" | tr -d '\n'; } >"${input%=*}/$i.npy"
    done
done
expect 0 '^2 layers are int8; 0 tensors' 'weights alone need no data' \
    $strata quantise mm.ini --weights-only -o wo.ini
expect 0 '^ok: all are within the tolerance of 0.2' 'and compare as quantised' \
    $strata compare mm.ini wo.ini
expect 0 'of 3 samples [123] have' 'two inputs have data each' \
    $strata quantise mm.ini --data a=a --data c=c -o mm8.ini
expect 0 '^inputs = one, c.dequantize$' 'of a sum one addend stays' cat mm8.ini
expect 2 "input 'c' has no data; add --data c=FOLDER" 'one of them is not enough' \
    $strata quantise mm.ini --data a=a -o mm8.ini
expect 2 "input 'a' has 3 samples, 'c' 1" 'as many are needed' \
    $strata quantise mm.ini --data a=a --data c=c/1.npy -o mm8.ini
expect 2 "c/1.npy: shape .4 x 24., but input 'a' is" 'of the right shape' \
    $strata quantise mm.ini --data a=c --data c=c -o mm8.ini
cat >state.ini <<'END'
[network]
format = 1
outputs = y
[input a]
shape = 1 x 4 x 16
[state s]
shape = 1 x 4 x 16
next = sum
[weights w]
random = 3
[layer sum]
type = ElementWise
inputs = a, s
[layer y]
type = MatrixMultiply
units = 24
b = w
END
expect 2 'has \[state\]' 'states have no samples' $strata quantise state.ini --data a -o s.ini
expect 0 '^1 layer is int8' 'but weights' $strata quantise state.ini --weights-only -o s.ini
mkdir other
expect 0 '^prob +0 +1 +3 ' 'a network in another folder has all its files' sh -c \
    "$q $few -o other/n.ini >/dev/null && $strata run other/n.ini images/3-011.pgm --top 1"
finish
