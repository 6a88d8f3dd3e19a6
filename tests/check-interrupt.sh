#!/bin/sh
# TAP: measuring is shown while it goes on, ends at Ctrl-C with what it has, and goes on
# from there.
. "${srcdir:-.}/tests/tap.sh"
net=$srcdir/bench/nets/resnet18.ini
costs=$scratch/net.costs log=$scratch/err

# interrupt SECONDS COMMAND...: SIGINT, or $signal, after so long; sets $code.
signal=INT
interrupt() {
    seconds=$1
    shift
    "$@" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    sleep "$seconds"
    kill -$signal $pid
    wait $pid
    code=$?
}

# kept: how many costs the file holds.
kept() {
    grep -c '^[0-9]' "$costs"
}

# From the start to the first round that is timed may take long, on a busy machine longer:
# each step tries again with more time.
for seconds in 1 3 9 27 81 243; do
    interrupt $seconds $strata explain "$net" --costs measure --measure-all \
        --save-costs "$costs"
    [ -s "$costs" ] && break
done
grep -q 'interrupted while costs were measured; .* holds the [0-9]* measured so far' \
    "$scratch/err"
result $? 'Ctrl-C ends measuring and says what is kept'
[ "$code" -ne 0 ] && [ "$code" -lt 128 ]
result $? 'with an error, not by the signal'
mv "$costs" "$scratch/int.costs"
signal=TERM
for more in 1 2 4 8 16; do
    interrupt $((seconds * more)) $strata explain "$net" --costs measure --measure-all \
        --save-costs "$costs"
    [ -s "$costs" ] && break
done
grep -q 'interrupted while costs were measured; .* holds the [0-9]* measured so far' \
    "$scratch/err" && [ "$code" -eq 2 ]
result $? 'SIGTERM does too'
signal=INT
mv "$scratch/int.costs" "$costs"
first=$(kept)
[ "$first" -gt 0 ] && head -1 "$costs" | grep -q '^strata-costs 1$'
result $? 'what was measured is a cost file'
for more in 1 2 4 8 16; do
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
for more in 1 2 4 8 16; do
    rm "$costs"
    $strata explain "$net" --costs measure --measure-all --save-costs "$costs" \
        >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    sleep $((seconds * more))
    cp "$scratch/other" "$costs"
    kill -INT $pid
    wait $pid
    [ "$(kept)" -gt 1 ] && break
done
grep -q 'threads=77' "$costs" && [ "$(kept)" -gt 1 ]
result $? "costs that another process saved meanwhile are kept, $(kept) in all"

# A terminal, which a chroot without /dev/pts cannot give.
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    line='^measuring .*, impl .*: [0-9]+ of [0-9]+, best [0-9.]+ us, [0-9]+ s left'
    for more in 3 6 12 24; do
        script -qec "timeout $((seconds * more)) $strata explain $net --costs measure \
            --measure-all" /dev/null </dev/null | tr '\r' '\n' >"$scratch/err"
        grep -qE "$line" "$scratch/err" && break
    done
    grep -qE "$line" "$scratch/err"
    result $? 'a terminal shows impl k of n, best so far, time left'
else
    skip 'a terminal shows impl k of n' 'script(1) gives no terminal here'
fi
finish
