#!/bin/sh
# TAP: under limits of its address space a command ends with a message and a status, never
# with a signal. oneDNN, whose allocations are not all checked, is what runs where it is
# found.
. "${srcdir:-.}/tests/tap.sh"
cd "$scratch" || exit 99
unset STRATA_TRIAL
export OMP_NUM_THREADS=1

cat >chain.ini <<'INI'
[network]
format = 1
outputs = c
[input x]
shape = 1 x 32 x 40 x 40
[weights w]
random = 7
[layer a]
type = Convolution
filters = 512
kernel = 3x3
pad = 1
weights = w
[layer b]
type = Convolution
filters = 256
kernel = 3x3
pad = 1
weights = w
[layer c]
type = Convolution
filters = 512
kernel = 1x1
weights = w
INI

limited() { # limited KIB COMMAND...
    (ulimit -c 0 && ulimit -v "$1" && shift && exec "$@")
}
if ! limited 4000000 "$strata" --version >"$log" 2>&1; then
    skip 'limits of the address space' 'this build does not start under one'
    finish
fi
for command in 'run chain.ini --input x=random:1' 'explain chain.ini' \
    'build chain.ini -o chain.engine'; do
    signals= refused=0 limit=40000
    while [ $limit -le 200000 ]; do
        limited $limit "$strata" $command >out 2>&1
        status=$?
        [ $status -eq 0 ] || refused=$((refused + 1))
        if [ $status -gt 127 ] || { [ $status -ne 0 ] && ! [ -s out ]; }; then
            signals="$signals $limit:$status"
            sed "s/^/$limit: /" out >>"$log"
        fi
        limit=$((limit + 4000))
    done
    [ -z "$signals" ] && [ $refused -gt 0 ]
    result $? "${command%% *}: a message at each of 41 limits ($refused refused)$signals"
done
finish
