#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: what has pragmas of OpenMP compiles without it, warnings being errors, as
# ThreadSanitizer's build does. STRATA_TEST_LONG: the plugins, too.
. "${srcdir:-.}/tests/tap.sh"
cd "$srcdir" || exit 99
# The last ones are what configure has there.
flags="-std=gnu11 -D_GNU_SOURCE -DHAVE_CONFIG_H -I$builddir -I. -Iinclude
    -Wall -Wextra -Wconversion -Wvla -Wshadow -Wno-missing-field-initializers -Werror
    $(sed -n 's/.*OPENMP_CFLAGS="\(-Wno-[^"]*\)".*/\1/p' m4/strata.m4)"
for folder in core engine formats ${STRATA_TEST_LONG:+plugins/*/}; do
    files=$(grep -rl --include='*.c' 'pragma omp' "$folder")
    [ -n "$files" ] || continue
    # shellcheck disable=SC2086
    $CC $flags -fsyntax-only $files >"$log" 2>&1
    result $? "${folder%/} without OpenMP"
done
finish
