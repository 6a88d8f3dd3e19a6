#!/bin/sh
# TAP: every built-in plugin keeps the contract, as `strata check` sees it: quickly, as
# tests/layers tries more shapes and formats, but with STRATA_TEST_LONG. With
# STRATA_TEST_QUICK a third of them.
builddir=${builddir:-.}
quick=--quick
[ -z "${STRATA_TEST_LONG:-}" ] || quick=
number=0 failed=0 seen=0
for plugin in "$builddir"/plugins/.libs/*.so; do
    seen=$((seen + 1))
    [ -z "${STRATA_TEST_QUICK:-}" ] || [ $((seen % 3)) -eq 0 ] || continue
    number=$((number + 1)) name=$(basename "$plugin" .so)
    report=$("$builddir/strata" check "$plugin" --tap $quick --time-limit 300 2>&1)
    if [ $? -eq 0 ]; then
        echo "ok $number - $name"
    else
        failed=1
        echo "not ok $number - $name"
        echo "$report" | grep -v '^ok' | sed 's/^/# /'
    fi
done
echo "1..$number"
exit $failed
