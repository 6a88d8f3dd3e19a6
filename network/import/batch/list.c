/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of integers that differ with the batch, said for any.
 */
#include "network/import/batch/compare.h"

#include <inttypes.h>
#include <string.h>

#include <strata/layers.h>

/* What an entry is for any batch; a number, -1 and 0 among them, or the symbol. */
struct entry {
    int64_t number;
    bool named;
};

struct list {
    const strata_ints *v[2];
    int n;
    struct entry any[STRATA_MAX_RANK];
};

/* Dims of input 0 as each import has them; a scalar is one dim of 1. */
static int input_dims(const struct comparison *c, int64_t out[2][STRATA_MAX_RANK])
{
    int rank = 0;
    for (int k = 0; k < 2; k++) {
        const struct value *v = &c->im[k]->g.values[c->s[k]->in[0]];
        out[k][0] = 1;
        for (int d = 0; d < v->rank; d++)
            out[k][d] = v->dims[d];
        rank = v->rank > 0 ? v->rank : 1;
    }
    return rank;
}

/* The symbol's name where the entry is its value. */
static bool name_entry(const struct comparison *c, struct list *l, int d)
{
    const int64_t a = l->v[FIRST]->v[d], b = l->v[SECOND]->v[d];
    l->any[d] = (struct entry){.number = a, .named = a != b};
    return a == b || (c->named && a == c->batch[FIRST] && b == c->batch[SECOND]);
}

static bool say_list(const struct comparison *c, struct list *l)
{
    bool said = true;
    for (int d = 0; said && d < l->n; d++)
        said = name_entry(c, l, d);
    return said;
}

/* A 1 takes the dim that the input has. */
static bool say_expand(const struct comparison *c, struct list *l)
{
    int64_t dims[2][STRATA_MAX_RANK];
    const int rank = input_dims(c, dims);
    bool said = true;
    for (int d = 0; said && d < l->n; d++) {
        const int at = d - l->n + rank;
        const bool given = at >= 0 && l->v[FIRST]->v[d] == dims[FIRST][at] &&
                           l->v[SECOND]->v[d] == dims[SECOND][at];
        said = name_entry(c, l, d);
        if (given && l->any[d].named) {
            l->any[d] = (struct entry){.number = 1};
            said = true;
        }
    }
    return said;
}

/* Dims that a Shuffle's `shape` makes of those of its input, transposed: from. */
static void resolve(const strata_ints *shape, const int64_t *from, int rank, int64_t *to)
{
    int64_t count = 1, product = 1;
    for (int d = 0; d < rank; d++)
        count *= from[d];
    for (int d = 0; d < shape->n; d++) {
        to[d] = shape->v[d] ? shape->v[d] : d < rank ? from[d] : 0;
        product *= to[d] < 0 ? 1 : to[d];
    }
    for (int d = 0; d < shape->n; d++)
        if (to[d] < 0)
            to[d] = product ? count / product : 0;
}

/* An entry by 0, or by a number, without -1. */
static bool say_dim(struct list *l, int d, int rank, int64_t from[2][STRATA_MAX_RANK],
                    int64_t to[2][STRATA_MAX_RANK])
{
    const int64_t a = to[FIRST][d], b = to[SECOND][d];
    if (d < rank && a == from[FIRST][d] && b == from[SECOND][d])
        l->any[d] = (struct entry){.number = 0};
    else if (a == b && a > 0)
        l->any[d] = (struct entry){.number = a};
    else
        return false;
    return true;
}

/* Entries stay where they agree; else 0, a number, the name, and once -1 say the same. */
static bool say_reshape(const struct comparison *c, struct list *l)
{
    int64_t dims[2][STRATA_MAX_RANK], from[2][STRATA_MAX_RANK], to[2][STRATA_MAX_RANK];
    const int rank = input_dims(c, dims);
    bool open[STRATA_MAX_RANK] = {false};
    int inferred = -1, n_open = 0;
    for (int k = 0; k < 2; k++) {
        const strata_shuffle *p = c->s[k]->params;
        for (int d = 0; d < rank; d++)
            from[k][d] = dims[k][p->first.n ? p->first.v[d] : d];
        resolve(l->v[k], from[k], rank, to[k]);
    }
    for (int d = 0; d < l->n; d++) {
        l->any[d] = (struct entry){.number = l->v[FIRST]->v[d]};
        if (l->v[FIRST]->v[d] != l->v[SECOND]->v[d])
            n_open += open[d] = !say_dim(l, d, rank, from, to);
        else if (l->any[d].number == -1)
            inferred = d;
    }
    if (n_open && inferred >= 0 && say_dim(l, inferred, rank, from, to))
        inferred = -1;
    for (int d = 0; d < l->n; d++) {
        if (!open[d])
            continue;
        const bool batch =
            to[FIRST][d] == c->batch[FIRST] && to[SECOND][d] == c->batch[SECOND];
        if (batch && c->named && n_open > 1)
            l->any[d] = (struct entry){.named = true};
        else if (inferred < 0)
            l->any[inferred = d] = (struct entry){.number = -1};
        else if (batch && c->named)
            l->any[d] = (struct entry){.named = true};
        else
            return false;
        n_open--;
    }
    return true;
}

static const char *print_list(struct comparison *c, const struct list *l)
{
    struct arena *a = &c->im[FIRST]->g.arena;
    const char *text = "";
    for (int d = 0; d < l->n && text; d++)
        text =
            l->any[d].named
                ? arena_print(a, "%s%s%s", text, d ? ", " : "", c->im[FIRST]->batch.name)
                : arena_print(a, "%s%s%" PRId64, text, d ? ", " : "", l->any[d].number);
    return text;
}

bool compare_list(struct comparison *c, const strata_attr *a, struct section_attr *out)
{
    const bool shape = strcmp(a->name, "shape") == 0;
    const char *type = c->s[FIRST]->layer->full_name;
    struct list l = {0};
    for (int k = 0; k < 2; k++)
        l.v[k] = (const void *)((const char *)c->s[k]->params + a->offset);
    if (a->type != STRATA_INTS || l.v[FIRST]->n != l.v[SECOND]->n ||
        l.v[FIRST]->n > STRATA_MAX_RANK)
        return false;
    l.n = (int)l.v[FIRST]->n;
    const bool said = shape && strcmp(type, "core::Shuffle@1") == 0  ? say_reshape(c, &l)
                      : shape && strcmp(type, "core::Expand@1") == 0 ? say_expand(c, &l)
                                                                     : say_list(c, &l);
    out->value = said ? print_list(c, &l) : NULL;
    for (int d = 0; d < l.n; d++)
        out->named |= l.any[d].named;
    return said;
}
