#!/bin/sh
# TAP: values keep their type from file to file through `strata run` and `strata compare`;
# what is lost on the way is told; names with '/' are names.
. "${srcdir:-.}/tests/tap.sh"
cd "$scratch" || exit 99

cat >npy.py <<'PY'
"""npy.py FILE TYPE VALUE...: write 1 x n values; npy.py FILE: print type and values."""
import ast, struct, sys
path, rest = sys.argv[1], sys.argv[2:]
if rest:
    kind = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "b1": "B"}[rest[0]]
    values = [float(v) if kind in "fd" else int(v) for v in rest[1:]]
    head = "{'descr': '<%s', 'fortran_order': False, 'shape': (1, %d), }" % (
        rest[0], len(values))
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head.ljust(117).encode() + b"\n")
        f.write(struct.pack("<%d%s" % (len(values), kind), *values))
else:
    data = open(path, "rb").read()
    size = struct.unpack("<H", data[8:10])[0]
    kind = ast.literal_eval(data[10:10 + size].decode())["descr"]
    code = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B", "|i1": "b",
            "|b1": "B"}[kind]
    body = data[10 + size:]
    print(kind, *struct.unpack("<%d%s" % (len(body) // struct.calcsize(code), code), body))
PY
npy() { python3 npy.py "$@"; }

network() { # network FILE DTYPE INPUT OUTPUT
    printf '[network]\nformat = 1\noutputs = %s\n[input %s]\nshape = 1 x 4\ndtype = %s\n' \
        "$4" "$3" "$2" >"$1"
    printf '[layer a]\ntype = Identity\n[layer %s]\ntype = Identity\n' "$4" >>"$1"
}

network i.ini i32 x y
npy i.npy i4 16777217 -16777217 2147483647 5
expect 0 '<i4 16777217 -16777217 2147483647 5' 'i32 values stay i32 from .npy to .npy' \
    sh -c "$strata run i.ini i.npy --output y=o.npy && python3 npy.py o.npy"
expect 0 'y,0,2,0,16777217,' 'and are shown whole' $strata run i.ini i.npy -o csv
mkdir dump
expect 0 '<i4 16777217 -16777217' 'and dumped by compare as they are' sh -c \
    "$strata compare i.ini i.ini --input i.npy --dump y --folder dump >/dev/null &&
    python3 npy.py dump/y.a.npy"
cat >any.ini <<'INI'
[network]
format = 1
outputs = y
[profile]
T = 1..8: 4, 8
[input x]
shape = 2 x T
[layer s]
type = Softmax
[layer y]
type = Unary
op = exp
INI
shapes() { # shapes FILE...: of .npy files
    python3 -c 'import re, sys
for path in sys.argv[1:]:
    print(re.search(rb"\([0-9, ]*\)", open(path, "rb").read(128)).group().decode())' "$@"
}
for t in 3 4 8; do
    $strata compare any.ini any.ini --with build.fusion=no --dim T=$t --dump y \
        --folder dump >"$log" 2>&1
    expect 0 "^\\(2, $t\\)$" "compare --dim T=$t is of that size" shapes dump/y.b.npy
done
cp dump/y.a.npy eight.npy
$strata run any.ini --input x=random:1 --dim T=5 --output y=five.npy >"$log" 2>&1
$strata compare any.ini any.ini --input five.npy --dump y --folder dump >"$log" 2>&1
expect 0 '^\(2, 5\)$' 'without, of the size of its files' shapes dump/y.a.npy
expect 2 'eight.npy.*2 x 8.*2 x 3|2 x 3.*2 x 8' 'which must be the one that is said' \
    $strata compare any.ini any.ini --input eight.npy --dim T=3
expect 2 'dimension .S.*there are: T' 'a name that is none is refused' \
    $strata compare any.ini any.ini --dim S=3
network u.ini u8 x y
npy whole.npy f4 0 255 7 1
expect 0 '[|]u1 0 255 7 1' 'u8 values stay u8' \
    sh -c "$strata run u.ini whole.npy --output y=o.npy && python3 npy.py o.npy"
network f.ini fp16 x y
expect 0 '<f4 0.0 255.0 7.0 1.0' 'floats become FP32' \
    sh -c "$strata run f.ini whole.npy --output y=o.npy && python3 npy.py o.npy"

network long.ini i64 x y
npy q.npy i8 9007199254740993 -9223372036854775808 9223372036854775807 5
expect 0 '<i8 9007199254740993 -9223372036854775808 9223372036854775807 5' \
    'i64 values keep all bits from .npy to .npy' \
    sh -c "$strata run long.ini q.npy --output y=o.npy && python3 npy.py o.npy"
expect 0 'y,0,1,2,9223372036854775807,.*y,0,2,0,9007199254740993,' 'and are shown whole' \
    sh -c "$strata run long.ini q.npy -o csv | tr '\n' ' '"
network bool.ini bool x y
npy b.npy b1 1 0 0 7
expect 0 '[|]b1 1 0 0 1' 'bool values are 0 or 1' \
    sh -c "$strata run bool.ini b.npy --output y=o.npy && python3 npy.py o.npy"
npy truth.npy f4 0 -2 0.5 1
expect 0 "input 'x' is bool, 0 to 1: 2 become 1" 'what is neither 0 nor 1 is told' \
    $strata run bool.ini truth.npy
expect 0 'y,0,1,[0-9],1,.*y,0,[24],[0-9],0,' 'random truth values are of both kinds' \
    sh -c "$strata run bool.ini random:1 -o csv | tr '\n' ' '"
network double.ini fp64 x y
npy d.npy f8 0.1 1e300 -1e-300 3
expect 0 '<f8 0.1 1e[+]300 -1e-300 3.0' 'fp64 values stay fp64' \
    sh -c "$strata run double.ini d.npy --output y=o.npy && python3 npy.py o.npy"
npy narrow.npy f4 1.00390625 448 -0.001953125 3
for dtype in bf16 e4m3 e5m2; do
    network $dtype.ini $dtype x y
    case $dtype in
    bf16) wanted='<f4 1.0 448.0 -0.001953125 3.0' ;;
    e4m3) wanted='<f4 1.0 448.0 -0.001953125 3.0' ;;
    e5m2) wanted='<f4 1.0 448.0 -0.001953125 3.0' ;;
    esac
    expect 0 "$wanted" "$dtype values round to nearest even, and are written as FP32" sh -c \
        "$strata run $dtype.ini narrow.npy --output y=o.npy && python3 npy.py o.npy"
