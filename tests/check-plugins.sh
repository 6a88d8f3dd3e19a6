#!/bin/sh
# TAP: every built-in plugin keeps the contract, as `strata check` sees it.
builddir=${builddir:-.}
number=0 failed=0
for plugin in "$builddir"/plugins/.libs/*.so; do
    number=$((number + 1)) name=$(basename "$plugin" .so)
    report=$("$builddir/strata" check "$plugin" --tap --time-limit 300 2>&1)
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
