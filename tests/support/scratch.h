/* SPDX-License-Identifier: Apache-2.0
 *
 * A scratch folder for each test, and whole files in it: a suite begins with scratch_make
 * and ends with scratch_remove.
 */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static inline const char *spill_text(const char *name, const char *text)
{
    return spill(name, text, strlen(text));
}

#endif /* TESTS_SUPPORT_SCRATCH_H */
