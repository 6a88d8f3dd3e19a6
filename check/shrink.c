/* SPDX-License-Identifier: Apache-2.0
 *
 * A dim becomes 1, then half, then one less, in all inputs that have it; what still
 * breaks the rule is the next start.
 */
#include "check/shrink.h"

#include "check/cases.h"

/* Dim d goes from `from` to `to` wherever it is so long. */
static void replace(struct harness_shape *shapes, int n, int d, int64_t from, int64_t to)
{
    for (int i = 0; i < n; i++)
        if (d < shapes[i].rank && shapes[i].dims[d] == from)
            shapes[i].dims[d] = to;
}

/* One dim one step smaller; false: none can be. */
static bool step(struct check_finding *f, int *tries, shrink_try attempt, void *user)
{
    struct harness_shape shapes[HARNESS_INPUTS], smaller[HARNESS_INPUTS];
    char text[sizeof f->place.shapes];
    const int n = cases_parse_shapes(f->place.shapes, shapes);
    for (int d = 0; n > 0 && d < shapes[0].rank; d++) {
        const int64_t now = shapes[0].dims[d];
        const int64_t next[] = {1, now / 2, now - 1};
        for (int k = 0; k < 3; k++) {
            if (next[k] < 1 || next[k] >= now || (k > 0 && next[k] == next[k - 1]))
                continue;
            if ((*tries)-- <= 0)
                return false;
            for (int i = 0; i < n; i++)
                smaller[i] = shapes[i];
            replace(smaller, n, d, now, next[k]);
            cases_write_shapes(text, sizeof text, smaller, n);
            if (attempt(text, f, user))
                return true;
        }
    }
    return false;
}

void shrink_finding(struct check_finding *f, int tries, shrink_try attempt, void *user)
{
    while (f->place.shapes[0] && step(f, &tries, attempt, user))
        ;
}
