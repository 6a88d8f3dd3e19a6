#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: ONNX models as a user imports them: sizes, constants, the cache, what is never
# written over.
. "${srcdir:-.}/tests/tap.sh"

# IR 8, opset 17, one Op of x and the weight w = {1, 2}, x being "batch" x 3, y a sequence.
{
    printf '\010\010\022\005maker\032\0012B\002\020\021:H\022\001g\012\015\012\001x\012\001w\022\001y"\002Op*\021B\001w\010\002\020\001\045\000\000'
    printf '\200?\045\000\000\000@Z\030\012\001x\022\023\012\021\010\001\022\015\012\007\022\005batch\012\002\010\003b\007\012\001y\022\002"\000'
} >"$scratch/m.onnx"
expect 2 'no layer for it' 'import refuses an unknown operator' \
    $strata import "$scratch/m.onnx" -o "$scratch/m.ini"
expect 2 'no layer for it' 'import with a report says what stopped it' \
    $strata import "$scratch/m.onnx" -o "$scratch/m.ini" --report "$scratch/m.json"
expect 0 '^Unknown,Op,none,' 'import --operators lists those of a model' \
    $strata import "$scratch/m.onnx" --operators -o csv
[ "$(wc -l <"$scratch/out")" = 2 ]
result $? 'and no others'
expect 2 'stands alone' 'and does nothing else' \
    $strata import "$scratch/m.onnx" --operators --keep-going
# y = Exp x, of "batch" x "T"; x and y of a data set, 2 x 3 zeros and ones.
printf '\010\010\022\000:\060\012\013\012\001x\022\001y"\003Exp\022\001gZ\031\012\001x\022\024\012\022\010\001\022\016\012\007\022\005batch\012\003\022\001Tb\003\012\001yB\004\012\000\020\021' \
    >"$scratch/free.onnx"
expect 0 '^Element by element,Exp,Unary,' 'and what one with a layer becomes' \
    $strata import "$scratch/free.onnx" --operators -o csv
mkdir "$scratch/set"
for kind in input output; do
    printf '\010\002\010\003\020\001\112\030' >"$scratch/set/${kind}_0.pb"
done
head -c 24 /dev/zero >>"$scratch/set/input_0.pb"
printf '\000\000\200?%.0s' 1 2 3 4 5 6 >>"$scratch/set/output_0.pb"
$strata import "$scratch/free.onnx" -o "$scratch/free.ini" --dim batch=1,4 \
    --dim T=2..9:4 >"$log" 2>&1
result $? 'import takes ranges of dims'
expect 0 '^T = 2\.\.9: 4, 9$' 'and writes them' cat "$scratch/free.ini"
expect 0 '^y  *1  *1  *[0-6] ' 'and runs at a size of them' \
    $strata run "$scratch/free.ini" random:1 --dim T=7 --dim batch=2
expect 0 'set: 6 values, 0 wrong' 'import --check has the sizes of its files' \
    $strata import "$scratch/free.onnx" --check "$scratch/set" --dim batch=1,4
$strata import "$scratch/free.onnx" -o "$scratch/free.ini" --dim batch=1,4 \
    --dim T=2..10/4:6 >"$log" 2>&1
result $? 'import takes ranges by steps'
expect 0 '^T = 2\.\.10/4: 6, 10$' 'and writes them' cat "$scratch/free.ini"
expect 2 'T = 7 is none of 2, 6, ... of \[profile\], by steps of 4' 'and a run has no other' \
    $strata run "$scratch/free.ini" random:1 --dim T=7 --dim batch=2
for sizes in 9..2 1.. ..4 1..4:9 1..4,8 1..4: 2..9/2 1..4/0 2..8/2:3 2..8/; do
    expect 2 "'T=$sizes' is not NAME=N, NAME=N,N,... or NAME=N..N:N" \
        "import refuses --dim T=$sizes" \
        $strata import "$scratch/free.onnx" -o "$scratch/free.ini" --dim "T=$sizes"
done
for sizes in '--shapes x:2x7' '--shapes x:1x7 --batch 2' '--batch 2 --dim T=7'; do
    expect 0 '"2 x 7",2,' "bench $sizes has the sizes of free dims" \
        env XDG_CACHE_HOME="$scratch/c" $strata bench "$scratch/free.onnx" $sizes --duration 0 --iterations 1 --warmup 0 -o csv
done
expect 2 "shapes x:2: input 'x' is batch x T: 2 numbers are needed, not 1" 'and tells how many there are' \
    env XDG_CACHE_HOME="$scratch/c" $strata bench "$scratch/free.onnx" --shapes x:2
