#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: an impl of somebody else's for a built-in layer, dropped into a folder, is timed
# against the built-in ones and used where it wins, and only there; explain says why.
. "${srcdir:-.}/tests/tap.sh"
unset STRATA_PLUGIN_PATH MAKEFLAGS MFLAGS MAKELEVEL

# A depthwise layer on planes of one element: its impl reads one vector for all channels,
# general ones walk windows that hang over the border. 1001 channels fit no block.
cat >"$scratch/net.ini" <<'INI'
[network]
format = 1
outputs = y
output_formats = fp32:nhwc
[input x]
shape = 32 x 1001 x 1 x 1
format = fp32:nhwc
[weights w]
random = 1
[layer y]
type = Convolution
filters = 1001
groups = 1001
kernel = 3
pad = 1
weights = w:conv
[runtime]
threads = 1
INI
cp -R "$srcdir/examples/plugins/depthwise" "$scratch/source"
mkdir "$scratch/folder"
explain() { # explain NAME OPTION...: into NAME.csv
    name=$1
    shift
    "$strata" explain "$scratch/net.ini" --impls y -o csv "$@" >"$scratch/$name.csv" \
        2>"$log"
    status=$?
    cat "$scratch/$name.csv" >>"$log"
    return $status
}
chosen() { # impl and module of the row that is chosen
    sed -n 's/^\([^,]*\),\([^,]*\),.*,chosen$/\1 \2/p' "$scratch/$1.csv"
}
run() { # run NAME OPTION...: the five largest values of each image, by index
    name=$1
    shift
    "$strata" run "$scratch/net.ini" --input x=random:3 --top 5 -o csv "$@" 2>>"$log" |
        cut -d, -f4,5 >"$scratch/$name.out"
}
near() { # near A B: the same indices, values within 1e-5
    paste -d, "$scratch/$1.out" "$scratch/$2.out" >>"$log"
    paste -d, "$scratch/$1.out" "$scratch/$2.out" | awk -F, '
        NR > 1 { d = $2 - $4; bad += $1 != $3 || d > 1e-5 || d < -1e-5; n++ }
        END { exit bad || n != 5 * 32 }'
}

explain before --costs measure && [ -n "$(chosen before)" ] &&
    ! grep -q depthwise_nhwc "$scratch/before.csv"
result $? 'without it, a built-in impl is chosen'
run before --costs measure

PKG_CONFIG_PATH=$builddir/pkgconfig $MAKE -C "$scratch/source" CC="$CC" >"$log" 2>&1 &&
    cp "$scratch/source/depthwise.so" "$scratch/folder/"
result $? 'it builds outside of this tree'
mkdir "$scratch/é" && ln -s "$srcdir/include" "$scratch/é/include"
sed "s|^Cflags:.*|Cflags: -I$scratch/é/include|" \
    "$builddir/pkgconfig/strata-plugin-1-uninstalled.pc" >"$scratch/é/strata-plugin-1.pc"
PKG_CONFIG_PATH=$scratch/é $MAKE -B -C "$scratch/source" CC="$CC" >"$log" 2>&1
result $? 'whatever the folder of the headers is called'
export STRATA_PLUGIN_PATH="$scratch/folder"

# Which is faster is the machine's business: that all were timed and the best one taken is
# ours. Recorded times then say who wins.
explain timed --costs measure --measure-all --save-costs "$scratch/costs" &&
    grep -q '^depthwise_nhwc,depthwise.so,.*,measured,' "$scratch/timed.csv" &&
    awk -F, '$8 == "chosen" && $7 == "measured" { c++ }
        $8 ~ /^a plan with it takes [0-9.]+ us more$/ { more++ }
        END { exit c != 1 || more < 3 }' "$scratch/timed.csv"
result $? 'dropped into a folder, it is timed, and the best of all is chosen'
explain again --costs "$scratch/costs" && [ "$(chosen again)" = "$(chosen timed)" ]
result $? 'from the file of those costs the same plan is made'

takes() { # takes NS FILE: the costs, with another time for the impl that came
    sed "s/^[0-9]* \(.* depthwise_nhwc module=\)/$1 \1/" "$scratch/costs" >"$scratch/$2"
}
takes 1 fast
explain after --costs "$scratch/fast" &&
    [ "$(chosen after)" = 'depthwise_nhwc depthwise.so' ]
result $? 'where it wins, it is used'
run after --costs "$scratch/fast" && near before after
result $? 'the result is the same'
takes 1000000000 slow
explain slower --costs "$scratch/slow" && [ -n "$(chosen slower)" ] &&
    [ "$(chosen slower)" != "$(chosen after)" ] &&
    grep -qE '^depthwise_nhwc,.*,a plan with it takes (at least )?[0-9.]+ us more' "$log"
result $? 'where another wins, that one is used, and explain says by how much'

# Where its accept takes no node, it says so.
explain refused --costs measure --set 'layer y.groups=1' --set 'input x.shape=1 x 3 x 5 x 5' \
    --set 'layer y.filters=4' && grep -q '^depthwise_nhwc,.*refused: not depthwise' "$log"
result $? 'what it refuses is told with its reason'
finish
