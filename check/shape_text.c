/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes of inputs as options and findings write them: "3x8,none,3x8x5x5".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/cases.h"

#define NONE "none"

int cases_parse_shapes(const char *text, struct harness_shape shapes[HARNESS_INPUTS])
{
    int n = 0;
    memset(shapes, 0, HARNESS_INPUTS * sizeof *shapes);
    while (*text && n < HARNESS_INPUTS) {
        char *end;
        struct harness_shape *s = &shapes[n];
        if (strncmp(text, NONE, sizeof NONE - 1) == 0) {
            text += sizeof NONE - 1;
            if (*text && *text != ',')
                return -1;
            text += *text == ',';
            n++;
            continue;
        }
        s->dims[s->rank++] = strtoll(text, &end, 10);
        if (end == text || (*end && *end != 'x' && *end != ',') ||
            (*end == 'x' && s->rank == STRATA_MAX_RANK))
            return -1;
        n += *end != 'x';
        text = *end ? end + 1 : end;
    }
    return *text ? -1 : n;
}

void cases_write_shapes(char *text, size_t size, const struct harness_shape *shapes,
                        int n)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < n && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "," : "",
                                 shapes[i].rank ? "" : NONE);
        for (int d = 0; d < shapes[i].rank && used < size; d++)
            used += (size_t)snprintf(text + used, size - used, "%s%lld", d ? "x" : "",
                                     (long long)shapes[i].dims[d]);
    }
}
