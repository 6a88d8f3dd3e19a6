#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: what a network without a word on costs is planned from: the machine's times, taken
# once and kept in the user's cache.
. "${srcdir:-.}/tests/tap.sh"
net=$srcdir/examples/digits/digits.ini
unset STRATA_COSTS
XDG_CACHE_HOME=$scratch/cache HOME=$scratch/home
export XDG_CACHE_HOME HOME
mkdir "$HOME"

kept() { ls "$XDG_CACHE_HOME"/strata/costs/*.costs 2>/dev/null; }
busy() { grep -q 'the machine is busy' "$scratch/err"; }

for claim in 'an analytic plan measures nothing' 'STRATA_COSTS=analytic does not, either'; do
    expect 0 'analytic costs' "$claim" $strata explain "$net" --costs=analytic
    [ -z "$(kept)" ]
    result $? "$claim, and keeps nothing"
    STRATA_COSTS=analytic
    export STRATA_COSTS
done
expect 0 'analytic costs' 'the variable is the default' $strata explain "$net"
expect 0 'measured costs' 'and the default only' $strata explain "$net" --costs=measure
STRATA_COSTS=guess
expect 0 'STRATA_COSTS=guess says nothing' 'a word that it has not is told' \
    $strata explain "$net"
unset STRATA_COSTS
rm -rf "$XDG_CACHE_HOME"

expect 0 'measured costs' 'without a word the machine is measured' $strata explain -v "$net"
if busy; then
    skip 'measured costs are kept' 'the machine is busy'
    skip 'what is kept is not measured again' 'the machine is busy'
    skip 'a damaged file is told and made anew' 'the machine is busy'
else
    head -1 "$(kept)" >"$log" 2>&1
    grep -q '^strata-costs 1$' "$log"
    result $? 'measured costs are kept'
    $strata explain -v "$net" >"$log" 2>&1 && ! grep -q 'info: measured' "$log"
    result $? 'what is kept is not measured again'
    echo rubbish >"$(kept)"
    expect 0 'the file is made anew' 'a damaged file is told and made anew' \
        $strata explain "$net"
fi

# Eight threads for each processor wait for one most of the time.
rm -rf "$XDG_CACHE_HOME"
crowd="runtime.threads=$(($(nproc) * 8))"
$strata explain -v "$net" --set "$crowd" >/dev/null 2>"$scratch/err"
cp "$scratch/err" "$log"
apart=$(find "$XDG_CACHE_HOME" -name "*.busy" -size +0 2>/dev/null)
if busy && [ -n "$apart" ]; then
    expect 0 'the machine is busy: for [0-9]+ of [0-9]+ costs no quiet moment was found' \
        'costs of a busy machine are told at each build' \
        $strata explain -v "$net" --set "$crowd"
    ! grep -q 'info: measured' "$scratch/err"
    result $? 'and not measured each time'
    keys() { sed 1,3d "$1" | cut -d' ' -f4- | sort; }
    : >"$scratch/quiet" # where no moment was quiet there is no such file
    [ -z "$(kept)" ] || keys "$(kept)" >"$scratch/quiet"
    keys "$apart" | comm -13 "$scratch/quiet" - >"$scratch/busy"
    cat "$scratch/err" "$scratch/busy" >"$log"
    [ "$(sed -n 's/.* for \([0-9]*\) of .* no quiet moment .*/\1/p' "$scratch/err")" \
        -eq "$(wc -l <"$scratch/busy")" ]
    result $? 'nor kept with those of quiet moments'
else
    skip 'costs of a busy machine are told and kept apart' 'no cost was without a quiet moment'
fi
rm -rf "$XDG_CACHE_HOME"
expect 0 'measured costs' 'costs=measure takes all times anew' \
    $strata explain "$net" --costs=measure
[ -z "$(kept)" ]
result $? 'and keeps none'
expect 0 'measured costs' 'costs=auto is the default' $strata explain "$net" --costs=auto
rm -rf "$XDG_CACHE_HOME"
: >"$XDG_CACHE_HOME"
$strata run "$net" "$srcdir/examples/digits/images/3-011.pgm" --top 1 >"$scratch/out" \
    2>"$scratch/err"
cat "$scratch/out" "$scratch/err" >"$log"
grep -q '^prob .* 3 ' "$scratch/out" && grep -q 'costs are not kept: ' "$log"
result $? 'a cache that cannot be is told, and the network runs'
XDG_CACHE_HOME=$scratch/cache/within
$strata explain "$net" >/dev/null 2>"$scratch/err"
cp "$scratch/err" "$log"
grep -q "costs are not kept: $XDG_CACHE_HOME: cannot be made: Not a dir" "$log"
result $? 'and why it cannot be made'
XDG_CACHE_HOME=$scratch/cache
full='a full disk is told'
if unshare -Urm true 2>"$log"; then
    rm "$XDG_CACHE_HOME"
    mkdir "$XDG_CACHE_HOME"
    for inodes in 1 4; do # room for no folder; for one file, which lacks room
        unshare -Urm sh -c "mount -t tmpfs -o size=4k,nr_inodes=$inodes,mode=700 \
            none '$XDG_CACHE_HOME' && exec $strata explain '$net'" >/dev/null 2>"$scratch/err"
        cp "$scratch/err" "$log"
        grep -q 'costs are not kept: .*: No space left on device' "$log"
        result $? "$full ($inodes)"
    done
    rmdir "$XDG_CACHE_HOME"
else
    skip "$full" 'no name space for a disk of its own'
fi

# Costs that do not hold, ten thousand times too high, are doubted wherever times are.
rm -rf "$XDG_CACHE_HOME"
$strata explain "$net" --costs=measure --measure-all \
    --save-costs="$scratch/is.costs" >/dev/null 2>&1
awk '/^[0-9]/ { $1 = sprintf("%d", $1 * 10000) } { print }' "$scratch/is.costs" >"$scratch/wrong.costs"
doubt="the plan's costs said [0-9.e+]+ ms .* cost file's; try --costs measure"
expect 0 "note: $doubt" 'bench doubts costs that are half as much again' \
    $strata bench "$net" --duration=20ms --costs="$scratch/wrong.costs"
expect 0 '"predicted_ms": [0-9]+' 'and has the prediction beside the time' \
    $strata bench "$net" --duration=20ms --costs="$scratch/wrong.costs" -o json
expect 0 "note: $doubt" 'profile doubts them' \
    $strata profile "$net" --costs="$scratch/wrong.costs"
$strata profile "$net" --costs="$scratch/wrong.costs" --html="$scratch/report.html" \
    >"$log" 2>&1
grep -q 'try --costs measure' "$scratch/report.html"
result $? 'and so does the report'
finish
