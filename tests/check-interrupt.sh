#!/bin/sh
# TAP: measuring is shown while it goes on, ends at Ctrl-C with what it has, and goes on
# from there.
srcdir=${srcdir:-.} builddir=${builddir:-.}
strata=$builddir/strata
net=$srcdir/bench/nets/resnet18.ini
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
costs=$scratch/net.costs
number=0 failed=0

# claim TEXT CODE: one line of TAP; what the command said if it does not hold.
claim() {
    number=$((number + 1))
    [ "$2" -eq 0 ] && echo "ok $number - $1" && return
    failed=1
    echo "not ok $number - $1"
    sed 's/^/# /' "$scratch/err"
}

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
claim 'Ctrl-C ends measuring and says what is kept' $?
[ "$code" -ne 0 ] && [ "$code" -lt 128 ]
claim 'with an error, not by the signal' $?
first=$(kept)
[ "$first" -gt 0 ] && head -1 "$costs" | grep -q '^strata-costs 1$'
claim 'what was measured is a cost file' $?
for more in 1 2 3 4; do
    interrupt $((seconds * more)) $strata explain "$net" --costs measure --measure-all \
        --save-costs "$costs"
    [ "$(kept)" -gt "$first" ] && break
done
[ "$(kept)" -gt "$first" ]
claim "the next run goes on from there, from $first to $(kept)" $?
$strata explain "$net" --costs "$costs" --set build.costs_miss=analytic \
    >"$scratch/out" 2>"$scratch/err" && grep -q 'recorded costs' "$scratch/out"
claim 'a plan can be made from it' $?

if command -v script >/dev/null; then
    script -qec "timeout $((seconds * 3)) $strata explain $net --costs measure --measure-all" \
        /dev/null </dev/null | tr '\r' '\n' >"$scratch/err"
    grep -qE '^measuring .*, impl .*: [0-9]+ of [0-9]+, best [0-9.]+ us, [0-9]+ s left' \
        "$scratch/err"
    claim 'a terminal shows impl k of n, best so far, time left' $?
else
    number=$((number + 1))
    echo "ok $number # SKIP script(1) gives no terminal here"
fi
echo "1..$number"
exit $failed
