#!/bin/sh
# TAP: bench/serving/soak finds rows that are wrong, and says which and how; it finds none
# where none is, also on devices whose streams do everything later.
. "${srcdir:-.}/tests/tap.sh"
soak=$builddir/bench/serving/soak

# By impls whose threads are ours, which ThreadSanitizer sees.
cat >"$scratch/net.ini" <<'END'
[network]
format = 1
outputs = fc
[input x]
shape = N x 3 x 6 x 6
[profile]
N = 1, 8, 32
[weights w]
random = 1
[layer conv]
type = Convolution
filters = 5
kernel = 3x3
weights = w:conv
impl = c
[layer act]
type = Activation
kind = tanh
[layer fc]
type = FullyConnected
units = 40
weights = w:fc
impl = c
END
"$strata" build "$scratch/net.ini" --quiet --set runtime.threads=1 \
    -o "$scratch/net.engine" >"$log" 2>&1
result $? 'an engine is built'

# ways WAY NAME BY: by processes that use the host so; where a batch is said to run
ways() {
    expect 0 "^$2: [1-9][0-9]* requests, [1-9][0-9]* rows, 0 bad" "$2: none is wrong" \
        "$soak" "$scratch/net.engine" host,host 0.3 2 3 "$1"
    expect 1 "^$2: .*, [1-9][0-9]* bad" "$2: wrong rows are found" \
        "$soak" -b -k "$scratch" "$scratch/net.engine" host,host 0.3 2 3 "$1"
    # Each value that was changed is told, and nothing else is.
    awk '/ changed value / { changed[$2 $NF " " $5] = 1 }
         / of its .* values differ/ {
             sub(/.* of its [0-9]+, row /, $2)
             split($0, word, /[ :,]+/)
             told++
             wrong += !((word[1] ":" word[2] " " word[9]) in changed) || word[3] != 1
         }
         END { exit !(told > 3 && wrong == 0) }' "$scratch/err"
    result $? "$2: by their rows and values"
    grep -qE "rows \(plan (1|8|32)\) $3.*, from place [0-9]+ on" "$scratch/err"
    result $? "$2: with the batches that they were in"
}
ways 0 'batcher over all devices' 'by thread [01] on device (-1|0|1)'
ways 1 'contexts in turns' 'on device [01]'
[ -n "$(find "$scratch" -name 'row-*' -size +0)" ]
result $? 'they are kept'
expect 2 usage 'options are checked' "$soak" -x "$scratch/net.engine" host

# module OUTPUT NAME...: of tests/modules, for those devices
mkdir "$scratch/devices" "$scratch/plugins"
module() {
    output=$1
    shift
    $CC -std=gnu11 -O1 -g -D_GNU_SOURCE $SANITIZER_CFLAGS -Wall -Wextra -Werror \
        -Wno-missing-field-initializers -fvisibility=hidden -fPIC -shared -pthread \
        -I"$builddir" -I"$srcdir" -I"$srcdir/include" \
        $(printf " $srcdir/tests/modules/%s.c" "$@") -o "$scratch/$output.so" \
        >"$log" 2>&1
    result $? "$1 is compiled"
}
module devices/strata-cuda later_device later_memory
module plugins/later later_layers
export STRATA_DEVICE_PATH="$scratch/devices"
export STRATA_PLUGIN_PATH="$scratch/plugins" STRATA_PLUGIN_DIR="$scratch/plugins"

# later TYPE SIDE WAY NAME...: rows of 3 x SIDE x SIDE, which go to the device in one copy
# if they are small, else by pieces of several threads, or as halves, as a layer of the
# type reads them
later() {
    side=$2
    printf '%s\n' '[network]' 'format = 1' 'outputs = y' '[input x]' \
        "shape = N x 3 x $side x $side" '[profile]' 'N = 1, 8, 32' '[layer a]' \
        "type = $1" '[layer y]' 'type = Mix' 'sums = 40' >"$scratch/later.ini"
    "$strata" build "$scratch/later.ini" -d cuda:0 --quiet -o "$scratch/later.engine" \
        >"$log" 2>&1
    result $? "an engine of rows of $side x $side is built"
    shift 2
    while [ $# -gt 0 ]; do
        expect 0 "^$2: [1-9][0-9]* requests, [1-9][0-9]* rows, 0 bad" \
            "$2, later, rows of $side x $side: none is wrong" \
            "$soak" "$scratch/later.engine" cuda:0,cuda:1 0.4 2 3 "$1"
        shift 2
    done
}
later Mix 6 0 'batcher over all devices' 1 'contexts in turns' 3 'contexts that come and go'
later Mix 80 0 'batcher over all devices' 2 'contexts that share'
later Halves 200 0 'batcher over all devices' 2 'contexts that share'
expect 0 '^input x: all who read it round it to FP16' 'explain says what travels as halves' \
    "$strata" explain "$scratch/later.ini" -d cuda:0
finish
