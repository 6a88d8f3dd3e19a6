#!/bin/sh
# TAP: rooms use what stands before them, by includes and by calls; see layering.py.
srcdir=$(cd "${srcdir:-.}" && pwd) builddir=$(cd "${builddir:-.}" && pwd)
if ! command -v python3 >/dev/null || ! command -v nm >/dev/null; then
    echo '1..1'
    echo 'ok 1 - rooms use what stands before them # SKIP python3 and nm are needed'
    exit 0
fi
exec python3 "$srcdir/tests/layering.py" "$srcdir" "$builddir"
