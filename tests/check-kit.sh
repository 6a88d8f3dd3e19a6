#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: a plugin author's way with nothing but an installed package, out of this tree: the
# commands of README.md and docs/ do what they are said to, what new-layer writes builds,
# runs and passes the checker, and so do examples/plugins. Of the built-in layers a quarter
# is extended, of each the frame is the same text: STRATA_TEST_LONG: all of them.
#   tests/check-kit.sh --update    after a change: write docs/first-plugin.md anew
. "${srcdir:-.}/tests/installed.sh"

# ---- from nothing to a pipeline ----------------------------------------------------------
strata new-layer LeakyReLU --attr slope:real=0.01:0..1 >"$log" 2>&1
result $? 'new-layer writes a folder'
$MAKE -C leaky_relu CC="$CC" CFLAGS="$strict" >"$log" 2>&1
result $? 'it builds untouched, without a warning'
printf 'P2\n2 2\n255\n0 2 4 6\n' >x.pgm
strata run leaky_relu/leaky_relu.ini x.pgm --set 'input x.shape=1 x 1 x 2 x 2' \
    --set 'input x.std=-1' --set 'layer y.slope=0.5' --top 4 -o csv >out 2>"$log"
[ "$(cut -d, -f4,5 out | tr '\n' ' ')" = 'index,value 0,-0 1,-1 2,-2 3,-3 ' ]
status=$?
cat out >>"$log"
result $status 'it runs in a network, and its values are right'
claim='it passes the checker untouched'
if strata check --help >/dev/null 2>&1; then
    $MAKE -C leaky_relu check >"$log" 2>&1
    result $? "$claim"
else
    skip "$claim" 'no strata check in this build'
fi
(umask 002 && strata new-layer Shared && $MAKE -C shared CC="$CC" && $MAKE -C shared run) \
    >"$log" 2>&1
result $? 'a umask that lets the group write does no harm'
cp leaky_relu/leaky_relu.c before.c
strata new-layer LeakyReLU >"$log" 2>&1
[ $? -eq 2 ] && grep -q 'would overwrite leaky_relu/leaky_relu.c .*--force' "$log" &&
    cmp -s before.c leaky_relu/leaky_relu.c
result $? 'files that exist are named and stay'
strata new-layer LeakyReLU --force >"$log" 2>&1 && ! cmp -s before.c leaky_relu/leaky_relu.c
result $? '--force replaces them'

# ---- the page that shows it ---------------------------------------------------------------
page=$srcdir/docs/first-plugin.md
plain() { # without what differs from run to run
    sed -E 's/[0-9]+ runs in [0-9.]+ s/N runs/; s/seed [0-9]+//; s/build [0-9a-f]{12}//' "$1"
}
mkdir session
(cd session && unset CC CFLAGS LDFLAGS && "$srcdir/scripts/transcript.sh" "$page") |
    sed "s#$root$prefix#/usr/local#g" >now.md
if [ "${1:-}" = --update ]; then
    cp now.md "$page"
    exit
fi
plain now.md >now
plain "$page" | diff - now >"$log"
result $? 'docs/first-plugin.md shows what happens'

# ---- commands of the pages ---------------------------------------------------------------
# The indented block that has a line beginning with TEXT; comments are cut.
block() { # block PAGE TEXT
    awk -v text="    $2" '
        /^    / { n++; if (index($0, text) == 1) found = 1; kept = kept substr($0, 5) "\n"
            next }
        { if (found) exit; kept = ""; n = 0 }
        END { if (found) printf "%s", kept; exit !found }' "$1" | sed 's/  *# .*//'
}
# One command of a block, with the lines that continue it.
command_of() { # command_of PAGE TEXT
    block "$1" "$2" | awk -v text="$2" '
        index($0, text) == 1 { on = 1 } on { print; if (!/\\$/) exit }'
}
block "$srcdir/README.md" 'strata new-layer LeakyReLU' >six 2>"$log"
status=$?
cat six >>"$log"
[ $status -eq 0 ] && [ "$(wc -l <six)" -le 6 ]
result $? 'README.md leads from nothing to a pipeline in at most six commands'
mkdir six.d
(cd six.d && unset CC CFLAGS LDFLAGS && PATH="$root$prefix/bin:$PATH" sh -ex ../six) \
    >"$log" 2>&1 && [ -e "$plugins/leaky_relu.so" ] &&
    grep -qE '^y +0 +1 ' "$log" && grep -q '^10 passed, 0 failed' "$log"
result $? 'they work, one after the other, in an empty folder'
sed -n 's/^\$ //p' "$page" | grep -v '^strata describe' | diff - six >"$log"
result $? 'docs/first-plugin.md shows those commands'

