/* SPDX-License-Identifier: Apache-2.0
 *
 * What this process has read from files, by the kernel's count.
 */
#ifndef TESTS_SUPPORT_READS_H
#define TESTS_SUPPORT_READS_H

#include <criterion/criterion.h>
#include <stdio.h>

struct reads {
    unsigned long long bytes, calls;
};

static inline struct reads reads_now(void)
{
    struct reads r = {0};
    unsigned long long written;
    FILE *f = fopen("/proc/self/io", "r");
    if (!f)
        cr_skip_test("/proc/self/io does not tell what was read");
    cr_assert_eq(
        fscanf(f, "rchar: %llu wchar: %llu syscr: %llu", &r.bytes, &written, &r.calls),
        3);
    fclose(f);
    return r;
}

/* At most 2 KiB and 24 calls a file since then, and a little besides. */
static inline void expect_few_reads(const struct reads *before, unsigned long long files)
{
    const struct reads now = reads_now();
    const unsigned long long bytes = now.bytes - before->bytes,
                             calls = now.calls - before->calls;
    cr_log_info("%llu bytes in %llu calls, of %llu files", bytes, calls, files);
    cr_expect_leq(bytes, 2048 * files + 16384, "%llu bytes of %llu files", bytes, files);
    cr_expect_leq(calls, 24 * files + 64, "%llu calls for %llu files", calls, files);
}

#endif /* TESTS_SUPPORT_READS_H */
