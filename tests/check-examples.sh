#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: the examples of applications are small, use public headers alone, and do what they
# say, on the host.
. "${srcdir:-.}/tests/tap.sh"
digits=$srcdir/examples/digits

# The second test digit.
{ printf 'P5 8 8 255\n' && tail -c +81 "$digits/digits-test-images.idx" | head -c 64; } \
    >"$scratch/input"
label=$(od -An -tu1 -j9 -N1 "$digits/digits-test-labels.idx" | tr -d ' ')

lines=$(wc -l <"$srcdir/examples/minimal.c")
echo "$lines lines" >"$log"
[ "$lines" -lt 60 ]
result $? 'minimal.c is under 60 lines'

! grep -n '#include' "$srcdir"/examples/minimal.c "$srcdir"/examples/serve/*.c |
    grep -v '#include <' >"$log"
result $? 'the examples include no private header'

answer=$("$builddir/examples/minimal" "$digits/digits.ini" "$scratch/input" \
    2>"$log")
echo "answer '$answer', written $label" >>"$log"
[ "${answer%% *}" = "$label" ]
result $? 'minimal reads a digit'

# shellcheck disable=SC2046,SC2086
$CC ${SANITIZER_CFLAGS:-} "$srcdir/examples/minimal.c" -o "$scratch/minimal" $(
    PKG_CONFIG_PATH=$builddir/pkgconfig pkg-config --cflags --libs strata) >"$log" 2>&1 &&
    [ "$("$scratch/minimal" "$digits/digits.ini" "$scratch/input" 2>"$log")" = "$answer" ]
result $? 'a build tree serves pkg-config without an installation'

! "$builddir/examples/minimal" "$digits/digits.ini" "$digits/digits.ini" >"$log" 2>&1 &&
    grep -q '^minimal: .*digits.ini: .*not an image' "$log"
result $? 'minimal says what is wrong with its input'

"$builddir/examples/serve/serve" "$digits" host 8 1795 >"$log" 2>&1 &&
    grep -q '^1795 requests by 8 workers .*; 1780 right$' "$log"
result $? 'eight workers serve 1795 digits, 1780 of them right as by one'

! "$builddir/examples/serve/serve" "$scratch" >"$log" 2>&1 &&
    grep -q 'cannot read' "$log"
result $? 'serve says what it cannot read'
finish
