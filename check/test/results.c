/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs leave, read and compared.
 */
#include "check/test/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void results_free(struct results *r)
{
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        free(r->out[i]);
}

bool results_read(struct results *r, const struct session *s)
{
    for (int i = 0; i < s->node.n_out; i++) {
        if (!r->out[i])
            r->out[i] = malloc((size_t)s->out[i].count * VALUE_SIZE + 1);
        if (!r->out[i])
            return false;
        session_read(s, i, r->out[i]);
    }
    return true;
}

bool results_differ(const struct results *a, const struct results *b,
                    const struct session *s, char *text, size_t size)
{
    char is[NUMBER_TEXT], was[NUMBER_TEXT];
    for (int i = 0; i < s->node.n_out; i++) {
        const unsigned char *before = a->out[i], *now = b->out[i];
        for (int64_t k = 0; k < s->out[i].count; k++)
            if (memcmp(&before[k * VALUE_SIZE], &now[k * VALUE_SIZE], VALUE_SIZE) != 0) {
                snprintf(text, size, "output %d, element %lld is %s, was %s", i,
                         (long long)k, number_text(is, now, s->out[i].dtype, k),
                         number_text(was, before, s->out[i].dtype, k));
                return true;
            }
    }
    return false;
}

bool results_exact(const struct trial *t)
{
    return !(t->impl->impl.flags & STRATA_NONDETERMINISTIC);
}

bool seen_before(const struct seen *last, const struct trial *t)
{
    char now[sizeof last->shapes];
    trial_shapes(t, now, sizeof now);
    return last->impl == t->impl && strcmp(last->shapes, now) == 0;
}

void mark_seen(struct seen *last, const struct trial *t)
{
    last->impl = t->impl;
    trial_shapes(t, last->shapes, sizeof last->shapes);
}
