/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules made while a test runs: the C compiler, bytes patched.
 */
#ifndef BROKEN_BUILD_H
#define BROKEN_BUILD_H

#include <stdarg.h>
#include <stdint.h>

#include "tests/support/scratch.h"

#define LEAKY "../examples/plugins/leaky_relu/leaky_relu.c"
#define SHARED "-shared -fPIC -fvisibility=hidden"

/* The plugin ABI's version as messages have it. */
#define ABI_TEXT_(x) #x
#define ABI_TEXT(x) ABI_TEXT_(x)
#define THIS_ABI ABI_TEXT(STRATA_ABI_MAJOR) "." ABI_TEXT(STRATA_ABI_MINOR)

/* Compile tests/SOURCE with flags into a file of the scratch folder; its path. Skips the
 * test where there are no sources. */
__attribute__((format(printf, 3, 4))) static inline const char *
build(const char *output, const char *source, const char *format, ...)
{
    char flags[2048], command[4096];
    const char *path = in_scratch(output);
    const char *top = env_or("srcdir", ".");
    va_list args;
    snprintf(command, sizeof command, "%s/tests/%s", top, source);
    if (access(command, R_OK) != 0) /* programs alone, as on a host with a GPU */
        cr_skip_test("%s: the sources are not here", command);
    va_start(args, format);
    vsnprintf(flags, sizeof flags, format, args);
    va_end(args);
    snprintf(command, sizeof command, "%s '%s/tests/%s' -I'%s/include' -o '%s' %s",
             env_or("CC", "cc"), top, source, top, path, flags);
    cr_assert_eq(system(command), 0, "failed: %s", command);
    return path;
}

/* Where the note's magic is. */
static inline size_t find_magic(struct blob b)
{
    static const unsigned char magic[] = {'S', 'R', 'T', 'A'};
    for (size_t i = 0; i + sizeof magic <= b.size; i++)
        if (!memcmp(b.bytes + i, magic, sizeof magic))
            return i;
    cr_assert_fail("no note in the file");
    return 0;
}

#endif /* BROKEN_BUILD_H */
