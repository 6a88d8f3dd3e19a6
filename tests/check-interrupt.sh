#!/bin/sh
# TAP: measuring is shown while it goes on, ends at Ctrl-C with what it has, and goes on
# from there.
. "${srcdir:-.}/tests/tap.sh"
net=$srcdir/bench/nets/resnet18.ini
costs=$scratch/net.costs log=$scratch/err

# interrupt SECONDS COMMAND...: SIGINT after so long; sets $code.
interrupt() {
    seconds=$1
    shift
    "$@" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    sleep "$seconds"
    kill -INT $pid
    wait $pid
    code=$?
}

# kept: how many costs the file holds.
kept() {
    grep -c '^[0-9]' "$costs"
}

# From a slow machine's start to the first round that is timed may take long.
for seconds in 1 3 9 27; do
    interrupt $seconds $strata explain "$net" --costs measure --measure-all \
        --save-costs "$costs"
    [ -s "$costs" ] && break
done
grep -q 'interrupted while costs were measured; .* holds the [0-9]* measured so far' \
    "$scratch/err"
result $? 'Ctrl-C ends measuring and says what is kept'
[ "$code" -ne 0 ] && [ "$code" -lt 128 ]
result $? 'with an error, not by the signal'
first=$(kept)
[ "$first" -gt 0 ] && head -1 "$costs" | grep -q '^strata-costs 1$'
result $? 'what was measured is a cost file'
for more in 1 2 3 4; do
    interrupt $((seconds * more)) $strata explain "$net" --costs measure --measure-all \
        --save-costs "$costs"
    [ "$(kept)" -gt "$first" ] && break
done
[ "$(kept)" -gt "$first" ]
result $? "the next run goes on from there, from $first to $(kept)"
$strata explain "$net" --costs "$costs" --set build.costs_miss=analytic \
    >"$scratch/out" 2>"$scratch/err" && grep -q 'recorded costs' "$scratch/out"
result $? 'a plan can be made from it'

# What another process saves meanwhile stays.
{ head -2 "$costs" && grep -m1 '^[0-9].* threads=' "$costs" |
    sed 's/threads=[0-9]*/threads=77/'; } >"$scratch/other"
rm "$costs"
$strata explain "$net" --costs measure --measure-all --save-costs "$costs" \
    >"$scratch/out" 2>"$scratch/err" &
pid=$!
sleep "$seconds"
cp "$scratch/other" "$costs"
kill -INT $pid
wait $pid
grep -q 'threads=77' "$costs" && [ "$(kept)" -gt 1 ]
result $? "costs that another process saved meanwhile are kept, $(kept) in all"

# A terminal, which a chroot without /dev/pts cannot give.
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    script -qec "timeout $((seconds * 3)) $strata explain $net --costs measure --measure-all" \
        /dev/null </dev/null | tr '\r' '\n' >"$scratch/err"
    grep -qE '^measuring .*, impl .*: [0-9]+ of [0-9]+, best [0-9.]+ us, [0-9]+ s left' \
        "$scratch/err"
    result $? 'a terminal shows impl k of n, best so far, time left'
else
    skip 'a terminal shows impl k of n' 'script(1) gives no terminal here'
fi
finish
