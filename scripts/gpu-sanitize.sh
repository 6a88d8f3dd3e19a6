#!/bin/sh
# Run compute-sanitizer's four tools over the bundle's tests, with few sizes each.
#   gpu-sanitize.sh [TOOL]...        memcheck racecheck initcheck synccheck
#   STRATA_SANITIZE_TESTS="test_a test_b"   other programs; STRATA_SANITIZE_LIMIT=SECONDS
# Prints a line a tool and program: errors, and how many kernels were launched how often.
# "not run", no launch, and running out of time are failures.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tools=${*:-memcheck racecheck initcheck synccheck}
tests=${STRATA_SANITIZE_TESTS:-test_cuda_layers test_cuda_reformat}
limit=${STRATA_SANITIZE_LIMIT:-60}
logs=${OUT:-${TMPDIR:-/tmp}}
failed=0
export STRATA_TEST_QUICK=1 STRATA_REQUIRE_DEVICE=1

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer \
    /usr/local/cuda*/compute-sanitizer/compute-sanitizer 2>/dev/null | head -n 1)
if [ -z "$sanitizer" ]; then
    echo "gpu-sanitize: not run: compute-sanitizer is not installed"
    exit 1
fi

# The two counts at the start of the file.
counts() {
    od -An -t u8 -N 16 "$1" 2>/dev/null | awk '{print $1, $2; found = 1}
        END {if (!found) print 0, 0}'
}

check() { # tool program
    tool=$1 program=$2
    log=$logs/$tool-$program.log launches=$logs/$tool-$program.launches
    rm -f "$launches"
    start=$(date +%s)
    STRATA_LAUNCH_COUNT=$launches timeout "$limit" "$sanitizer" --tool "$tool" \
        --target-processes all --error-exitcode 99 --print-limit 20 \
        env LD_PRELOAD="$here/lib/launch_count.so" \
        "$here/run.sh" "$program" --verbose >"$log" 2>&1
    status=$?
    set -- $(counts "$launches")
    errors=$(awk '/ERROR SUMMARY:|RACECHECK SUMMARY:/ {
            for (i = 1; i < NF; i++)
                if ($(i + 1) ~ /^(error|hazard)/) {n += $i; break}
            seen = 1}
        END {print seen ? n + 0 : "no"}' "$log")
    verdict=ok
    [ "$status" -eq 0 ] && [ "$errors" = 0 ] || verdict="FAILED (status $status)"
    [ "$status" -ne 124 ] || verdict="FAILED (over $limit s)"
    [ "$1" -gt 0 ] || verdict="FAILED (no kernel ran: not checked)"
    [ "$verdict" = ok ] || failed=1
    printf '%-10s %-20s %5s errors, %4s kernels, %7s launches, %3s s: %s\n' "$tool" \
        "$program" "$errors" "$2" "$1" $(($(date +%s) - start)) "$verdict"
    [ "$verdict" = ok ] || grep -E '^=========|^\[(FAIL|ERR)|^\[----\] ' "$log" |
        grep -vE 'Host Frame|Saved host' | head -n 40
}

for tool in $tools; do
    for program in $tests; do
        check "$tool" "$program"
    done
done
exit $failed
