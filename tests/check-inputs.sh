#!/bin/sh
# TAP: what goes into a network and what comes out of it, in the commands that run one:
# inputs are kept apart, no file is written over that was read, odd values and names show.
. "${srcdir:-.}/tests/tap.sh"
cd "$scratch" || exit 99

cat >two.ini <<'INI'
[network]
format = 1
outputs = d, s
[vars]
shape = 2 x 2 x 2
[input a]
shape = ${shape}
[input b]
shape = ${shape}
[layer d]
type = ElementWise
op = sub
inputs = a, b
[layer s]
type = Softmax
INI
zeros() { head -c 32 /dev/zero >"$1"; }
zeros a && zeros b

# Equal random inputs would make a difference of 0, in which every mistake is lost.
expect 0 'd,c,fp32[^"]*,c,fp16[^"]*,0\.' 'random inputs of one network differ' \
    $strata compare two.ini --precisions fp32,fp16 -o csv
sed '/^\[input a\]/,/^shape/d; s/^\[layer d\]/[input a]\nshape = ${shape}\n&/' two.ini \
    >turned.ini
expect 0 'alike, value for value' 'and are the same in any order of the inputs' \
    $strata compare two.ini turned.ini
for c in 'profile --runs 1' 'bench --duration 0 --iterations 1 --warmup 0'; do
    expect 2 'nosuch: cannot be opened' "${c%% *} reads each input that is given" \
        $strata $c two.ini --input b=nosuch --input a=a
done

kept() { # kept FILE COMMAND...: the input is refused as a file to write, and stays
    file=$1
    shift
    expect 2 "$file: would be replaced, but it is an input; name another file" \
        "$1 keeps input $file: $*" $strata "$@"
    zeros zero && expect 0 'same' "$file is as it was" \
        sh -c "cmp zero '$file' && echo same"
}
kept a run two.ini a=a --output d=a b=b
kept a run two.ini a=a --output d=./a b=b
kept b profile two.ini --input b=b --html ./b
kept b profile two.ini --input b=b --trace b
kept a bench two.ini --input a=a --times a
zeros d.b.npy
kept d.b.npy compare two.ini --input a=d.b.npy --precisions fp32,fp16 --dump d

expect 2 'o.npy: would be written twice; name a file for each' \
    'two outputs in one file are refused' \
    $strata run two.ini a=a b=b --output d=o.npy --output s=o.npy
expect 0 none 'and nothing is written' sh -c 'test -e o.npy || echo none'

# 0 1 NaN 2 | -0 inf 0 0
printf '\0\0\0\0\0\0\200\077\0\0\300\177\0\0\0\100\0\0\0\200\0\0\200\177\0\0\0\0\0\0\0\0' \
    >odd
expect 0 'd,0,1,2,-?nan,.d,0,2,3,2,.d,0,3,1,1,.d,1,1,1,inf,' 'NaN ranks above numbers' \
    sh -c "$strata run two.ini a=odd b=b --top 3 -o csv | tr '\n' '.'"

# A maximum may take a number rather than the NaN, so that no output shows it.
printf '%b%-117s\n' '\0223NUMPY\001\000\0166\000' \
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" >w.npy
printf '\0\0\200\077\0\0\300\377' >>w.npy
printf '[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 2\n%s\n' \
    '[weights w]
file = w.npy
[layer y]
type = Scale
scale = w' >nan.ini
expect 0 "warning: nan.ini: weight 'y.scale': element 1 of its tensor '' is NaN" \
    'a NaN among the weights is told' $strata run nan.ini random:1

# A name that no INI value can hold, or that is no UTF-8.
for name in 'a ;b' '"q"' "$(printf 'x\ny')" "$(printf 'esc\033')" "$(printf 'bad\377')"; do
    cp two.ini "$name.ini"
    shown=$(printf '%s' "$name" | LC_ALL=C tr -c 'a-z' '?')
    $strata build "$name.ini" -o n.engine >log 2>&1
    expect 0 '^d ' "an engine of $shown.ini runs" $strata run n.engine a=a b=b
    expect 0 '"path": ' "explain -o json of $shown.ini is JSON" sh -c \
        '"$0" explain "$1" -o json | python3 -c "import json, sys
