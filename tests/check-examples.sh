#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: the examples of applications are small, use public headers alone, and do what they
# say, on the host.
srcdir=${srcdir:-.} builddir=${builddir:-.}
digits=$srcdir/examples/digits
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
number=0 failed=0

report() { # STATUS CLAIM
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then echo "ok $number - $2"; else
        echo "not ok $number - $2"
        sed 's/^/# /' "$scratch/log"
        failed=1
    fi
}

# The second test digit, scaled as digits.ini says.
python3 - "$digits/digits-test-images.idx" >"$scratch/input" <<'END'
import struct, sys
pixels = open(sys.argv[1], "rb").read()[16 + 64:16 + 128]
sys.stdout.buffer.write(struct.pack("64f", *(p / 240 for p in pixels)))
END
label=$(od -An -tu1 -j9 -N1 "$digits/digits-test-labels.idx" | tr -d ' ')

lines=$(wc -l <"$srcdir/examples/minimal.c")
echo "$lines lines" >"$scratch/log"
[ "$lines" -lt 60 ]
report $? 'minimal.c is under 60 lines'

! grep -n '#include' "$srcdir"/examples/minimal.c "$srcdir"/examples/serve/*.c |
    grep -v '#include <' >"$scratch/log"
report $? 'the examples include no private header'

answer=$("$builddir/examples/minimal" "$digits/digits.ini" "$scratch/input" \
    2>"$scratch/log")
echo "answer '$answer', written $label" >>"$scratch/log"
[ "${answer%% *}" = "$label" ]
report $? 'minimal reads a digit'

! "$builddir/examples/minimal" "$digits/digits.ini" /dev/null >"$scratch/log" 2>&1 &&
    grep -q '^minimal: 0 bytes of 256' "$scratch/log"
report $? 'minimal says what is wrong with its input'

"$builddir/examples/serve/serve" "$digits" host 8 1795 >"$scratch/log" 2>&1 &&
    grep -q '^1795 requests by 8 workers .*; 1780 right$' "$scratch/log"
report $? 'eight workers serve 1795 digits, 1780 of them right as by one'

! "$builddir/examples/serve/serve" "$scratch" >"$scratch/log" 2>&1 &&
    grep -q 'cannot read' "$scratch/log"
report $? 'serve says what it cannot read'
echo "1..$number"
exit $failed
