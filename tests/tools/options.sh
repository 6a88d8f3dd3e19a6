#!/bin/sh
# TAP: no option of the command is ignored without a word, no file is replaced that nobody
# meant, and what takes long is refused before it begins; words of messages that help.
. "${srcdir:-.}/tests/tap.sh"
cd "$scratch" || exit 99
cp "$srcdir/examples/digits/digits.ini" "$srcdir/examples/digits/digits.safetensors" .
image=$srcdir/examples/digits/images/3-011.pgm
$strata build digits.ini -o d.engine >log 2>&1

# ---- options that a command can only ignore ----
for option in --set=build.fusion=no --define=a=1 --costs=analytic --save-costs=c \
    --measure-all --device=host --plugin=x.so --plugin-path=/x --allow-untrusted-plugins; do
    expect 2 "${option%%=*} has no effect here" "inspect refuses ${option%%=*}" \
        $strata inspect d.engine $option
done
for c in 'list --set=a.b=c' 'list --device=host' 'doctor --costs=analytic' \
    'describe Softmax --define=a=1' 'describe Softmax --device=host' \
    'costs merge a b --output=c --set=a.b=c' 'new-layer X --set=a.b=c' \
    'new-layer X --format=csv' 'check x.so --set=a.b=c' 'completion bash --set=a.b=c' \
    'completion bash -o csv'; do
    expect 2 'has no effect here' "refused: $c" $strata $c
done
for wishes in '--dot=- --layers' '--dot=- --section=plan' '--section=plan -o json' \
    '--extract=new --fusions'; do
    expect 2 'stand alone' "inspect refuses $wishes" $strata inspect d.engine $wishes
done
expect 0 '^proved: ' 'explain --verify beside --reformats verifies' \
    $strata explain digits.ini --verify --reformats
expect 0 'no reformat is needed|without it|-> fp32' 'and shows reformats' \
    $strata explain digits.ini --verify --reformats
for wishes in '--impls=conv1 --reformats' '--impls=conv1 --verify' '--verify -o json' \
    '--svg=- --tensors' '--svg=- --dot=-' '--dot=- -o csv' '--save-plan=- --verify'; do
    expect 2 '^Usage: strata explain' "explain refuses $wishes" \
        $strata explain digits.ini $wishes
done
expect 2 'takes no other report' 'explain --diff refuses reports' \
    $strata explain --diff d.engine d.engine --reformats
expect 2 '--impls needs what was not chosen' 'an engine has no impls that lost' \
    $strata explain d.engine --impls conv1

# ---- drawings ----
expect 0 'predicted' 'explain --dot FILE prints its table as well' \
    $strata explain digits.ini --dot d.dot
expect 0 '^digraph "digits" \{' 'and writes the file' head -n 1 d.dot
expect 0 '^digraph' 'inspect --dot - prints a drawing' $strata inspect d.engine --dot -
expect 2 'would be replaced, but the network is made of it' 'explain --dot keeps a network' \
    $strata explain digits.ini --dot digits.ini
expect 2 'd.engine: is the engine' 'inspect --dot keeps the engine' \
    $strata inspect d.engine --dot d.engine

expect 2 "^strata: error: --streams '257': a number from 1 to 256" 'streams are as many at most' \
    $strata bench digits.ini --streams 1,257 --duration 0 --iterations 1

# ---- files that cannot be written are told before a plan is made ----
printf 'strata-costs 1\ndevice host\n' >none.costs
for c in 'build digits.ini -o none/d.engine' 'explain digits.ini --save-plan=none/d.plan' \
    'profile digits.ini --html none/d.html' 'run digits.ini --input random:1 --output none/p.npy'; do
    expect 2 "cannot write in folder 'none'" "first: $c" $strata $c --costs=none.costs
done
expect 2 "input 'image' is not given; add --input" 'first: an input that is missing' \
    $strata run digits.ini --costs=none.costs
expect 2 'not a regular file' 'nor is a folder written over' \
    $strata build digits.ini -o . --costs=none.costs

# ---- "-" ----
for c in 'build digits.ini -o -' 'bench digits.ini --times=- --duration 0 --iterations 1' \
    'profile digits.ini --runs 1 --html -' 'profile digits.ini --runs 1 --trace=-' \
    'costs merge a b --output=-' 'explain digits.ini --costs measure --save-costs -'; do
    expect 2 "^strata: error: -: this is not written to standard output" "refused: $c" \
        $strata $c
done
$strata run digits.ini "$image" --output - >out.npy 2>log &&
    $strata run digits.ini "$image" --output o.npy 2>>log && cmp out.npy o.npy >>log
