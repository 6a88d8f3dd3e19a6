#!/bin/sh
# Run compute-sanitizer's four tools over a sample of the bundle's tests.
#   gpu-sanitize.sh [TOOL]...        memcheck racecheck initcheck synccheck
#   STRATA_SANITIZE_LIMIT=SECONDS    of a tool and program; default 150
#   STRATA_SANITIZE_JOBS=N           processes beside each other; default 8
#   STRATA_SANITIZE_RUNS=FILE        of layers, the runs that FILE lists, of an earlier call
#   STRATA_SANITIZE_PARTS=WORD...    what the tools see; default "layers sizes cut", the
#                                    latter two of reformat; "" only chooses runs
#   STRATA_TEST_SAMPLE=N             one run in N, after the first of every kind; without
#                                    it 8 of layers, and 25 of reformat
# Of layers, a sample runs without a tool at first, to see which run launches which kernel
# for the first time; the tools then see those runs alone (sample.runs beside the logs).
# Prints a line a tool and program: errors, launches, and how many of the kernels that were
# loaded were launched; the others are named in a file beside the log. "not run", no
# launch, and running out of time are failures. Kernels of cuBLAS and cuDNN do not count.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tools=${*:-memcheck racecheck initcheck synccheck}
limit=${STRATA_SANITIZE_LIMIT:-150}
jobs=${STRATA_SANITIZE_JOBS:-8}
logs=${OUT:-${TMPDIR:-/tmp}}
failed=0
export STRATA_REQUIRE_DEVICE=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer \
    /usr/local/cuda*/compute-sanitizer/compute-sanitizer 2>/dev/null | head -n 1)
if [ -z "$sanitizer" ]; then
    echo "gpu-sanitize: not run: compute-sanitizer is not installed"
    exit 1
fi

launches() { # file...
    for count in "$@"; do
        od -An -t u8 -N 8 "$count" 2>/dev/null
    done | awk '{n += $1} END {print n + 0}'
}

# Different kernels that files name in lines of a kind.
kernels() { # loaded|launched file...
    kind=$1
    shift
    sed -n "s/^$kind //p" "$@" 2>/dev/null | sort -u
}

counted() { # count_file program tests command...
    STRATA_LAUNCH_COUNT=$1 timeout -k 1 "$limit" $4 \
        env LD_PRELOAD="$here/lib/launch_count.so" \
        "$here/run.sh" "$2" --verbose --filter "$3"
}

# The runs of layers that launch a kernel for the first time, to $runs; of impls over
# libraries, whose kernels are not seen, the first few.
choose_runs() {
    runs=$logs/sample.runs shard=0 start=$(date +%s)
    rm -f "$logs"/choose.*
    while [ "$shard" -lt "$jobs" ]; do
        STRATA_TEST_SAMPLE=${STRATA_TEST_SAMPLE:-8} STRATA_TEST_SHARD=$shard/$jobs \
            STRATA_TEST_RUNS_TO=$logs/choose.$shard.kernels \
            counted "$logs/choose.$shard" tests/cuda/layers 'cuda_layers/a_sample_*' '' \
            >"$logs/choose.$shard.log" 2>&1 &
        shard=$((shard + 1))
    done
    wait
    cat "$logs"/choose.*.kernels 2>/dev/null | awk '
        $1 == "run" {
            id = $2
            if ($3 ~ /^(cudnn|cublaslt)/ && few[$3]++ < 4) print id
        }
        $1 == "launched" && id && !seen[$2 " " $3]++ {print id}' | sort -u >"$runs"
    printf '%-10s %-18s %s runs launch %s different kernels, %s s\n' chosen \
        tests/cuda/layers $(($(wc -l <"$runs"))) \
        $(($(kernels launched "$logs"/choose.*.kernels | wc -l))) \
        $(($(date +%s) - start))
    if ! grep -q . "$runs" || [ "$(grep -lE 'Failing: 0 .*Crashing: 0' \
        "$logs"/choose.*.log | wc -l)" -ne "$jobs" ]; then
        failed=1
        echo "gpu-sanitize: the choice of runs failed: see $logs/choose.*.log"
    fi
}