# The same with a build tree in the place of the package.
mkdir -p tree seventh && ln -s "$(cd "$builddir" && pwd)" tree/_build
command_of "$srcdir/README.md" 'export PATH=$PWD/_build' >exports
(cd tree && unset CC CFLAGS LDFLAGS &&
    . ../exports && cd ../seventh && grep -v 'make install' ../six >seven && sh -ex seven) \
    >"$log" 2>&1 && grep -qE '^y +0 +1 ' "$log" &&
    grep -q PKG_CONFIG_PATH exports
result $? 'without installing, a build tree serves as well'

mkdir lines
cp "$srcdir/examples/plugins/leaky_relu/leaky_relu.c" \
    "$srcdir/examples/plugins/gaussian_cuda/gaussian.cu" lines
awk '/^```cuda$/ { on = 1; next } /^```/ { on = 0 } on' "$srcdir/docs/writing-a-plugin.md" \
    >lines/inverse_cuda.cu
cat >lines/net.ini <<'INI'
[network]
format = 1
outputs = y
[input x]
shape = 2 x 3
[layer y]
type = org.example::LeakyReLU
INI
printf '[network]\nformat = 1\noutputs = x\n[input a]\nshape = 2 x 3\n[layer x]\ntype = %s\n' \
    Identity >lines/identity.ini
strata run lines/identity.ini --input random:1 --output x=lines/x.npy >"$log" 2>&1
rm -f "$plugins/leaky_relu.so"
for page_of in README.md docs/writing-a-plugin.md; do
    rm -f lines/*.so
    grep -e '^    strata run .*--plugin ./leaky_relu.so' "$srcdir/$page_of" >lines/run.sh &&
        (cd lines && command_of "$srcdir/$page_of" 'cc -shared' >cc.sh && sh -ex ./cc.sh &&
            sh -ex ./run.sh) >"$log" 2>&1
    result $? "the compiler's line in $page_of makes a plugin that runs"
    claim="nvcc's line in $page_of makes one"
    if [ -n "$NVCC" ]; then
        (cd lines && rm -f leaky_relu.so &&
            command_of "$srcdir/$page_of" 'nvcc -shared' >nvcc.sh &&
            PATH="$PATH:${NVCC%/*}" sh -ex ./nvcc.sh &&
            strata list --modules --plugin "./$(ls -- *.so)" | grep -e gaussian -e inverse) \
            >"$log" 2>&1
        result $? "$claim"
    else
        skip "$claim" 'no nvcc'
    fi
done

# ---- whatever is asked for ---------------------------------------------------------------
variant() { # variant FOLDER ARGUMENT...
    folder=$1
    shift
    strata new-layer "$@" -C "$folder" && $MAKE -C "$folder" CC="$CC" CFLAGS="$strict" &&
        $MAKE -C "$folder" run
}
{
    variant v1 Plain &&
    variant v2 Several --in 3 --out 2 &&
    variant v3 Weights --weight weight --weight bias:optional --weight more &&
    variant v4 Attributes --attr mode:enum=exact:'fast|exact' --attr n:int=3:1..9 \
        --attr on:bool=yes --attr title:string='a: b' --attr kernel:ints=3x3:1..31 \
        --attr alphas:reals=0.5,-0.25:-1..1 --attr low:real:2..3 --attr high:int:-5..-2 &&
    variant v5 All --in 2 --out 2 --attr slope:real=0.25 --weight w0 --namespace my.own-1 \
        --cuda &&
    variant v6 FastConvolution --extends core::Convolution --cuda
} >"$log" 2>&1
result $? 'ports, attributes and weights of every kind build and run'
if strata check --help >/dev/null 2>&1; then
    (for v in v2 v3 v4 v5 v6; do
        $MAKE -C $v check || exit 1
    done) >"$log" 2>&1
    result $? 'they pass the checker too'
fi
# QuantizedPointwise is the planner's alone: no header has its parameters.
layers=$(strata list -o csv | sed -n 's/^core::\([A-Za-z]*\)@.*/\1/p' | sort -u |
    grep -vx QuantizedPointwise |
    awk -v every="${STRATA_TEST_LONG:+1}" 'every || NR % 4 == 1 || $0 == "Convolution"')
