#!/bin/sh
# TAP: what `make install` gives is enough to write, build and run a plugin: the header
# alone through pkg-config, the command, the built-in layers. Also links an application.
. "${srcdir:-.}/tests/installed.sh"

cp "$srcdir/examples/plugins/leaky_relu/leaky_relu.c" .
lines=$(wc -l <leaky_relu.c)
[ "$lines" -lt 30 ]
result $? "the example plugin has under 30 lines ($lines)"

$CC -shared -fPIC -fvisibility=hidden -Wl,-z,defs \
    $(pkg-config --cflags strata-plugin-1) leaky_relu.c -o leaky_relu.so >"$log" 2>&1
result $? 'it builds against the installed header alone'

cat >net.ini <<'INI'
[network]
format = 1
outputs = leaky
[input x]
shape = 1 x 1 x 2 x 2
[layer negate]
type = Scale
scale = -1
[layer leaky]
type = org.example::LeakyReLU
slope = 0.5
INI
printf 'P2\n2 2\n255\n0 2 4 6\n' >x.pgm
strata run net.ini x.pgm --plugin ./leaky_relu.so --top 4 -o csv >out 2>"$log"
result $? 'it runs in a pipeline of the installed command'
[ "$(cut -d, -f4,5 out | tr '\n' ' ')" = 'index,value 0,0 1,-1 2,-2 3,-3 ' ]
status=$?
cat out >>"$log"
result $status 'its values are right'

mkdir folder
cp leaky_relu.so folder
strata list --plugin-path "$scratch/folder" 2>"$log" | grep -q 'org.example::LeakyReLU@1'
result $? 'dropped into a folder, it is listed'

strata describe LeakyReLU --plugin-path "$scratch/folder" 2>"$log" | grep -q '^slope = 0.01'
result $? 'it is described with its defaults'

$CC ${SANITIZER_CFLAGS:-} "$srcdir/examples/digits/demo.c" \
    $(pkg-config --cflags --libs strata) -o demo >"$log" 2>&1 &&
    ./demo "$srcdir/examples/digits" >>"$log" 2>&1 && grep -q '356 of 359' "$log"
result $? 'an application links and runs with pkg-config strata'

$CC -shared -fPIC -DCONSTRUCTOR='*nowhere = 1' $(pkg-config --cflags strata-plugin-1) \
    "$srcdir/tests/broken/constructor.c" -o "$plugins/crashing.so" >"$log" 2>&1
result $? 'a plugin that ends its process is installed'
expect 2 'process of its own: constructor killed by SIGSEGV' \
    'the installed strata-trial bears it' strata describe LeakyReLU
[ -s "$scratch/strata/modules" ]
result $? 'what is good is recorded'

triton=$root$prefix/lib/strata/triton/strata/libtriton_strata.so
if [ -e "$builddir/serving/triton/libtriton_strata.la" ]; then
    [ -e "$triton" ] && [ "$(PKG_CONFIG_PATH="${pc%/*}" pkg-config --variable=tritondir strata)" \
        -ef "$root$prefix/lib/strata/triton" ]
    result $? 'pkg-config tells where the backend for Triton is'
    nm -D --defined-only "$triton" | grep -v ' TRITONBACKEND_' >"$log"
    [ ! -s "$log" ]
    result $? 'which exports what the server calls, and nothing else'
    readelf -d "$triton" >"$log"
    grep -q 'RUNPATH.*$ORIGIN/../../..' "$log" && grep -q 'NEEDED.*libstrata' "$log"
    result $? 'and finds its library from where it lies'
fi
finish
