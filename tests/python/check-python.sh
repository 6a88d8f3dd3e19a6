#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: the package `strata` of this build, by Python's own unittest.
. "${srcdir:-.}/tests/tap.sh"
whole() { # whole REASON: nothing can be tried
    echo "1..1"
    echo "ok 1 - the Python package # SKIP $1"
    exit 0
}
[ -n "${SANITIZER_CFLAGS:-}" ] && whole 'the interpreter is not built with the sanitizers'
case ${PYTHON:-:} in :) whole 'no Python of 3.11 or later' ;; esac
if ! $MAKE -s -C "$builddir" python-package >"$log" 2>&1; then
    grep -q 'no Python.h' "$log" && whole 'no Python.h: install python3-dev'
    cat "$log"
    exit 1
fi
export PYTHONPATH="$builddir/python/package" LD_LIBRARY_PATH="$builddir/.libs"
export STRATA_COMMAND="$strata" PYTHONDONTWRITEBYTECODE=1
exec "$PYTHON" "$srcdir/tests/python/run.py" "$@"
