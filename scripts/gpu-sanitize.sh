#!/bin/sh
# Run compute-sanitizer's four tools over a sample of the bundle's tests.
#   gpu-sanitize.sh [TOOL]...        memcheck racecheck initcheck synccheck
#   STRATA_SANITIZE_LIMIT=SECONDS    of a tool and program; default 120
#   STRATA_TEST_SAMPLE=N             one run in N, after the first of every kind; without
#                                    it 60 of layers, and 25 of reformat
# Prints a line a tool and program: errors, launches, and how many of the kernels that were
# loaded were launched; the others are named in a file beside the log. "not run", no
# launch, and running out of time are failures. Kernels of cuBLAS and cuDNN do not count.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tools=${*:-memcheck racecheck initcheck synccheck}
limit=${STRATA_SANITIZE_LIMIT:-120}
logs=${OUT:-${TMPDIR:-/tmp}}
failed=0
export STRATA_REQUIRE_DEVICE=1

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer \
    /usr/local/cuda*/compute-sanitizer/compute-sanitizer 2>/dev/null | head -n 1)
if [ -z "$sanitizer" ]; then
    echo "gpu-sanitize: not run: compute-sanitizer is not installed"
    exit 1
fi

launches() { # file
    od -An -t u8 -N 8 "$1" 2>/dev/null | awk '{print $1; found = 1}
        END {if (!found) print 0}'
}

# Different kernels of a file's lines of a kind.
kernels() { # file loaded|launched
    sed -n "s/^$2 //p" "$1" 2>/dev/null | sort -u
}

check() { # tool program tests name one_in
    tool=$1 program=$2 name=$1-$(echo "$2" | tr / -)-$4
    log=$logs/$name.log count=$logs/$name.launches
    rm -f "$count" "$count.kernels"
    start=$(date +%s)
    STRATA_TEST_SAMPLE=${STRATA_TEST_SAMPLE:-$5} STRATA_TEST_WITHOUT=$without \
        STRATA_LAUNCH_COUNT=$count timeout -k 1 "$limit" "$sanitizer" --tool "$tool" \
        --target-processes all --error-exitcode 99 --print-limit 20 \
        env LD_PRELOAD="$here/lib/launch_count.so" \
        "$here/run.sh" "$program" --verbose --filter "$3" >"$log" 2>&1
    status=$?
    kernels "$count.kernels" loaded >"$log.loaded"
    kernels "$count.kernels" launched >"$log.launched"
    comm -23 "$log.loaded" "$log.launched" >"$log.unseen"
    errors=$(awk '/ERROR SUMMARY:|RACECHECK SUMMARY:/ {
            for (i = 1; i < NF; i++)
                if ($(i + 1) ~ /^(error|hazard)/) {n += $i; break}
            seen = 1}
        END {print seen ? n + 0 : "no"}' "$log")
    verdict=ok
    [ "$status" -eq 0 ] && [ "$errors" = 0 ] || verdict="FAILED (status $status)"
    [ "$status" -ne 124 ] || verdict="FAILED (over $limit s)"
    [ "$(launches "$count")" -gt 0 ] || verdict="FAILED (no kernel ran: not checked)"
    [ "$verdict" = ok ] || failed=1
    printf '%-10s %-18s %5s errors, %6s launches of %4s of %4s kernels, %3s s: %s\n' \
        "$tool" "$program" "$errors" "$(launches "$count")" \
        $(($(wc -l <"$log.launched"))) $(($(wc -l <"$log.loaded"))) \
        $(($(date +%s) - start)) "$verdict"
    [ "$verdict" = ok ] || grep -E '^=========|^\[(FAIL|ERR)|^\[----\] ' "$log" |
        grep -vE 'Host Frame|Saved host' | head -n 40
}

# Impls over cuBLAS and cuDNN are held to memcheck alone: how their kernels wait and what
# they read of their own workspaces is not ours to mend, and some end the other tools.
for tool in $tools; do
    without=cudnn_,cublaslt_
    [ "$tool" != memcheck ] || without=
    check "$tool" tests/cuda/layers 'cuda_layers/a_sample_*' sample 60
    check "$tool" tests/cuda/reformat 'cuda_reformat/*_match*_at_awkward_sizes' sizes 25
    check "$tool" tests/cuda/reformat 'cuda_reformat/*_where_tiles_are_cut' cut 25
done
exit $failed
