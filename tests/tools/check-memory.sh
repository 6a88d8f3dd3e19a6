#!/bin/sh
# TAP: under limits of its address space a command ends with a message and a status, never
# with a signal. oneDNN, whose allocations are not all checked, is what runs where it is
# found. STRATA_TEST_LONG: twice as many limits; STRATA_TEST_QUICK: half as many.
. "${srcdir:-.}/tests/tap.sh"
cd "$scratch" || exit 99
unset STRATA_TRIAL
export OMP_NUM_THREADS=1
step=8000 # KiB
[ -z "${STRATA_TEST_QUICK:-}" ] || step=16000
[ -z "${STRATA_TEST_LONG:-}" ] || step=4000

cat >chain.ini <<'INI'
[network]
format = 1
outputs = c
[build]
costs_budget = 500ms
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
    'build chain.ini -o chain.engine' 'build chain.ini -o chain.engine --costs measure'; do
    signals= refused=0 limits=0 limit=40000
    while [ $limit -le 200000 ]; do
        limited $limit "$strata" $command >out 2>&1
        status=$?
        [ $status -eq 0 ] || refused=$((refused + 1))
        if [ $status -gt 127 ] || { [ $status -ne 0 ] && ! [ -s out ]; }; then
            signals="$signals $limit:$status"
            sed "s/^/$limit: /" out >>"$log"
        fi
        limits=$((limits + 1)) limit=$((limit + step))
    done
    [ -z "$signals" ] && [ $refused -gt 0 ]
    result $? "$command: a message at each of $limits limits ($refused refused)$signals"
done

# Where libgomp has no room for a thread it exits, which is nothing that a plugin wrote.
limits=0 limit=48000 blamed=
while [ $limit -le 120000 ]; do
    OMP_NUM_THREADS=2 limited $limit "$strata" run chain.ini --input x=random:1 >out 2>&1
    status=$?
    if [ $status -gt 127 ] || grep -q 'STRATA_CHECK=1' out ||
        { [ $status -ne 0 ] && ! [ -s out ]; }; then
        blamed="$blamed $limit:$status"
        sed "s/^/$limit: /" out >>"$log"
    fi
    limits=$((limits + 1)) limit=$((limit + step))
done
[ -z "$blamed" ]
result $? "two threads: a message at each of $limits limits, and no plugin is blamed$blamed"

# A plugin that no memory was left to load is none that is missing.
"$strata" build chain.ini -o chain.engine >"$log" 2>&1
blamed= limit=20000
while [ $limit -le 70000 ]; do
    limited $limit "$strata" run chain.engine --input x=random:1 >out 2>&1
    status=$?
    if [ $status -gt 127 ] || grep -qE 'no module here brings|memory: 0 bytes' out; then
        blamed="$blamed $limit:$status"
        sed "s/^/$limit: /" out >>"$log"
    fi
    limit=$((limit + step / 2))
done
[ -e chain.engine ] && [ -z "$blamed" ]
result $? "an engine's plugins are not called missing for memory$blamed"
finish
