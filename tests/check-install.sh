#!/bin/sh
# TAP: what `make install` gives is enough to write, build and run a plugin: the header
# alone through pkg-config, the command, the built-in layers. Also links an application.
. "${srcdir:-.}/tests/tap.sh"

root=$scratch/root
(cd "$builddir" && $MAKE install DESTDIR="$root") >"$log" 2>&1
result $? 'make install takes DESTDIR'

pc=$(find "$root" -name strata-plugin-1.pc)
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$root"
prefix=$(pkg-config --variable=prefix strata-plugin-1)
strata=$root$prefix/bin/strata
libdir=$root$(pkg-config --variable=libdir strata)
plugins=$root$(pkg-config --variable=plugindir strata-plugin-1)
# The sysroot is prepended by newer pkg-config versions already.
[ -d "$plugins" ] || plugins=$(pkg-config --variable=plugindir strata-plugin-1)
[ -d "$libdir" ] || libdir=$(pkg-config --variable=libdir strata)
[ -x "$strata" ] || strata=$(pkg-config --variable=prefix strata-plugin-1)/bin/strata
export STRATA_PLUGIN_DIR="$plugins" LD_LIBRARY_PATH="$libdir:${LD_LIBRARY_PATH:-}"
unset STRATA_PLUGIN_PATH

lines=$(wc -l <"$srcdir/examples/plugins/leaky_relu/leaky_relu.c")
[ "$lines" -lt 30 ]
result $? "the example plugin has under 30 lines ($lines)"

cp "$srcdir/examples/plugins/leaky_relu/leaky_relu.c" "$scratch/"
(cd "$scratch" &&
    $CC -shared -fPIC -fvisibility=hidden -Wl,-z,defs \
        $(pkg-config --cflags strata-plugin-1) leaky_relu.c -o leaky_relu.so) >"$log" 2>&1
result $? 'it builds against the installed header alone'

cat >"$scratch/net.ini" <<'INI'
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
printf 'P2\n2 2\n255\n0 2 4 6\n' >"$scratch/x.pgm"
"$strata" run "$scratch/net.ini" "$scratch/x.pgm" --plugin "$scratch/leaky_relu.so" \
    --top 4 -o csv >"$scratch/out" 2>"$log"
result $? 'it runs in a pipeline of the installed command'
[ "$(cut -d, -f4,5 "$scratch/out" | tr '\n' ' ')" = 'index,value 0,0 1,-1 2,-2 3,-3 ' ]
status=$?
cat "$scratch/out" >>"$log"
result $status 'its values are right'

mkdir "$scratch/folder"
cp "$scratch/leaky_relu.so" "$scratch/folder/"
"$strata" list --plugin-path "$scratch/folder" 2>"$log" | grep -q 'org.example::LeakyReLU@1'
result $? 'dropped into a folder, it is listed'

"$strata" describe LeakyReLU --plugin-path "$scratch/folder" 2>"$log" | grep -q '^slope = 0.01'
result $? 'it is described with its defaults'

(cd "$scratch" && $CC ${SANITIZER_CFLAGS:-} "$srcdir/examples/digits/demo.c" \
    $(pkg-config --cflags --libs strata) -o demo && ./demo \
    "$srcdir/examples/digits") >"$log" 2>&1 && grep -q '356 of 359' "$log"
result $? 'an application links and runs with pkg-config strata'
finish
