#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a test, and say as a comment of TAP what it and all that it waited for took:
#   tests/support/timed.sh PROGRAM [ARGUMENT]...    (of every test; make test-times reads it)
"$@"
status=$?
# In hundredths, what follows the name in stat: the state, ..., utime, stime, cutime, cstime.
if read -r stat <"/proc/$$/stat" 2>/dev/null; then
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    hundredths=$((${12} + ${13} + ${14} + ${15}))
    printf '# processor seconds: %d.%02d\n' $((hundredths / 100)) $((hundredths % 100))
fi
exit $status