result $? 'run --output - writes .npy on standard output'
expect 2 '-: would be written twice' 'but one alone' $strata run digits.ini "$image" \
    --set network.outputs=prob,relu1 --output prob=- --output relu1=-
expect 0 '^none$' 'no file is called -' sh -c 'test -e ./- || echo none'

# ---- files that stay ----
printf 'mine\n' >kept.npy && chmod 444 kept.npy
expect 2 'kept.npy: is write-protected' 'a write-protected file is not replaced' \
    $strata run digits.ini "$image" --output kept.npy
expect 0 '^mine$' 'and stays' cat kept.npy
expect 2 'digits.ini: exists; name a new file, or append with >>digits.ini' \
    'describe -o keeps a network' $strata describe Softmax -o digits.ini
expect 0 '^\[layer softmax1\]' 'describe -o - prints' $strata describe Softmax -o -
expect 0 '^$' 'build -q prints nothing' sh -c "echo && $strata build digits.ini -o q.engine -q"

# ---- costs ----
# 20 MiB of queries are not measured: the error comes first, and no line of progress.
for place in /nonexistent/c.costs kept.npy . digits.ini/c; do
    expect 2 "$place: (cannot write|is write-protected|exists and is not)|^strata: error: .*$place" \
        "--save-costs=$place is refused" $strata explain digits.ini --costs measure \
        --measure-all --save-costs "$place" -v
    expect 1 '^ *0$' 'before anything is measured' sh -c "grep -c measur '$log'"
done

# ---- exit codes and words ----
expect 2 'the seed is above 18446744073709551615' 'a seed that does not fit is refused' \
    $strata run digits.ini random:18446744073709551616
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import hashlib
d = bytearray(open("d.engine", "rb").read())
d[12:14] = b"\x63\0"
d[124:128] = hashlib.sha256(d[:124]).digest()[:4]
open("later.engine", "wb").write(d)'
    for c in run inspect 'diff d.engine'; do
        expect 2 'later.engine: engine format 99' "${c% *} of a later format is no device" \
            $strata $c later.engine
    done
fi
printf '{"plan": 1}' >short.plan
expect 2 '^strata: error: short.plan: no saved plan: ' 'a plan that is none is named' \
    $strata diff d.engine short.plan
$strata explain digits.ini --save-plan good.plan >log 2>&1
sed '0,/"cost": [0-9]*/s//"cost": -9223372036854775808/' good.plan >least.plan
expect 2 "least.plan: no saved plan: 'cost' " 'a cost of -2^63 is refused' \
    $strata diff good.plan least.plan
sed 's/"shape"/"shqpe"/' good.plan >shapeless.plan
expect 0 'make the same decisions' 'a plan without shapes is compared' \
    $strata diff good.plan shapeless.plan
sed 's/"impl": "[a-z_0-9]*"/"impl": 7/' good.plan >odd.plan
expect 2 "odd.plan: no saved plan: 'impl' of entry 0" 'a plan of the wrong kinds is refused' \
    $strata diff odd.plan good.plan
relabels() { sed -n 's/.*, \([0-9]* re-labels, [0-9]* layers that run nothing\);.*/\1/p'; }
for net in digits slices; do
    printf '[network]\nformat = 1\noutputs = c\n[input x]\nshape = 1 x 4 x 8 x 8\n%s\n' \
        '[layer s]
type = Slice
begin = 0, 0, 0, 0
end = 1, 2, 8, 8
inputs = x
[layer r]
type = Activation
kind = relu
[layer c]
type = Concatenation
axis = 1
inputs = r, r' >slices.ini
    [ "$($strata build $net.ini -o n.engine 2>log | relabels)" = \
        "$($strata inspect n.engine 2>>log | relabels)" ]
    result $? "build and inspect count the re-labels of $net alike"
done
$strata inspect d.engine >out 2>&1
grep -q '^device host .*threads' out && ! grep -q 'compute capability' out
result $? 'the host has no compute capability'
expect 1 'FAILED: [0-9]+ of [0-9]+ are beyond the tolerance of 1e-07; all pass with --tolerance' \
    'compare says what was asked, and what would pass' \
    $strata compare digits.ini --precisions fp32,fp16 --tolerance 1e-7
tolerance=$(sed -n 's/.*all pass with --tolerance=//p' "$scratch/out")
expect 0 '^ok: ' "and $tolerance does" \
    $strata compare digits.ini --precisions fp32,fp16 --tolerance "$tolerance"