expect 2 "dim 0 of 'x' is 3 by the names' sizes, not 2" 'two sizes of a name are refused' \
    env XDG_CACHE_HOME="$scratch/c" $strata bench "$scratch/free.onnx" \
    --shapes x:2x7,x:3x7
expect 0 '"profile": "T",' 'the report has the sizes' \
    $strata import "$scratch/free.onnx" --report -

# ---- a model's data beside it ----
# Add of an initializer whose value is in w.bin, as the wire has it.
cat >"$scratch/model.py" <<'PY'
def field(number, value):
    if isinstance(value, int):
        return bytes([number << 3, value])
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(value)]) + value
def tensor(name):
    shape = field(2, field(1, field(1, 2)))
    return field(1, name) + field(2, field(1, field(1, 1) + shape))
entry = field(1, "location") + field(2, "w.bin")
weight = field(1, 2) + field(2, 1) + field(8, "w") + field(13, entry) + field(14, 1)
node = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "Add")
graph = field(1, node) + field(2, "g") + field(5, weight) + field(11, tensor("x")) + \
    field(12, tensor("y"))
open("m.onnx", "wb").write(field(1, 8) + field(7, graph) + field(8, field(2, 17)))
def truth(name):
    shape = field(2, field(1, field(1, 1)))
    return field(1, name) + field(2, field(1, field(1, 9) + shape))
node = field(1, "c") + field(1, "x") + field(1, "z") + field(2, "y") + field(4, "Where")
graph = field(1, node) + field(2, "g") + field(11, truth("c")) + field(11, tensor("x")) + \
    field(11, tensor("z")) + field(12, tensor("y"))
open("c.onnx", "wb").write(field(1, 8) + field(7, graph) + field(8, field(2, 17)))
axis = field(1, "w") + field(2, field(1, field(1, 6) + field(2, "")))
node = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "CumSum")
graph = field(1, node) + field(2, "g") + field(11, tensor("x")) + field(11, axis) + \
    field(12, tensor("y"))
open("n.onnx", "wb").write(field(1, 8) + field(7, graph) + field(8, field(2, 17)))
nodes = b"".join(field(1, field(1, x) + field(2, y) + field(4, "Exp"))
                 for x, y in (("größe", "/1"), ("größe", "höhe"), ("kept", "kept.1")))
graph = nodes + field(2, "g") + field(11, tensor("größe")) + field(11, tensor("kept")) + \
    field(12, tensor("/1")) + field(12, tensor("höhe")) + field(12, tensor("kept.1"))
open("names.onnx", "wb").write(field(1, 8) + bytes([0x3a, len(graph) % 128 + 128, 1]) +
                               graph + field(8, field(2, 17)))
