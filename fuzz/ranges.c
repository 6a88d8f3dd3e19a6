/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a table of ranges. What is read is sorted, in order, and
 * written reads back as the same text.
 */
#include <stdlib.h>
#include <string.h>

#include "calibrate/ranges.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ranges *r)
{
    struct ranges again = {0};
    char *text, *same;
    size_t n, m;
    for (size_t i = 0; i < r->n; i++)
        if (ranges_find(r, r->list[i].tensor) != &r->list[i] ||
            !(r->list[i].low <= r->list[i].high) || r->list[i].seen < 0 ||
            (i && strcmp(r->list[i - 1].tensor, r->list[i].tensor) >= 0))
            abort();
    if (ranges_text(&text, &n, r, NULL) != STRATA_OK ||
        ranges_parse(&again, text, n, "again", NULL) != STRATA_OK ||
        ranges_text(&same, &m, &again, NULL) != STRATA_OK || m != n ||
        memcmp(text, same, n) != 0)
        abort();
    ranges_free(&again);
    free(text);
    free(same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ranges r = {0};
    strata_error err = {0};
    const int status = ranges_parse(&r, (const char *)data, size, "fuzz", &err);
    if (status != err.status)
        abort();
    if (status == STRATA_OK)
        check(&r);
    ranges_free(&r);
    return 0;
}