(
    [ -n "$layers" ] || exit 1
    for layer in $layers; do
        strata new-layer "My$layer" --extends "core::$layer" -C "e$layer" &&
            $MAKE -C "e$layer" CC="$CC" CFLAGS="$strict" && $MAKE -C "e$layer" run || exit 1
    done
) >"$log" 2>&1
result $? 'built-in layers can be extended: the frame builds, and its network runs'
(
    [ -n "$layers" ] || exit 1
    for layer in $layers; do
        set -- "e$layer"/*.so # the checker has to find no case: it need not look long
        strata check --quick "$1" >check.out 2>&1
        status=$?
        cat check.out
        [ "$layer" = Convolution ] && [ $status -eq 0 ] && continue
        [ $status -ne 0 ] && [ "$(grep -c '^FAILED' check.out)" -eq 1 ] &&
            grep -q 'untested: ' check.out || exit 1
    done
) >"$log" 2>&1
result $? 'of a frame the checker says that nothing could be tried, and no more'

# refuse PATTERN ARGUMENT...: exit code 2, a message, nothing written.
refuse() {
    pattern=$1
    shift
    strata new-layer "$@" -C refused >"$scratch/message" 2>&1
    code=$?
    [ $code -eq 2 ] && grep -qE -e "$pattern" "$scratch/message" && [ ! -e refused ] &&
        return 0
    { echo "exit code $code, needed '$pattern': new-layer $*"; cat "$scratch/message"; } \
        >>"$log"
    bad=1
}
: >"$log"
bad=0
refuse "one layer name is needed"
refuse "'leakyRelu': a capital" leakyRelu
refuse "'My-Layer': a capital" My-Layer
refuse "'../X': a capital" ../X
refuse "has 80 letters" "$(printf 'A%079d' 0)"
refuse "namespace 'core'" X --namespace core
refuse "namespace 'A b'" X --namespace 'A b'
refuse "has no type.*slope:real=0.01:0..1" X --attr slope
refuse "type 'rael' is not known.*did you mean 'real'" X --attr slope:rael
refuse "'Slope' must be a small letter" X --attr Slope:real
refuse "'default' has a meaning" X --attr default:int
refuse "'inputs' has a meaning" X --attr inputs:int
refuse "'a' is given twice" X --attr a:int --attr a:real
refuse "'a' is given twice" X --attr a:int --weight a
refuse "default 'x': a number" X --attr a:real=x
refuse "default '1.5': a whole number" X --attr a:int=1.5
refuse "default 'inf': a number" X --attr a:real=inf
refuse "default '2': it is outside" X --attr a:real=2:0..1
refuse "range '1': the minimum" X --attr a:real=1:1..0
refuse "range '1': write MIN..MAX" X --attr a:real=1:1
refuse "range '0..1': only numbers" X --attr a:bool=no:0..1
refuse "choices '': write" X --attr a:enum
refuse "choices 'a[|][|]b'" X --attr 'a:enum:a||b'
refuse "default 'c': it is none" X --attr 'a:enum=c:a|b'
refuse "default '3y3': write whole" X --attr a:ints=3y3
refuse "an element is outside" X --attr a:ints=3x9:1..5
refuse "default 'a\"b': quotes" X --attr 'a:string=a"b'
refuse "yes or no" X --attr a:bool=1
refuse "'x' has a meaning" X --weight x
refuse "write NAME, or NAME:optional" X --weight a:needed
refuse "in '0': a number from 1" X --in 0
refuse "out '2x': a number from 1" X --out 2x
refuse "Convolution" X --extends core::Convolutoin
refuse "leave out --attr" X --extends core::Convolution --attr a:int
[ $bad -eq 0 ]
result $? 'what cannot be is refused with what could'

# ---- examples/plugins -------------------------------------------------------------------
limit() { # limit FILE LINES
    [ "$(wc -l <"$srcdir/examples/plugins/$1")" -lt "$2" ] || echo "$1 is too long"
}
{ limit leaky_relu/leaky_relu.c 30 && limit gaussian_cuda/gaussian.cu 60; } >"$log"
[ ! -s "$log" ]
result $? 'the CPU example has under 30 lines, the CUDA one under 60'
for folder in "$srcdir"/examples/plugins/*/; do
    name=$(basename "$folder")
    [ -e "$folder/Makefile" ] || continue
    claim="the example $name builds and passes the checker"
    cp -R "$folder" "example-$name"
    if [ -e "$folder"/*.cu ] && [ -z "$NVCC" ]; then
        skip "$claim" 'no nvcc'
    else
        goals=check # CUDA ones are checked as far as there is a device
        strata check --help >/dev/null 2>&1 || goals=
        $MAKE -C "example-$name" ${NVCC:+NVCC="$NVCC"} >"$log" 2>&1 &&
            $MAKE -C "example-$name" $goals >>"$log" 2>&1
        result $? "$claim"
    fi
done

# ---- other ways to build -----------------------------------------------------------------
claim='configure keeps off the plain Makefile'
if command -v autoreconf >/dev/null && command -v libtoolize >/dev/null; then
    (strata new-layer Built && cd built && timeout 120 autoreconf -i) >"$log" 2>&1
    (cd built && ./configure CC="$CC") >>"$log" 2>&1
    [ $? -ne 0 ] && grep -q 'build in a folder of its own' "$log"
    result $? "$claim"
else
    skip "$claim" 'no Autotools'
fi
finish