PY
(cd "$scratch" && python3 model.py && printf '\0\0\200\077\0\0\0\100' >w.bin &&
    printf '\223NUMPY\001\000\166\000%-117s\n\0\0\0\0\0\0\0\0' \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" >x.npy)
for i in 1 2; do
    expect 0 '^y,0,1,1,2,' "a model is imported to the cache ($i)" env XDG_CACHE_HOME="$scratch/c" \
        $strata run "$scratch/m.onnx" "$scratch/x.npy" --top 1 -o csv
done
expect 0 "alone: input 'größe' is 'gr____e', output '/1' is 'n1', output 'höhe' is 'h__he' there" \
    'names that are not kept are told' \
    $strata import "$scratch/names.onnx" -o "$scratch/names.ini"
expect 0 '^outputs = n1, h__he, kept.1$' 'and are those of the network' \
    cat "$scratch/names.ini"
expect 1 '^0$' 'names that are kept are not' sh -c "
    $strata import '$scratch/n.onnx' -o '$scratch/n.ini' --constant w=0 2>&1 | grep -c warning"
for truth in true false; do
    $strata import "$scratch/c.onnx" -o "$scratch/c.ini" --constant c=$truth >"$log" 2>&1
    result $? "a condition is said to be $truth"
    grep -q '^\[input c\]' "$scratch/c.ini"
    [ $? = 1 ]
    result $? 'and is no input'
done
$strata import "$scratch/n.onnx" -o "$scratch/n.ini" --constant w=0 >"$log" 2>&1
result $? 'a number is said to be a scalar, INT32 as the model has it'
expect 0 '^type = CumSum$' 'and is no input' cat "$scratch/n.ini"
expect 2 'n.onnx: --constant w: it has 1 dims; the input has 0' 'a list is no scalar' \
    $strata import "$scratch/n.onnx" -o "$scratch/n.ini" --constant w=0,1
expect 2 '--constant w: it has elements of type int64; the input has int32' \
    'nor is a number that is too large' \
    $strata import "$scratch/n.onnx" -o "$scratch/n.ini" --constant w=3000000000
expect 2 '--constant c: it has elements of type int64; the input has bool' \
    'nor is a number a condition' \
    $strata import "$scratch/c.onnx" -o "$scratch/c.ini" --constant c=1
$strata import "$scratch/c.onnx" -o "$scratch/c.ini" --constant z=0.5,-2 --constant x=3,4 >"$log" 2>&1
result $? 'numbers are said to be floats, integers too'
expect 0 '^\[input c\]$' 'and are no inputs' sh -c "grep '^.input' '$scratch/c.ini'"
expect 2 '--constant z: it has elements of type int64; the input has float' \
    'but integers that no float is' \
    $strata import "$scratch/c.onnx" -o "$scratch/c.ini" --constant z=16777217,1
expect 2 "it is the model's input 'w': give --constant w=FILE, or a number" \
    'what is not said is asked for' $strata import "$scratch/n.onnx" -o "$scratch/n.ini"
expect 2 'maybe: .*No such file' 'other words are names of files' \
    $strata import "$scratch/c.onnx" -o "$scratch/c.ini" --constant c=maybe
expect 2 "c.onnx: --constant d: the model has no input of that name; it has 'c', 'x', 'z'" \
    'a constant that is no input is told of' \
    $strata import "$scratch/c.onnx" -o "$scratch/c.ini" --constant d=true
expect 2 "c.onnx: --shape d: the model has no input of that name" \
    'and so is a shape' $strata import "$scratch/c.onnx" -o "$scratch/c.ini" --shape d=1x2
expect 0 "c.onnx: --dim d: no input has a free dim of that name" \
    'a dim that no input has is told of' \
    $strata import "$scratch/c.onnx" -o "$scratch/c.ini" --constant c=true --dim d=2
cp "$scratch"/c/strata/import/m-*.files "$scratch/list"
expect 0 '^y,0,1,1,2,' 'by whatever path it is named' env XDG_CACHE_HOME="$scratch/c" \
    sh -c "cd '$scratch' && $strata run m.onnx x.npy --top 1 -o csv"
cmp "$scratch"/c/strata/import/m-*.files "$scratch/list" >"$log" 2>&1
result $? 'it is imported once'
for list in "$scratch"/c/strata/import/m-*.files; do
    rm "$list" && mkdir "$list" && touch "$list/in-the-way"
done
expect 0 'm.onnx: will be imported anew the next time, too: ' \
    'and a cache that cannot be written fails no run' env XDG_CACHE_HOME="$scratch/c" \
    $strata run "$scratch/m.onnx" "$scratch/x.npy" --top 1 -o csv
rm -r "$list"
expect 2 "m.onnx: is imported to $scratch/w.bin/c, which cannot be made: Not a directory; set XDG_CACHE_HOME" \
    'why there is no cache is told' env XDG_CACHE_HOME="$scratch/w.bin/c" \
    $strata run "$scratch/m.onnx" "$scratch/x.npy"
printf '\0\0\100\100\0\0\0\100' >"$scratch/w.bin"
expect 0 '^y,0,1,0,3,' 'and anew where its data have changed' env XDG_CACHE_HOME="$scratch/c" \
    $strata run "$scratch/m.onnx" "$scratch/x.npy" --top 1 -o csv
cp "$scratch/m.onnx" "$scratch/kept.onnx"
cp "$scratch/w.bin" "$scratch/kept.bin"
for c in 'import m.onnx -o m.onnx' 'import m.onnx -o w.bin' 'import m.onnx --report m.onnx' \
    'import m.onnx --report ./w.bin' 'import m.onnx -o own.ini --report w.bin' \
    'build m.onnx -o m.onnx' 'explain m.onnx --svg m.onnx' 'run m.onnx x.npy --output ./m.onnx'; do
    expect 2 'would be replaced, but' "a model is kept: $c" \
        env XDG_CACHE_HOME="$scratch/c" sh -c "cd '$scratch' && $strata $c"
done
cmp "$scratch/m.onnx" "$scratch/kept.onnx" >"$log" 2>&1 &&
    cmp "$scratch/w.bin" "$scratch/kept.bin" >>"$log" 2>&1
result $? 'as it was, with its data'
expect 2 'the weights are written there' 'nor is a network written over its own weights' \
    $strata import "$scratch/m.onnx" -o "$scratch/m.safetensors"
for report in own.ini own.safetensors; do
    expect 2 'the network is written there; name another' "nor by its report: $report" \
        $strata import "$scratch/m.onnx" -o "$scratch/own.ini" --report "$scratch/$report"
done
rm "$scratch/w.bin"
expect 2 'w.bin: cannot be opened' 'or are gone' env XDG_CACHE_HOME="$scratch/c" \
    $strata run "$scratch/m.onnx" "$scratch/x.npy" --top 1 -o csv
finish
