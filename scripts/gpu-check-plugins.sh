#!/bin/sh
# Hold every CUDA module of a bundle to the contract, several at once; a line a module, as
# each ends.
#   gpu-check-plugins.sh [OPTION-OF-STRATA-CHECK]...
# Without options: --quick --in-process, since starting CUDA for each test of each module
# takes longer than the tests.
#   STRATA_CHECK_JOBS=N   modules at once (default 6)
#   STRATA_CHECK_LIMIT=S  seconds for a module (default 60)
# The report of a module that fails follows its line. Exit status 1: one failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
jobs=${STRATA_CHECK_JOBS:-6}
logs=${OUT:-${TMPDIR:-/tmp}}/check-plugins
[ $# -gt 0 ] || set -- --quick --in-process
limit=${STRATA_CHECK_LIMIT:-60}
mkdir -p "$logs"
rm -f "$logs"/*

# Files of one module each: its report, and its line. Those that take longest go first.
export here logs limit
ls -S "$here"/plugins/*cuda*.so "$here"/plugins/*cudnn*.so "$here"/plugins/cublas*.so \
    2>/dev/null | xargs -P "$jobs" -I FILE sh -c '
    file=$1 name=$(basename "$1" .so) start=$(date +%s%N)
    shift
    timeout "$limit" "$here/run.sh" strata check "$file" --allow-untrusted-plugins "$@" \
        >"$logs/$name.report" 2>&1
    status=$?
    skipped=$(grep -c "^skipped" "$logs/$name.report")
    verdict=ok
    [ "$skipped" -eq 0 ] || verdict="FAILED ($skipped tests skipped)"
    [ "$status" -eq 0 ] || verdict="FAILED (status $status)"
    [ "$status" -ne 124 ] || verdict="FAILED (over $limit s)"
    runs=$(sed -n "s/.*, \([0-9]*\) runs in.*/\1/p" "$logs/$name.report" |
        awk "{n += \$1} END {print n + 0}")
    printf "%-24s %7d runs, %5d ms: %s\n" "$name" "$runs" \
        $((($(date +%s%N) - start) / 1000000)) "$verdict" | tee "$logs/$name.line"
' check FILE "$@"

failed=0
for line in "$logs"/*.line; do
    grep -q ': ok$' "$line" && continue
    failed=1
    echo "== $(basename "$line" .line)"
    grep -v '^ok' "${line%.line}.report" | cut -c1-400 | head -n 30
done
exit $failed