done
expect 2 "input 'x' is i64: truth values or indices, which an image has not" \
    'an image is refused where indices are needed' sh -c \
    "printf 'P2 2 2 255 1 2 3 4' >i.pgm && sed 's/1 x 4/1 x 1 x 2 x 2/' long.ini >im.ini &&
    $strata run im.ini i.pgm"

# Two orders of the same values: integers that a double cannot tell apart differ.
turned() { # turned FILE ORDER
    printf '[network]\nformat = 1\noutputs = y\n[vars]\nD = i64\n[input x]\n%s\n' \
        'shape = 1 x 4
dtype = ${D}' >"$1"
    printf '[layer y]\ntype = Shuffle\nshape = 1, 2, 2\nsecond = %s\n' "$2" >>"$1"
}
turned a.ini '0, 1, 2'
turned b.ini '0, 2, 1'
npy near.npy i8 9007199254740992 9007199254740993 9007199254740993 9007199254740993
npy next.npy i8 9007199254740992 9007199254740993 9007199254740992 9007199254740993
expect 0 'ok: alike, value for value' 'equal i64 values are alike' \
    $strata compare a.ini b.ini -D D=i64 --input near.npy
expect 1 'y .* 1 .*9007199254740993 *9007199254740992 .*FAILED' \
    'i64 values that differ in the last bit are not' sh -c \
    "$strata compare a.ini b.ini -D D=i64 --input next.npy | tr '\n' ' '; exit 1"
expect 1 'FAILED: 1 of 1 are beyond the tolerance of 0; all pass with' \
    'and are held to all their bits' \
    $strata compare a.ini b.ini -D D=i64 --input next.npy
npy close.npy f4 100 101 102 103
expect 1 'beyond the tolerance of 0.0001; all' 'FP32 is held to 1e-4' \
    $strata compare a.ini b.ini -D D=fp32 --input close.npy
expect 0 'ok: all are within the tolerance of 0.1; all pass' 'BF16 to 0.1' \
    $strata compare a.ini b.ini -D D=bf16 --set build.precision=bf16 \
    --set network.output_formats=bf16:bmn --input close.npy
npy kinds.npy b1 1 0 1 1
expect 1 'beyond the tolerance of 0; all pass' 'truth values are held to both of theirs' \
    $strata compare a.ini b.ini -D D=bool --input kinds.npy

# What does not fit.
expect 0 'no warning' 'values that fit are not told' \
    sh -c "$strata run u.ini whole.npy 2>&1 | grep warning || echo no warning"
npy odd.npy f8 -3 300 0.5 nan
expect 0 "odd.npy: 4 values from -3 to 300; input 'x' is u8, 0 to 255: 2 become the near" \
    'values clamped into u8 are told' $strata run u.ini odd.npy
expect 0 '1 are rounded to whole numbers, 1 are NaN and become 0' \
    'and those that are rounded, or no numbers' $strata run u.ini odd.npy
npy long.npy i8 5000000000 -5000000000 2147483647 -2147483648
expect 0 "input 'x' is i32, -2147483648 to 2147483647: 2 become the nearest" \
    'values clamped into i32 are told' $strata run i.ini long.npy
