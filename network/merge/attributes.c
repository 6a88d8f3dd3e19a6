/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of layers by name, and whether those of two layers agree.
 */
#include "network/merge/merge.h"

#include <string.h>

const strata_attr *network_find_attr(const struct network_layer *layer, const char *name)
{
    for (size_t i = 0; name && i < layer->type->n_attrs; i++)
        if (strcmp(layer->type->attrs[i].name, name) == 0)
            return &layer->type->attrs[i];
    return NULL;
}

static bool same_bytes(const void *a, const void *b, int64_t n, size_t size)
{
    return n == 0 || memcmp(a, b, (size_t)n * size) == 0;
}

static bool same_value(const strata_attr *a, const void *x, const void *y)
{
    const strata_string *s = x, *t = y;
    const strata_ints *i = x, *k = y;
    const strata_reals *p = x, *q = y;
    switch (a->type) {
    case STRATA_BOOL:
    case STRATA_ENUM:
        return memcmp(x, y, sizeof(int32_t)) == 0;
    case STRATA_STRING:
        return s->length == t->length &&
               same_bytes(s->text, t->text, (int64_t)s->length, 1);
    case STRATA_INTS:
        return i->n == k->n && same_bytes(i->v, k->v, i->n, sizeof *i->v);
    case STRATA_REALS:
        return p->n == q->n && same_bytes(p->v, q->v, p->n, sizeof *p->v);
    default: /* 64 bits; equal numbers that differ in bits are no loss */
        return memcmp(x, y, sizeof(int64_t)) == 0;
    }
}

bool network_same_attributes(const struct network_layer *a, const struct network_layer *b,
                             const strata_attr *but)
{
    for (size_t i = 0; i < a->type->n_attrs; i++) {
        const strata_attr *attr = &a->type->attrs[i];
        if (attr != but && !same_value(attr, (const char *)a->params + attr->offset,
                                       (const char *)b->params + attr->offset))
            return false;
    }
    return true;
}
