#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: pip builds the package and installs it in a fresh virtual environment, where nothing
# but what is in the wheel tells it of plugins, libstrata or the command; then the wheels of
# oneDNN and CUDA join it. NumPy and mypy are tried where PyPI is there, but not with
# STRATA_TEST_QUICK: they look at files that are the same everywhere.
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

backend=$srcdir/python/backend/strata_build.py wheels=$scratch/wheels
"$python" "$backend" "$builddir" "$wheels" >"$log" 2>&1 &&
    "$python" "$backend" --split "$wheels"/strata-*.whl "$wheels/parts" >>"$log" 2>&1
result $? 'the wheels are written, oneDNN apart'
join() { # join WHEEL... : over what is installed
    "$python" -m pip install -q --no-index --no-deps --force-reinstall "$@" >"$log" 2>&1
}
onednn() { "$python" -m strata list 2>>"$log" | grep -c onednn; }
claim='impls of oneDNN come with its wheel, and go with it'
if [ -e "$builddir/plugins/.libs/onednn.so" ]; then
    join "$wheels"/parts/strata-*.whl && [ "$(onednn)" -eq 0 ] &&
        join "$wheels"/parts/strata_onednn-*.whl && [ "$(onednn)" -gt 0 ] &&
        "$python" -m pip uninstall -qy strata-onednn >>"$log" 2>&1 && [ "$(onednn)" -eq 0 ]
    result $? "$claim"
else
    skip "$claim" 'a build without oneDNN'
fi
claim='the wheel of the CUDA plugins has the device module'
if [ -e "$builddir/kernels/.libs/strata-cuda.so" ]; then
    join "$wheels"/strata_cuda13-*.whl &&
        expect 0 "$scratch/venv/.*/devices-1/strata-cuda.so|an array on cuda:0" "$claim" "$python" -c '
import strata
try:
    strata.pinned_empty((1,), device="cuda:0")
    print("an array on cuda:0")
except strata.Error:  # no driver
    print([line for line in open("/proc/self/maps") if "strata-cuda" in line][0])'
else
    skip "$claim" 'a build without CUDA'
fi

pypi() {
    [ -z "${STRATA_TEST_QUICK:-}" ] &&
        timeout 100 "$python" -m pip install -q --only-binary :all: "$@" >"$log" 2>&1
}
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
