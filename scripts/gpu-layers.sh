#!/bin/sh
# Hold all layers on CUDA to the FP64 reference: tests/cuda/layers in many processes.
#   gpu-layers.sh [LAYER]...         default: all that the program has
#   STRATA_LAYERS_JOBS=N             processes beside each other; default 16
#   STRATA_LAYERS_LIMIT=SECONDS      of all; default 540
#   STRATA_LAYERS_PART=I/N           one process in N, from the I-th (0 to N - 1) on: N
#                                    devices make a whole, each layer on every one
#   HARNESS_SEED=N                   as printed, to see a failure again
# Cases are spread over as many processes as a layer takes time; those of large cases come
# first, and the longest layers. Prints runs and failures of all, layers of which an impl
# failed, large cases that no impl ran though none may refuse them, and what was cut by the
# limit or never began. Exit status 1: any of these.
set -u
here=$(cd "$(dirname "$0")" && pwd)
jobs=${STRATA_LAYERS_JOBS:-16}
part=${STRATA_LAYERS_PART:-0/1}
logs=${OUT:-${TMPDIR:-/tmp}}/layers
export limit="${STRATA_LAYERS_LIMIT:-540}" here logs
export STRATA_REQUIRE_DEVICE=1 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
export HARNESS_SEED="${HARNESS_SEED:-$(date +%s)}"
start=$(date +%s)
export start
rm -rf "$logs"
mkdir -p "$logs"

# Processes of a layer's ordinary cases and of its large ones.
shards() { # layer
    case $1 in
    Convolution) echo 24 64 ;;
    QuantizedConvolution) echo 16 32 ;;
    Deconvolution) echo 12 32 ;;
    MatrixMultiply | Pointwise | Pooling) echo 12 16 ;;
    Attention | Normalization | FullyConnected | Reduce | Resize) echo 6 16 ;;
    *) echo 2 4 ;;
    esac
}

all=$("$here/run.sh" tests/cuda/layers --list 2>/dev/null |
    sed -n 's/.* \([A-Za-z]*\)_is_right_in_every_format.*/\1/p')
layers=${*:-$all}
[ -n "$layers" ] || { echo "gpu-layers: the program names no layers" && exit 1; }

# "LAYER LARGE I/N", those of most processes first.
for layer in $layers; do
    # shellcheck disable=SC2046
    set -- $(shards "$layer")
    for large in 1 0; do
        n=$2
        [ "$large" -eq 1 ] || n=$1
        i=0
        while [ "$i" -lt "$n" ]; do
            echo "$n $large $layer $i/$n"
            i=$((i + 1))
        done
    done
done | sort -s -k 2,2nr -k 1,1nr | cut -d ' ' -f 2- |
    awk -v i="${part%/*}" -v n="${part#*/}" '(NR - 1) % n == i' >"$logs/list"

xargs -P "$jobs" -L 1 sh -c '
    left=$((limit - ($(date +%s) - start)))
    log=$logs/$2.$1.$(echo "$3" | tr / -).log
    [ "$left" -gt 0 ] || exit 0
    STRATA_TEST_LAYER=$2 STRATA_TEST_LARGE=$1 STRATA_TEST_SHARD=$3 \
        timeout -k 1 "$left" "$here/run.sh" tests/cuda/layers --verbose \
        --filter "layers/$2_is_right_in_every_format" >"$log" 2>&1
    printf "\nexit status %s\n" $? >>"$log"
' run <"$logs/list"

count() { # pattern
    grep -lE "$1" "$logs"/*.log 2>/dev/null | wc -l
}
asked=$(($(wc -l <"$logs/list")))
right=$(count '^exit status 0$')
cut=$(count '^exit status (124|137)$')
begun=$(count '^exit status ')
cat "$logs"/*.log | awk '
    / failures$/ {runs += $4; failures += $8; if ($8) wrong[$2 " " $3] += $8}
    /^# .* large case .*may be refused$/ {next}
    /^# .* large case / {case_runs[$2 " " $5] += $6; parts[$2 " " $5] += $8
                         of[$2 " " $5] = $10}
    END {
        printf "%d runs, %d failures\n", runs, failures
        for (w in wrong) printf "wrong: %s, %d failures\n", w, wrong[w]
        for (c in case_runs)
            if (case_runs[c] == 0 && parts[c] == of[c])
                printf "untested: large case %s\n", c
    }' | tee "$logs/summary"
echo "$right of $asked processes right, $cut cut at $limit s, $((asked - begun)) not" \
    "begun, seed $HARNESS_SEED, $(($(date +%s) - start)) s"
grep -hE '^\[ERR' "$logs"/*.log | cut -c1-300 | sort -u | head -n 20
[ "$right" -eq "$asked" ] && ! grep -q untested "$logs/summary"
