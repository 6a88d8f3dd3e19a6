#!/bin/sh
# Run compute-sanitizer's four tools over a sample of the bundle's tests.
#   gpu-sanitize.sh [TOOL]...        memcheck racecheck initcheck synccheck
#   STRATA_SANITIZE_LIMIT=SECONDS    of a tool and program; default 150
#   STRATA_SANITIZE_CHOICE_LIMIT=SECONDS   of the choice of runs; default 120
#   STRATA_SANITIZE_JOBS=N           processes beside each other, up to 64; default 8
#   STRATA_SANITIZE_LAYERS="A B"     only these layers, and of the parts only "layers"
#   STRATA_SANITIZE_RUNS=FILE        of layers, the runs in FILE, of an earlier call
#   STRATA_SANITIZE_PARTS=WORD...    what the tools see; default "layers sizes cut", the
#                                    latter two of reformat; "" only chooses runs
#   STRATA_TEST_SAMPLE=N             one run in N, after the first of every kind; default
#                                    8 of layers, and 25 of reformat
# Of layers, a sample runs without a tool at first, to see which run launches which kernel
# for the first time; the tools then see those runs alone (sample.runs beside the logs).
# What was chosen when the choice's time ends is what the tools see: each process begins
# with another case, so that all layers have some. That is told, and no failure.
# Prints a line a tool and program: errors, launches, and how many of the kernels that
# were loaded were launched; the others are named in a file beside the log. "not run", no
# launch, and running out of time are failures. What a tool said until then is counted
# ("cut at N s"), "at least" for it may have had more to say. Kernels of cuBLAS and cuDNN
# do not count. What plans of networks can choose: gpu-sanitize-plans.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/sanitizer.sh"
tools=${*:-memcheck racecheck initcheck synccheck}
layers=${STRATA_SANITIZE_LAYERS:-}

# The runs of layers that launch a kernel for the first time, to $runs; of impls over
# libraries, whose kernels are not seen, the first few.
choose_runs() {
    runs=$logs/sample.runs shard=0 start=$(date +%s)
    rm -f "$logs"/choose.*
    while [ "$shard" -lt "$jobs" ]; do
        STRATA_TEST_SAMPLE=${STRATA_TEST_SAMPLE:-8} STRATA_TEST_SHARD=$shard/$jobs \
            STRATA_TEST_LAYER=$layers STRATA_TEST_RUNS_TO=$logs/choose.$shard.kernels \
            counted "$choice_limit" "$logs/choose.$shard" \
            env LD_PRELOAD="$here/lib/launch_count.so" "$here/run.sh" tests/cuda/layers \
            --verbose --filter 'cuda_layers/a_sample_*' >"$logs/choose.$shard.log" 2>&1 &
        shard=$((shard + 1))
    done
    wait
    cat "$logs"/choose.*.kernels 2>/dev/null | awk '
        $1 == "run" {
            id = $2
            if ($3 ~ /^(cudnn|cublaslt)/ && few[$3]++ < 4) print id
        }
        $1 == "launched" && id && !seen[$2 " " $3]++ {print id}' | sort -u >"$runs"
    whole=$(count_logs '^exit status 0$' "$logs"/choose.*.log)
    cut=$(count_logs '^exit status 124$' "$logs"/choose.*.log) told=
    [ "$cut" -eq 0 ] || told=", $cut of $jobs processes cut at $choice_limit s"
    printf '%-10s %-18s %s runs launch %s different kernels, %s s%s\n' chosen \
        tests/cuda/layers $(($(wc -l <"$runs"))) \
        $(($(kernels launched "$logs"/choose.*.kernels | wc -l))) \
        $(($(date +%s) - start)) "$told"
    if ! grep -q . "$runs" || [ $((whole + cut)) -lt "$jobs" ]; then
        failed=1
        echo "gpu-sanitize: the choice of runs failed: see $logs/choose.*.log"
    fi
}

check() { # tool program tests name shards
    name=$1-$(echo "$2" | tr / -)-$4 shard=0 start=$(date +%s)
    rm -f "$logs/$name".*
    while [ "$shard" -lt "$5" ]; do
        STRATA_TEST_WITHOUT=$without STRATA_TEST_SHARD=$shard/$5 counted_under "$1" \
            "$limit" "$logs/$name.$shard.launches" "$2" --verbose --filter "$3" \
            >"$logs/$name.$shard.log" 2>&1 &
        shard=$((shard + 1))
    done
    wait
    tell "$1" "$2" "$name" "$5" "$start"
}

check_part() { # tool part
    case $2 in
    layers)
        STRATA_TEST_LAYER=$layers STRATA_TEST_RUNS_FROM=$runs check "$1" \
            tests/cuda/layers 'cuda_layers/a_sample_*' sample "$jobs"
        return
        ;;
    sizes) tests='*_match*_at_awkward_sizes' ;;
    cut) tests='*_where_tiles_are_cut' ;;
    esac
    STRATA_TEST_SAMPLE=${STRATA_TEST_SAMPLE:-25} check "$1" tests/cuda/reformat \
        "cuda_reformat/$tests" "$2" 1
}

export HARNESS_SEED="${HARNESS_SEED:-1}" # the choice and the tools must have the same
runs=${STRATA_SANITIZE_RUNS:-}
all="layers sizes cut"
[ -z "$layers" ] || all=layers
parts=${STRATA_SANITIZE_PARTS-$all}
for part in $parts; do
    case $part in
    layers | sizes | cut) ;;
    *) stop "no part is called $part" ;;
    esac
done
[ -n "$runs" ] || choose_runs

# Impls over cuBLAS and cuDNN are held to memcheck alone: how their kernels wait and what
# they read of their own workspaces is not ours to mend, and some end the other tools.
for tool in $tools; do
    without=cudnn_,cublaslt_
    [ "$tool" != memcheck ] || without=
    for part in $parts; do
        check_part "$tool" "$part"
    done
done
exit $failed
