#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: whatever `strata new-layer` is asked for, what it writes builds untouched by make,
# Autotools and CMake against nothing but an installed package, passes the checker by
# each, and is installed. STRATA_TEST_LONG: every combination of the options by each.
. "${srcdir:-.}/tests/installed.sh"

cuda=
[ -z "$NVCC" ] || cuda=--cuda
quick='-O1 -arch=sm_80 -Werror=all-warnings'

# The CUDA module is checked as far as there is a device.
check_cuda() { # check_cuda FILE.so BASE.so OPTION...
    module=$1 base=$2
    shift 2
    [ ! -e "$module" ] || strata check "$module" --plugin "$base" "$@"
}
by_make() { # each: by_SYSTEM FOLDER FILE INSTALLED
    $MAKE -C "$1" CC="$CC" CFLAGS="$strict" && $MAKE -C "$1" check || return 1
    case $arguments in
    *--cuda*) $MAKE -C "$1" cuda NVCC="$NVCC" NVCCFLAGS="$quick" || return 1 ;;
    esac
    check_cuda "$1/$2_cuda.so" "$1/$2.so" && $MAKE -C "$1" run && own_folder "$1" "$2" &&
        $MAKE -C "$1" clean
}
# Where a user may write who may not to the plugin folder, and where it is found.
own_folder() { # own_folder FOLDER FILE
    (export HOME="$scratch/home" XDG_DATA_HOME='' && mkdir -p "$HOME" &&
        $MAKE -C "$1" install-user &&
        strata list -o csv | grep -q ",$HOME/.local/lib/strata/plugins-1/$2.so" &&
        rm -r "$HOME")
}
by_autotools() {
    mkdir "$1/build" && (cd "$1" && autoreconf -i && cd build &&
        ../configure CC="$CC" CFLAGS="$strict" ${NVCC:+NVCC="$NVCC"} NVCCFLAGS="$quick" \
            --with-plugindir="$3" && $MAKE && $MAKE check && $MAKE install)
}
by_cmake() {
    PATH="$PATH:${NVCC%/*}" cmake -S "$1" -B "$1/cmake" -DCMAKE_C_COMPILER="${CC##* }" \
        -DCMAKE_C_FLAGS="$strict" -DSTRATA_PLUGIN_DIR="$3" &&
        cmake --build "$1/cmake" && ctest --test-dir "$1/cmake" --output-on-failure &&
        cmake --install "$1/cmake"
}
# Both modules are where they were to be installed, and are found there.
installed() { # installed FILE FOLDER LAYER
    [ -e "$2/$1.so" ] || return 1
    case $arguments in
    *--cuda*) [ -e "$2/$1_cuda.so" ] || return 1 ;;
    esac
    strata list --plugin-path "$2" -o csv | grep -q ",$2/$1.so"
}

# A formula as a first layer has one: with a function of libm, which has to be linked.
use_libm() { # use_libm FILE.c
    { echo '#include <math.h>'
        sed -e '/^static float element/,/^}/s/\* x;/* expm1f(x);/' \
            -e '/^static double element/,/^}/s/\* x;/* expm1(x);/' "$1"; } >"$1.new" &&
        mv "$1.new" "$1"
}

row() { # row NAME ARGUMENT...
    name=$1
    shift
    arguments="$*"
    file=$(echo "$name" | sed 's/\([a-z0-9]\)\([A-Z]\)/\1_\2/g' | tr '[:upper:]' '[:lower:]')
    for system in $systems; do
        claim="by $system: new-layer $name $*"
        tool=$system
        [ $system != autotools ] || tool=libtoolize
        if ! command -v $tool >/dev/null; then
            skip "$claim" "no $tool"
            continue
        fi
        folder=$scratch/$system-$file target=$scratch/plugins-$system-$file
        { strata new-layer "$name" "$@" -C "$folder" && use_libm "$folder/$file.c" &&
            by_$system "$folder" "$file" "$target" &&
            { [ $system = make ] || installed "$file" "$target"; }; } >"$log" 2>&1
        result $? "$claim"
        rm -rf "$folder" "$target"
    done
}

systems='make autotools cmake'
attr='--attr slope:real=0.01:0..1'
weight='--weight weight --weight bias:optional'
# shellcheck disable=SC2086
if [ -z "${STRATA_TEST_LONG:-}" ]; then
    row AllThere $attr $weight --in 3 --out 2 $cuda
    systems=make
    row FastConvolution --extends core::Convolution $cuda
else
    n=0
    for device in '' $cuda; do
        for attrs in '' "$attr"; do
            for weights in '' "$weight"; do
                for ports in '' '--in 3' '--out 2' '--in 3 --out 2'; do
                    n=$((n + 1))
                    row Layer$n $attrs $weights $ports $device
                done
            done
        done
    done
    row FastConvolution --extends core::Convolution
    [ -z "$cuda" ] || row FastConvolution --extends core::Convolution $cuda
fi
finish
