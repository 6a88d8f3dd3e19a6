#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a test, and say as a comment of TAP what it and all that it waited for took:
#   tests/support/timed.sh PROGRAM [ARGUMENT]...    (of every test; make test-times reads it)
# Where the quick ones run (STRATA_TEST_QUICK), those of STRATA_TEST_SAME are left out by
# name: they compute what comes out the same on every machine, for long.
if [ -n "${STRATA_TEST_QUICK:-}" ]; then
    case " ${STRATA_TEST_SAME:-} " in
    *" ${1#./} "*)
        echo "1..0 # SKIP STRATA_TEST_QUICK is set, and this is the same on every machine"
        exit 0
        ;;
    esac
fi
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
