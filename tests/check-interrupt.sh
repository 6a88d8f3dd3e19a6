#!/bin/sh
# TAP: measuring is shown while it goes on, ends at Ctrl-C with what it has, and goes on
# from there.
. "${srcdir:-.}/tests/tap.sh"
net=$srcdir/bench/nets/resnet18.ini
costs=$scratch/net.costs log=$scratch/err

# interrupt COMMAND...: SIGINT, or $signal, after $seconds; sets $code.
signal=INT seconds=1
interrupt() {
    "$@" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    sleep "$seconds"
    kill -$signal $pid
    wait $pid
    code=$?
}

# midway COMMAND...: the same, with something measured and more to measure. How long that
# takes depends on what else the machine does, which changes from one try to the next.
midway() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        rm -f "$costs"
        interrupt "$@"
        if [ $code -eq 0 ]; then
            scale 0.5
        elif [ ! -s "$costs" ]; then
            scale 2
        else
            return
        fi
    done
}
scale() { # scale FACTOR: what $seconds are
    seconds=$(awk "BEGIN { print $seconds * $1 }")
}

# kept: how many costs the file holds.
kept() {
    grep -c '^[0-9]' "$costs"
}

midway $strata explain "$net" --costs measure --measure-all --save-costs "$costs"
grep -q 'interrupted while costs were measured; .* holds the [0-9]* measured so far' \
    "$scratch/err"
result $? 'Ctrl-C ends measuring and says what is kept'
[ "$code" -ne 0 ] && [ "$code" -lt 128 ]
result $? 'with an error, not by the signal'
mv "$costs" "$scratch/int.costs"
signal=TERM
midway $strata explain "$net" --costs measure --measure-all --save-costs "$costs"
grep -q 'interrupted while costs were measured; .* holds the [0-9]* measured so far' \
    "$scratch/err" && [ "$code" -eq 2 ]
result $? 'SIGTERM does too'
signal=INT
mv "$scratch/int.costs" "$costs"
first=$(kept)
[ "$first" -gt 0 ] && head -1 "$costs" | grep -q '^strata-costs 1$'
result $? 'what was measured is a cost file'
for _ in 1 2 3 4 5; do
    interrupt $strata explain "$net" --costs measure --measure-all --save-costs "$costs"
    [ "$(kept)" -gt "$first" ] && break
    scale 2
done
[ "$(kept)" -gt "$first" ]
result $? "the next run goes on from there, from $first to $(kept)"
$strata explain "$net" --costs "$costs" --set build.costs_miss=analytic \
    >"$scratch/out" 2>"$scratch/err" && grep -q 'recorded costs' "$scratch/out"
result $? 'a plan can be made from it'

# What another process saves meanwhile stays.
{ head -2 "$costs" && grep -m1 '^[0-9].* threads=' "$costs" |
    sed 's/threads=[0-9]*/threads=77/'; } >"$scratch/other"
share() {
    "$@" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    sleep "$seconds"
    cp "$scratch/other" "$costs"
    kill -INT $pid
    wait $pid
}
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -f "$costs"
    if share $strata explain "$net" --costs measure --measure-all --save-costs "$costs"; then
        scale 0.5
    elif [ "$(kept)" -gt 1 ]; then
        break
    else
        scale 2
    fi
done
grep -q 'threads=77' "$costs" && [ "$(kept)" -gt 1 ]
result $? "costs that another process saved meanwhile are kept, $(kept) in all"

# A terminal, which a chroot without /dev/pts cannot give.
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    line='^measuring .*, impl .*: [0-9]+ of [0-9]+, best [0-9.]+ us, [0-9]+ s left'
    for limit in 3 9 27 81 243; do
        script -qec "timeout $limit $strata explain $net --costs measure \
            --measure-all" /dev/null </dev/null | tr '\r' '\n' >"$scratch/err"
        grep -qE "$line" "$scratch/err" && break
    done
    grep -qE "$line" "$scratch/err"
    result $? 'a terminal shows impl k of n, best so far, time left'
else
    skip 'a terminal shows impl k of n' 'script(1) gives no terminal here'
fi
finish