# ---- messages about networks ----
expect 2 "did you mean 'layer conv1', as in --set 'layer conv1.KEY=VALUE'" \
    '--set of a layer without "layer" suggests it' \
    $strata run digits.ini "$image" --set conv1.pad=0
for name in net.onnx NET.ONNX; do
    head -c 300 "$strata" >$name
    expect 2 "$name: byte 0x0: " "$name is read as a model" $strata run $name
done
head -c 300 "$strata" >net.pb
expect 2 'net.pb: is a protobuf model .*by its name; a network is an INI file' \
    'net.pb is recognised' $strata run net.pb
cat >unequal.ini <<'INI'
[network]
format = 1
outputs = y
[input a]
shape = 1 x 3 x 8 x 8
[input b]
shape = 1 x 3 x 4 x 4
[layer y]
type = ElementWise
op = sum
inputs = a, b
INI
expect 2 '^unequal.ini:11:10: error: layer y: .*; it reads a \(1x3x8x8\), b \(1x3x4x4\)$' \
    'tensors that do not fit are named with their shapes' $strata run unequal.ini
expect 0 '^             \^~~~$' 'with a caret' sed -n 3p "$log"
# w (2 x 3) as 3 x 2.
printf '%b%-117s\n' '\0223NUMPY\001\000\0166\000' \
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }" >w.npy
head -c 24 /dev/zero >>w.npy
cat >dense.ini <<'INI'
[network]
format = 1
outputs = y
[input x]
shape = 1 x 3
[weights w]
file = w.npy
[layer y]
type = FullyConnected
units = 2
weight = w
INI
expect 2 "dims 3x2; .* needs 2x3; write 'transposed = yes'" \
    'transposed weights are recognised' $strata run dense.ini random:1
expect 0 '^y ' 'and the advice is right' $strata run dense.ini random:1 \
    --set 'layer y.transposed=yes'
expect 2 "has no impl 'wgmma_64x64'.*CUDA|impl wgmma_64x64 is one for cuda, and this is host" \
    'an impl for CUDA is told as such' $strata run digits.ini "$image" --device host \
    --set 'layer conv1.impl=wgmma_64x64'
sed 's/\.device = STRATA_HOST, \.name = "c"/.device = STRATA_CUDA, .name = "gpu"/' \
    "$srcdir/examples/plugins/leaky_relu/leaky_relu.c" >gpu.c
$CC -shared -fPIC -I"$srcdir/include" -I"$builddir/include" gpu.c -o gpu.so 2>log
printf '[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 3\n[layer y]\n%s\n' \
    'type = LeakyReLU
impl = gpu' >gpu.ini
expect 2 'impl gpu is one for cuda, and this is host: run with --device=cuda' \
    'also where its module is here' $strata run gpu.ini random:1 --plugin ./gpu.so
awk 'BEGIN { print "[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1"
    for (i = 0; i < 60; i++) { name = "a"; while (length(name) < 200) name = name i
        print "[layer " name "]\ntype = Activation\nkind = rel" name } }' >long.ini
$strata run long.ini >out 2>&1
[ "$(grep -c ': error: ' out)" -eq "$(grep -c '^ *^~*$' out)" ] &&
    tail -n 1 out | grep -qE '^and [0-9]+ more$'
result $? 'a list of errors ends with a whole one, and how many are left out'

# ---- completion ----
for shell in bash zsh fish; do
    $strata completion $shell >script.$shell 2>log
    missing=
    for c in run build inspect diff bench profile compare explain costs list describe \
        new-layer check doctor completion; do
        grep -q "$c" script.$shell || missing="$missing $c"
    done
    for o in reformats save-costs plugin-path tolerance rejected; do
        grep -qE -e "(--|-l )$o" script.$shell || missing="$missing --$o"
    done
    echo "missing:$missing" >log
    [ -z "$missing" ]
    result $? "completion $shell knows commands and options"
    if command -v $shell >/dev/null 2>&1; then
        $shell -n script.$shell 2>log
        result $? "and is $shell"
    else
        skip "and is $shell" "no $shell here"
    fi
done
expect 2 'bash, zsh or fish' 'completion names its shells' $strata completion tcsh
if command -v bash >/dev/null 2>&1; then
    expect 0 '^Softmax$' 'bash completes layers of list' env PATH="$builddir:$PATH" bash -c \
        ". ./script.bash; COMP_WORDS=(strata list Softm) COMP_CWORD=2; _strata
         echo \"\${COMPREPLY[@]}\""
fi
finish
