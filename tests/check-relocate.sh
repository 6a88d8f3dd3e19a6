#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: an installed tree works from its stage (DESTDIR) and after it was moved, by itself:
# no environment, no path of where it was configured for. Pages and examples come with it.
. "${srcdir:-.}/tests/tap.sh"
scratch=$(cd "$scratch" && pwd -P)
unset STRATA_TRIAL STRATA_PLUGIN_DIR STRATA_PLUGIN_PATH STRATA_DEVICE_PATH LD_LIBRARY_PATH \
    PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR ACLOCAL_PATH MAKEFLAGS MFLAGS MAKELEVEL
export HOME="$scratch/home" XDG_DATA_HOME=
prefix=$(sed -n 's/^prefix = //p' "$builddir/Makefile")
stage=$scratch/stage moved=$scratch/moved
cd "$scratch" || exit 99

(cd "$builddir" && $MAKE install DESTDIR="$stage") >"$log" 2>&1
result $? 'make install takes DESTDIR'
[ $failed -eq 0 ] || finish
folder_of() { # folder_of TREE NAME: the folder of an installed file
    file=$(find "$1" -path "*/$2" ! -type d | head -n 1)
    echo "${file%/*}"
}

# works HOW TREE COMMAND: the command finds the tree's plugins, and a network runs.
works() {
    plugins=$(folder_of "$2" plugins-1/convolution.so)
    digits=$(folder_of "$2" digits/digits.ini)
    expect 0 "plugin folder +$plugins\$" "$1: doctor names its plugins' folder" \
        "$3" doctor
    expect 0 "device folder +${plugins%plugins-1}devices-1" "$1: and its devices'" \
        "$3" doctor
    expect 0 '^core::Convolution@1 ' "$1: list shows its layers" "$3" list
    expect 0 '^prob +0 +1 +3 ' "$1: run gives a digit" \
        "$3" run "$digits/digits.ini" "$digits/images/3-011.pgm"
}
works 'in its stage' "$stage" "$(folder_of "$stage" bin/strata)/strata"
mv "$stage$prefix" "$moved"
bin=$(folder_of "$moved" bin/strata) lib=$(folder_of "$moved" libstrata.so)
works 'after a move' "$moved" "$bin/strata"
"$bin/strata" doctor >"$log" 2>&1 && ! grep -F -e "$stage" -e "$prefix/" "$log"
result $? 'nothing is sought where it was configured for'
mkdir links
ln -s "$bin/strata" links/strata
works 'by a symbolic link' "$moved" links/strata
: >strata && chmod 755 strata # of the name that the command is called by
expect 0 "plugin folder +$plugins\$" 'by PATH: doctor names the same folder' \
    env PATH="$bin:$PATH" strata doctor

# ---- pkg-config ---------------------------------------------------------------------------
PKG_CONFIG_PATH=$(folder_of "$moved" strata.pc)
export PKG_CONFIG_PATH
value() { # value MODULE VARIABLE: a folder, without symbolic links and ..
    (cd "$(pkg-config --variable="$2" "$1")" && pwd -P)
}
{ value strata libdir && value strata plugindir && value strata-plugin-1 plugindir &&
    value strata-plugin-1 includedir && value strata-plugin-1 aclocaldir; } >got 2>"$log"
headers=$(folder_of "$moved" strata/plugin.h)
printf '%s\n' "$lib" "$plugins" "$plugins" "${headers%/strata}" \
    "$(folder_of "$moved" strata-plugin.m4)" | diff - got >>"$log"
result $? "pkg-config's folders are the moved ones"
pkg-config --cflags strata-plugin-1 >flags
PKG_CONFIG_SYSROOT_DIR=$moved pkg-config --cflags strata-plugin-1 | diff flags - >"$log"
result $? 'its flags are the same with a tree that is called a sysroot'
pkg-config --cflags --libs strata >flags

docs=$(folder_of "$moved" NEWS)
# shellcheck disable=SC2046,SC2086
$CC ${SANITIZER_CFLAGS:-} "$docs/examples/minimal.c" -o minimal \
    -Wl,-rpath,"$(pkg-config --variable=libdir strata)" $(cat flags) >"$log" 2>&1
result $? 'they compile an application'
{ printf 'P5 8 8 255\n' && head -c 64 /dev/zero; } >input
expect 0 ' %$' 'it runs, and has the plugins beside libstrata' \
    ./minimal "$docs/examples/digits/digits.ini" input