print(json.dumps(json.load(sys.stdin)))"' "$strata" "$name.ini"
    rm -f n.engine
done
printf 'caf\351\n' >labels.txt
expect 0 'caf\\ufffd' 'a label that is no UTF-8 leaves JSON valid' sh -c \
    '"$0" run two.ini a=a b=b --top 1 -o json --set network.labels=labels.txt |
        python3 -c "import json, sys; print(json.dumps(json.load(sys.stdin)))"' "$strata"

sed 's/^\[vars\]/[profile]/; s/^shape = 2 .*/N = 1, 2/; s/\${shape}/N x 2 x 2/' two.ini \
    >sizes.ini
expect 0 '"1 x 2 x 2",1,' 'bench --batch chooses among sizes of [profile]' \
    $strata bench sizes.ini --batch 1,2 --duration 0 --iterations 1 --warmup 0 -o csv
for range in 'N = 0..4: 1, 4' 'T = 1..3'; do
    shape='N x 2 x 2'
    [ "${range%% *}" = T ] && shape='1 x T x 2'
    printf '[network]\nformat = 1\noutputs = y\n[profile]\n%s\n[input x]\nshape = %s
[layer y]\ntype = Softmax\n' "$range" "$shape" >range.ini
    expect 0 '"3 x [23] x 2",3,' "bench --batch leaves $range as it is" $strata bench \
        range.ini --batch 3 --duration 0 --iterations 1 --warmup 0 -o csv
done
for option in times exportProfile saveEngine; do
    expect 2 'f.out: one file, but 2 cases; write one case at a time' \
        "bench --$option takes one case" $strata bench sizes.ini --batch 1,2 \
        --duration 0 --iterations 1 --warmup 0 "--$option=f.out"
done

# Names of [profile] with several sizes: those of the files, or of --dim.
sed 's/N = 1, 2/N = 1..4: 2/' sizes.ini >range.ini
floats() { # floats FILE SHAPE COUNT
    printf '%b%-117s\n' '\0223NUMPY\001\000\0166\000' \
        "{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }" >"$1"
    head -c $((4 * $3)) /dev/zero >>"$1"
}
floats three.npy '3, 2, 2' 12
floats five.npy '5, 2, 2' 20
floats odd.npy '3, 2, 3' 18
expect 0 '^d  *2  *' 'run takes a size from a file' \
    $strata run range.ini a=three.npy b=three.npy --top 1
expect 2 'five.npy: N = 5 is outside of 1..4 of \[profile\]' \
    'run refuses a size outside of the range' $strata run range.ini a=five.npy b=five.npy
expect 2 "odd.npy: shape .3 x 2 x 3., but input 'a' is .3 x 2 x 2." \
    'run refuses a dim that is fixed' $strata run range.ini a=odd.npy b=three.npy
expect 2 "three.npy: shape .3 x 2 x 2., but input 'a' is .2 x 2 x 2." \
    '--dim wins over files' $strata run range.ini a=three.npy b=three.npy --dim N=2
expect 2 "no dimension 'M'; there are: N; .* by --set profile.M=2" \
    'a name that is none is refused' \
    $strata run range.ini a=random:1 b=random:1 --dim M=2
expect 2 "but input 'a' is .2 x 2 x 2.; .*; --set profile.N=3 makes it" \
    'another batch than a single size tells how to have it' \
    $strata run range.ini a=three.npy b=three.npy --set profile.N=2
expect 2 'dim N: write NAME=SIZE' '--dim needs a size' \
    $strata run range.ini a=random:1 b=random:1 --dim N
expect 0 '"3 x 2 x 2",3,' 'bench --dim runs a size between' $strata bench range.ini \
    --dim N=3 --duration 0 --iterations 1 --warmup 0 -o csv
expect 0 'ElementWise' 'profile --dim too' $strata profile range.ini --dim N=3 --runs 1
expect 0 '^4,its own,' 'explain --sizes says what they take' \
    $strata explain range.ini --sizes -o csv
$strata build range.ini -o range.engine >log 2>&1
expect 0 '^4  *[0-9.]*  *[0-9]' 'inspect too' $strata inspect range.engine
expect 0 '^d  *2  *' 'and an engine file runs them' \
    $strata run range.engine a=three.npy b=three.npy --top 1

finish