# Each shard leaves its log, and its exit status at the end of it.
run_shards() { # tool program tests name shards
    shard=0
    while [ "$shard" -lt "$5" ]; do
        {
            STRATA_TEST_SHARD=$shard/$5 counted "$logs/$4.$shard.launches" "$2" "$3" \
                "$sanitizer --tool $1 --target-processes all --error-exitcode 99 \
                --print-limit 20"
            echo "exit status $?"
        } >"$logs/$4.$shard.log" 2>&1 &
        shard=$((shard + 1))
    done
    wait
}

check() { # tool program tests name shards
    tool=$1 program=$2 shards=$5 name=$1-$(echo "$2" | tr / -)-$4
    log=$logs/$name.log
    rm -f "$logs/$name".*
    start=$(date +%s)
    STRATA_TEST_WITHOUT=$without run_shards "$tool" "$program" "$3" "$name" "$shards"
    cat "$logs/$name".*.log >"$log.all"
    mv "$log.all" "$log"
    status=$(sed -n 's/^exit status //p' "$log" | sort -n | tail -n 1)
    kernels loaded "$logs/$name".*.kernels >"$log.loaded"
    kernels launched "$logs/$name".*.kernels >"$log.launched"
    comm -23 "$log.loaded" "$log.launched" >"$log.unseen"
    errors=$(awk -v shards="$shards" '/ERROR SUMMARY:|RACECHECK SUMMARY:/ {
            for (i = 1; i < NF; i++)
                if ($(i + 1) ~ /^(error|hazard)/) {n += $i; break}
            seen++}
        END {print (n || seen >= shards ? n + 0 : "no")}' "$log")
    launched=$(launches "$logs/$name".*.launches)
    verdict=ok
    [ "$status" -eq 0 ] && [ "$errors" = 0 ] || verdict="FAILED (status $status)"
    [ "$status" -ne 124 ] || verdict="FAILED (over $limit s)"
    [ "$launched" -gt 0 ] || verdict="FAILED (no kernel ran: not checked)"
    [ "$verdict" = ok ] || failed=1
    printf '%-10s %-18s %5s errors, %6s launches of %4s of %4s kernels, %3s s: %s\n' \
        "$tool" "$program" "$errors" "$launched" \
        $(($(wc -l <"$log.launched"))) $(($(wc -l <"$log.loaded"))) \
        $(($(date +%s) - start)) "$verdict"
    [ "$verdict" = ok ] || grep -E '^=========|^\[(FAIL|ERR)|^\[----\] ' "$log" |
        grep -vE 'Host Frame|Saved host' | head -n 40
}

export HARNESS_SEED="${HARNESS_SEED:-1}" # the choice and the tools must have the same
runs=${STRATA_SANITIZE_RUNS:-}
parts=${STRATA_SANITIZE_PARTS-layers sizes cut}
[ -n "$runs" ] || choose_runs

# Impls over cuBLAS and cuDNN are held to memcheck alone: how their kernels wait and what
# they read of their own workspaces is not ours to mend, and some end the other tools.
for tool in $tools; do
    without=cudnn_,cublaslt_
    [ "$tool" != memcheck ] || without=
    for part in $parts; do
        case $part in
        layers)
            STRATA_TEST_RUNS_FROM=$runs check "$tool" tests/cuda/layers \
                'cuda_layers/a_sample_*' sample "$jobs"
            continue
            ;;
        sizes) tests='*_match*_at_awkward_sizes' ;;
        cut) tests='*_where_tiles_are_cut' ;;
        *) echo "gpu-sanitize: no part is called $part" && exit 1 ;;
        esac
        STRATA_TEST_SAMPLE=${STRATA_TEST_SAMPLE:-25} check "$tool" tests/cuda/reformat \
            "cuda_reformat/$tests" "$part" 1
    done
done
exit $failed
