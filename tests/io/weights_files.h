/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of weights files: the memory used.
 */
#ifndef TESTS_IO_WEIGHTS_FILES_H
#define TESTS_IO_WEIGHTS_FILES_H

#include <inttypes.h>

#include "tests/support/scratch.h"

/* "VmHWM" or "VmRSS" of this process, bytes. */
static inline uint64_t memory(const char *key)
{
    char line[256];
    uint64_t kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            kilobytes = strtoull(line + strlen(key) + 1, NULL, 10);
    if (f)
        fclose(f);
    return kilobytes * 1024;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EXTRA UINT64_MAX /* shadow memory is counted too */
#else
#define EXTRA (UINT64_C(64) << 20)
#endif

/* Whether loading used at most the file's size and 64 MiB; before is of VmRSS. */
static inline void expect_peak(uint64_t before, uint64_t file_bytes)
{
    uint64_t over = memory("VmHWM") - before;
    cr_expect(over < file_bytes || over - file_bytes <= EXTRA,
              "peak is %" PRIu64 " bytes for a file of %" PRIu64, over, file_bytes);
}

#endif /* TESTS_IO_WEIGHTS_FILES_H */
