/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules made while a test runs: a scratch folder, the C compiler, bytes patched.
 */
#ifndef BROKEN_BUILD_H
#define BROKEN_BUILD_H

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAKY "../examples/plugins/leaky_relu/leaky_relu.c"
#define SHARED "-shared -fPIC -fvisibility=hidden"

struct blob {
    unsigned char *bytes;
    size_t size;
};

static char scratch[256]; /* this test's folder; trusted: mode 0700 */

static inline const char *env_or(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value && value[0] ? value : fallback;
}

static inline void scratch_make(void)
{
    snprintf(scratch, sizeof scratch, "%s/strata-test-XXXXXX", env_or("TMPDIR", "/tmp"));
    cr_assert_not_null(mkdtemp(scratch), "cannot make %s", scratch);
    umask(022);
}

static inline void scratch_remove(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    cr_expect_eq(system(command), 0, "cannot remove %s", scratch);
}

/* Path of a file in the scratch folder; four at a time. */
static inline const char *in_scratch(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

/* Compile tests/SOURCE with flags into a file of the scratch folder; its path. */
__attribute__((format(printf, 3, 4))) static inline const char *
build(const char *output, const char *source, const char *format, ...)
{
    char flags[2048], command[4096];
    const char *path = in_scratch(output);
    const char *top = env_or("srcdir", ".");
    va_list args;
    va_start(args, format);
    vsnprintf(flags, sizeof flags, format, args);
    va_end(args);
    snprintf(command, sizeof command, "%s '%s/tests/%s' -I'%s/include' -o '%s' %s",
             env_or("CC", "cc"), top, source, top, path, flags);
    cr_assert_eq(system(command), 0, "failed: %s", command);
    return path;
}

static inline struct blob slurp(const char *path)
{
    struct blob b = {0};
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "cannot open %s", path);
    fseek(f, 0, SEEK_END);
    b.size = (size_t)ftell(f);
    rewind(f);
    b.bytes = malloc(b.size + 1);
    cr_assert_eq(fread(b.bytes, 1, b.size, f), b.size);
    fclose(f);
    return b;
}

static inline const char *spill(const char *name, const void *bytes, size_t size)
{
    const char *path = in_scratch(name);
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "cannot write %s", path);
    cr_assert_eq(fwrite(bytes, 1, size, f), size);
    fclose(f);
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