ln -s "$lib/libstrata.so.0" links
# shellcheck disable=SC2046,SC2086
$CC ${SANITIZER_CFLAGS:-} "$docs/examples/minimal.c" -o plain $(cat flags) >"$log" 2>&1
expect 0 ' %$' 'with a symbolic link to libstrata it runs' \
    env LD_LIBRARY_PATH="$scratch/links" ./plain "$docs/examples/digits/digits.ini" input
expect 0 ' %$' 'with a relative LD_LIBRARY_PATH it runs' \
    env LD_LIBRARY_PATH=links ./plain "$docs/examples/digits/digits.ini" input

cp -R "$docs/examples/plugins/leaky_relu" . &&
    $MAKE -C leaky_relu install CC="$CC" >"$log" 2>&1 && [ -e "$plugins/leaky_relu.so" ]
result $? 'an example plugin builds from the installed copy, and goes to the moved folder'
expect 0 '^org.example::LeakyReLU@1' 'it is listed' "$bin/strata" list

claim='STRATA_PLUGIN of the moved m4 file names the moved folder'
if command -v autoconf >/dev/null; then
    mkdir configured
    printf 'AC_INIT([x], [1])\nSTRATA_PLUGIN\nAC_MSG_NOTICE([in $plugindir])\n' \
        >configured/configure.ac
    (cd configured && ACLOCAL_PATH=$(pkg-config --variable=aclocaldir strata-plugin-1) &&
        export ACLOCAL_PATH && aclocal && autoconf && ./configure) >"$log" 2>&1 &&
        grep -qx "configure: in $plugins" "$log"
    result $? "$claim"
else
    skip "$claim" 'no autoconf'
fi

# ---- pages and examples -------------------------------------------------------------------
: >"$log"
(cd "$srcdir" && ls README.md NEWS LICENSE docs/*.md docs/*.png examples/*.c \
    examples/*/*.ini examples/plugins/*/*.c) | while read -r file; do
    cmp "$srcdir/$file" "$docs/$file" >>"$log" 2>&1
done
[ ! -s "$log" ]
result $? 'pages and examples are installed'
# Links into the sources alone are left out.
(cd "$docs" && find . -name '*.md') | while read -r page; do
    grep -oE '\]\([^)#]+' "$docs/$page" | sed 's/^](//' | grep -v : | while read -r link; do
        file=${page%/*}/$link
        case $(cd "$srcdir" && realpath -m --relative-to=. "$file") in
        docs/* | examples/* | [A-Z]*) [ -e "$docs/$file" ] || echo "$page: $link" ;;
        esac
    done
done >"$log"
[ ! -s "$log" ]
result $? 'their links hold'

(cd "$builddir" && $MAKE install DESTDIR="$scratch/gone" &&
    $MAKE uninstall DESTDIR="$scratch/gone") >"$log" 2>&1 &&
    find "gone$prefix" '(' ! -type d -o -name strata ')' >left && ! grep . left >>"$log"
result $? 'make uninstall leaves nothing'

# ---- who may not, and what is told --------------------------------------------------------
claim='a privileged program keeps to the configured folder'
cp "$bin/strata" "$bin/privileged" && cp "$(command -v id)" "$bin/id" && chmod 711 "$scratch"
chmod 4755 "$bin/privileged" "$bin/id"
as_nobody="setpriv --reuid=65534 --clear-groups"
if [ "$($as_nobody "$bin/id" -u 2>/dev/null)" = 0 ]; then
    $as_nobody "$bin/privileged" doctor >"$log" 2>&1
    grep -q "plugin folder *$prefix/" "$log" && ! grep "plugin folder *$moved" "$log"
    result $? "$claim"
else
    skip "$claim" 'no set-user-ID program can be made'
fi
rm -f "$bin/privileged" "$bin/id"

mkdir -p "${plugins%plugins-1}devices-1"
device=${plugins%plugins-1}devices-1/strata-cuda.so
rm -f "$device"
expect 0 "neither in STRATA_DEVICE_PATH \(not set\) nor in ${device%/*}; install" \
    'a device module that is missing is told with the folder' "$bin/strata" doctor
echo text >"$device"
expect 0 "cannot load $device" 'one beside the plugins is taken' "$bin/strata" doctor
chmod go+w "$device"
expect 0 "not trusted: '$device'" 'if others could not have written it' \
    "$bin/strata" doctor
chmod go+w "$plugins/softmax.so"
expect 0 "softmax.so.*not trusted" 'nor may they have written a plugin' \
    "$bin/strata" list --rejected
mv "$plugins" away
expect 2 "$plugins \(does not exist\)" 'a tree without plugins names where they should be' \
    "$bin/strata" describe Convolution
grep -q "^ *$prefix/.*plugins-1" "$log"
result $? 'and the configured folder, where they were sought too'
finish
