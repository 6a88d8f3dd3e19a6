# SPDX-License-Identifier: Apache-2.0
# For shell tests, to be sourced: results as TAP, a scratch folder, and the command of the
# build. A test ends with `finish`.
srcdir=$(cd "${srcdir:-.}" && pwd) builddir=$(cd "${builddir:-.}" && pwd)
CC=${CC:-cc} MAKE=${MAKE:-make}
strata=$builddir/strata
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
number=0 failed=0
umask 022

result() { # result STATUS CLAIM: the log is shown after a failure
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        failed=1
        echo "not ok $number - $2"
        sed 's/^/# /' "$log" | tail -n 60
    fi
}
skip() { # skip CLAIM REASON
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}
expect() { # expect CODE PATTERN CLAIM COMMAND...: exit code, and a pattern in its output
    code=$1 pattern=$2 claim=$3
    shift 3
    "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    cat "$scratch/out" "$scratch/err" >"$log"
    [ $got -eq "$code" ] && grep -qE -e "$pattern" "$log"
    found=$?
    echo "exit code $got, expected $code, with: $pattern" >>"$log"
    result $found "$claim"
}
finish() {
    echo "1..$number"
    exit $failed
}