npy large.npy f4 1e5 -65504 0 1
expect 0 "input 'x' is fp16, -65504 to 65504: 1 become infinite" \
    'values beyond FP16 are told' $strata run f.ini large.npy

# Outputs that are no numbers.
cat >half.ini <<'INI'
[network]
format = 1
outputs = twice, nought
[vars]
precision = fp16
[build]
precision = ${precision}
[input x]
shape = 1 x 4
[layer twice]
type = ElementWise
op = sum
inputs = x, x
format = ${precision}:nchw
[layer nought]
type = ElementWise
op = sub
inputs = twice, twice
format = ${precision}:nchw
INI
npy x.npy f4 1 60000 60000 2
expect 0 "'twice': 0 of 4 values are NaN, 2 infinite, the first at index 1; FP16 ends at 65" \
    'infinities of FP16 are told' $strata run half.ini x.npy
expect 0 "'nought': 2 of 4 values are NaN, 0 infinite, the first at index 1; FP16 ends at 65" \
    'and what becomes of them' $strata run half.ini x.npy --output nought=o.npy
expect 0 'no warning' 'FP32 has neither' \
    sh -c "$strata run half.ini x.npy -D precision=fp32 2>&1 | grep 'warning: output' ||
        echo no warning"
npy infinite.npy f4 inf 0 0 2
expect 0 "'nought': 1 of 4 values are NaN, 0 infinite, the first at index 0; see whether an" \
    'a NaN of FP32 is told too' $strata run half.ini infinite.npy -D precision=fp32

# A grey picture, and an input of three channels.
printf '[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 3 x 2 x 2\n%s' \
    '[layer y]
type = Activation
' >rgb.ini
echo 'P2 2 2 255 1 2 3 4' >grey.pgm
echo 'P3 2 2 255 1 2 3 4 5 6 7 8 9 10 11 12' >colour.ppm
expect 0 "warning: grey.pgm: is grey; input 'x' gets it three times" \
    'a grey picture for three channels is told' $strata run rgb.ini grey.pgm
expect 0 'no warning' 'one of colours is not' \
    sh -c "$strata run rgb.ini colour.ppm 2>&1 | grep warning || echo no warning"

# The filter of images, in a network and in its engine; the values are Pillow's.
sed 's/3 x 2 x 2$/1 x 1 x 2/' rgb.ini >line.ini
echo 'P2 6 1 255 90 0 0 0 255 0' >line.pgm
expect 0 'y,0,1,1,255,.*y,0,2,0,0,' 'pixels between are left out by default' \
    sh -c "$strata run line.ini line.pgm -o csv | tr '\n' ' '"
expect 0 'y,0,1,1,95.625,.*y,0,2,0,22.5,' 'and weighed with antialias = yes' sh -c \
    "$strata run line.ini line.pgm --set 'input x.antialias=yes' -o csv | tr '\n' ' '"
expect 0 'y,0,1,1,95.625,.*y,0,2,0,22.5,' 'in an engine, too' sh -c \
    "$strata build line.ini --set 'input x.antialias=yes' -o line.engine >/dev/null &&
    $strata run line.engine line.pgm -o csv | tr '\n' ' '"

# Names with '/', and files with '='.
network names.ini i32 gpu_0/data gpu_0/prob
mkdir gpu_0
expect 0 '<i4 16777217' "names with '/' are names" sh -c "$strata run names.ini \
    gpu_0/data=i.npy --output gpu_0/prob=o.npy && python3 npy.py o.npy"
cp i.npy 'gpu_0/a=b.npy'
expect 0 '<i4 16777217' "what is no name may have a '=' behind a '/'" sh -c \
    "$strata run names.ini gpu_0/a=b.npy --output ./o=p.npy && python3 npy.py o=p.npy"
expect 0 '<i4 16777217' "and a name's file may have one" sh -c "$strata run names.ini \
    gpu_0/data=gpu_0/a=b.npy --output gpu_0/prob=gpu_0/c=d.npy && python3 npy.py gpu_0/c=d.npy"
expect 2 'i.npy: would be replaced, but it is an input' 'an input is not written over' \
    $strata run names.ini gpu_0/data=i.npy --output gpu_0/prob=i.npy
expect 2 'o.npy: would be written twice' 'nor one output over another' $strata run \
    names.ini gpu_0/data=i.npy --output gpu_0/prob=o.npy --output o.npy
expect 2 "'gpu_0=i.npy': write NAME=FILE, where NAME is one of: gpu_0/data" \
    'what is nearly a name is not one' $strata run names.ini gpu_0=i.npy
$strata run names.ini gpu_0/data=i.npy --output - 2>"$log" | cmp - o.npy >>"$log" 2>&1
result $? 'values go to standard output as they go to a file'

finish
