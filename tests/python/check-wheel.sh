#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: pip builds the package and installs it in a fresh virtual environment, where nothing
# but what is in the wheel tells it of plugins, libstrata or the command. NumPy, mypy and
# what looks at wheels are tried where PyPI is there.
. "${srcdir:-.}/tests/tap.sh"
whole() { # whole REASON: nothing can be tried
    echo "1..1"
    echo "ok 1 - the wheel # SKIP $1"
    exit 0
}
[ -n "${SANITIZER_CFLAGS:-}" ] && whole 'the interpreter is not built with the sanitizers'
case ${PYTHON:-:} in :) whole 'no Python of 3.11 or later' ;; esac
$PYTHON -m venv "$scratch/venv" >"$log" 2>&1 || whole 'no venv: install python3-venv'
if ! $MAKE -s -C "$builddir" python-package >"$log" 2>&1; then
    grep -q 'no Python.h' "$log" && whole 'no Python.h: install python3-dev'
fi
unset STRATA_PLUGIN_DIR STRATA_PLUGIN_PATH STRATA_DEVICE_PATH PYTHONPATH LD_LIBRARY_PATH
export STRATA_TRIAL=no PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
python=$scratch/venv/bin/python

STRATA_BUILD=$builddir $python -m pip install -q --no-index "$srcdir/python" >"$log" 2>&1
result $? 'pip installs the package from the sources'
cd "$scratch" || exit 99

"$python" "$srcdir/tests/python/run.py" test_call test_exchange test_layer test_package test_session \
    test_submit >"$log" 2>&1
result $? 'the tests of the package hold there'
expect 0 '^ok|Convolution' 'python -m strata finds the plugins in the wheel' \
    "$python" -m strata describe Convolution
expect 0 "$scratch/venv/" 'libstrata is the wheel'"'"'s' "$python" -c \
    'import strata; print([l for l in open("/proc/self/maps") if "libstrata" in l][0])'

pypi() { timeout 100 "$python" -m pip install -q --only-binary :all: "$@" >"$log" 2>&1; }
claim='the examples of docs/python.md run'
if pypi numpy; then
    "$python" "$srcdir/tests/python/run.py" test_docs test_exchange >"$log" 2>&1
    result $? "$claim"
else
    skip "$claim" 'no NumPy can be had'
fi
claim='the stubs are those of the package'
if pypi mypy; then
    "$python" -m mypy.stubtest strata._strata strata._check --allowlist "$srcdir/tests/python/stubtest.txt" \
        >"$log" 2>&1 && "$python" -m mypy --strict -p strata >>"$log" 2>&1
    result $? "$claim"
else
    skip "$claim" 'no mypy can be had'
fi
finish
