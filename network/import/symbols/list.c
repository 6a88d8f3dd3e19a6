/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of integers that differ with sizes, said for any.
 */
#include "network/import/symbols/compare.h"

#include <inttypes.h>
#include <string.h>

#include <strata/layers.h>

#include "core/alloc.h"

/* What an entry is for any size; a number, -1 and 0 among them, or a symbol. */
struct entry {
    int64_t number;
    int symbol;          /* -1: a number */
    int64_t times, over; /* by which a symbol's size is taken */
    bool sum;            /* and this is added: the other symbol's size, or the number */
    int plus;            /* -1: the number */
};

/* By import. */
struct list {
    const strata_ints *v[POINTS];
    int n;
    struct entry any[STRATA_MAX_RANK];
    bool dropped; /* nothing need be said */
};

typedef int64_t dims_of[POINTS][STRATA_MAX_RANK];

/* Entry d in all imports. */
static void column(const struct comparison *c, const struct list *l, int d,
                   int64_t out[POINTS])
{
    for (int p = 0; p < c->n; p++)
        out[p] = l->v[p]->v[d];
}

static void dims_column(const struct comparison *c, dims_of dims, int d,
                        int64_t out[POINTS])
{
    for (int p = 0; p < c->n; p++)
        out[p] = dims[p][d];
}

static bool same_columns(const struct comparison *c, const int64_t *a, const int64_t *b)
{
    for (int p = 0; p < c->n; p++)
        if (a[p] != b[p])
            return false;
    return true;
}

/* Dims of input 0 as each import has them; a scalar is one dim of 1. */
static int input_dims(const struct comparison *c, dims_of out)
{
    int rank = 0;
    for (int p = 0; p < c->n; p++) {
        const struct value *v = &c->im[p]->g.values[c->s[p]->in[0]];
        out[p][0] = 1;
        for (int d = 0; d < v->rank; d++)
            out[p][d] = v->dims[d];
        rank = v->rank > 0 ? v->rank : 1;
    }
    return rank;
}

static struct entry number(int64_t v)
{
    return (struct entry){.number = v, .symbol = -1};
}

/* The symbol whose sizes they are, or are so many times as much or a whole part of, but
 * of the batch, whose rows would not be rows. */
static bool say_part(const struct comparison *c, const int64_t *v, struct entry *out)
{
    const struct import *im = c->im[0];
    const int symbol = compare_symbol(c, v);
    if (symbol >= 0) {
        *out = (struct entry){.symbol = symbol, .times = 1, .over = 1};
        return true;
    }
    for (int i = 0; i < im->n_symbols; i++) {
        const struct symbol *s = &im->symbols[i];
        const int64_t size = s->value, times = v[0] > size ? v[0] / size : 1,
                      over = v[0] < size && v[0] > 0 ? size / v[0] : 1;
        bool same = !*s->reason && !s->first && !s->is_sum && s->step % over == 0 &&
                    s->most % over == 0;
        for (int p = 0; same && p < c->n; p++)
            same = c->im[p]->symbols[i].value * times == v[p] * over;
        if (same) {
            *out = (struct entry){.symbol = i, .times = times, .over = over};
            return true;
        }
    }
    return false;
}

static bool may_be_added(const struct symbol *s)
{
    return symbol_varies(s) && !s->first;
}

/* Two symbols' sizes, as keys of a past and of a run; or one's and a number. */
static bool say_sum(const struct comparison *c, const int64_t *v, struct entry *out)
{
    const struct import *im = c->im[0];
    for (int k = 0; k < im->n_symbols * (im->n_symbols + 1); k++) {
        const int a = k % im->n_symbols, b = k / im->n_symbols - 1; /* b -1: a number */
        if (!may_be_added(&im->symbols[a]) ||
            (b >= 0 && (b <= a || !may_be_added(&im->symbols[b]))))
            continue;
        const int64_t more = b < 0 ? v[0] - im->symbols[a].value : 0;
        bool same = b >= 0 || more > 0;
        for (int p = 0; same && p < c->n; p++)
            same = v[p] == c->im[p]->symbols[a].value + more +
                               (b < 0 ? 0 : c->im[p]->symbols[b].value);
        if (same) {
            *out = (struct entry){.symbol = a,
                                  .times = 1,
                                  .over = 1,
                                  .sum = true,
                                  .plus = b,
                                  .number = more};
            return true;
        }
    }
    return false;
}

static bool say_size(const struct comparison *c, const int64_t *v, struct entry *out)
{
    return say_part(c, v, out) || say_sum(c, v, out);
}

/* A number where all agree, else the symbols that say them. */
static bool say(const struct comparison *c, const int64_t *v, struct entry *out)
{
    *out = number(v[0]);
    return compare_equal(c, v) || say_size(c, v, out);
}

static bool say_list(const struct comparison *c, struct list *l)
{
    int64_t v[POINTS];
    bool said = true;
    for (int d = 0; said && d < l->n; d++) {
        column(c, l, d, v);
        said = say(c, v, &l->any[d]);
    }
    return said;
}

/* A 1 takes the dim that the input has. */
static bool say_expand(const struct comparison *c, struct list *l)
{
    dims_of dims;
    int64_t v[POINTS], own[POINTS];
    const int rank = input_dims(c, dims);
    bool said = true;
    for (int d = 0; said && d < l->n; d++) {
        const int at = d - l->n + rank;
        column(c, l, d, v);
        if (at >= 0)
            dims_column(c, dims, at, own);
        if (at >= 0 && !compare_equal(c, v) && same_columns(c, v, own))
            l->any[d] = number(1);
        else
            said = say(c, v, &l->any[d]);
    }
    return said;
}

/* ---- ranges ---- */

/* A begin or an end that lies as far from the end of the dim in all imports; behind the
 * last element or before the first one, any number does that is far enough. */
static bool say_from_end(const struct comparison *c, int64_t *v, const int64_t *dim,
                         bool end, bool forth, struct entry *out)
{
    for (int p = 0; p < c->n; p++)
        v[p] -= end && !forth ? -1 - dim[p] : dim[p];
    *out = number(end && !forth ? -INT32_MAX : v[0] < 0 ? v[0] : INT32_MAX);
    return compare_equal(c, v) && (end && !forth ? v[0] == 0 : v[0] < (end ? 1 : 0));
}

static bool say_range(const struct comparison *c, struct list *l, bool end)
{
    const strata_slice *s = c->s[0]->params;
    dims_of dims;
    int64_t v[POINTS], dim[POINTS];
    const int rank = input_dims(c, dims);
    bool said = true;
    l->dropped = end;
    for (int k = 0; said && k < l->n; k++) {
        const int64_t axis = s->axes.n ? s->axes.v[k] : k;
        column(c, l, k, v);
        dims_column(c, dims, (int)(axis < 0 ? axis + rank : axis), dim);
        said = say(c, v, &l->any[k]) ||
               say_from_end(c, v, dim, end, !s->step.n || s->step.v[k] > 0, &l->any[k]);
        l->dropped &= l->any[k].symbol < 0 && l->any[k].number == INT32_MAX;
    }
    return said;
}

/* ---- reshapes ---- */

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
static bool say_dim(const struct comparison *c, struct list *l, int d, int rank,
                    dims_of from, dims_of to)
{
    int64_t own[POINTS], v[POINTS];
    dims_column(c, to, d, v);
    if (d < rank)
        dims_column(c, from, d, own);
    if (d < rank && same_columns(c, v, own))
        l->any[d] = number(0);
    else if (compare_equal(c, v) && v[0] > 0)
        l->any[d] = number(v[0]);
    else
        return false;
    return true;
}

/* Entries that no 0 and no number says: by -1, once, and by symbols. */
static bool say_open(const struct comparison *c, struct list *l, const bool *open,
                     int n_open, int inferred, dims_of to)
{
    int64_t v[POINTS];
    for (int d = 0; d < l->n; d++) {
        if (!open[d])
            continue;
        dims_column(c, to, d, v);
        const bool whole = compare_symbol(c, v) >= 0 && (n_open > 1 || inferred >= 0);
        if (!whole && inferred < 0)
            l->any[inferred = d] = number(-1);
        else if (!say_size(c, v, &l->any[d]))
            return false;
        n_open--;
    }
    return true;
}

/* Entries stay where they agree; else 0, a number, symbols, and once -1 say the same. */
static bool say_reshape(const struct comparison *c, struct list *l)
{
    dims_of dims, from, to;
    const int rank = input_dims(c, dims);
    bool open[STRATA_MAX_RANK] = {false};
    int inferred = -1, n_open = 0;
    for (int p = 0; p < c->n; p++) {
        const strata_shuffle *s = c->s[p]->params;
        for (int d = 0; d < rank; d++)
            from[p][d] = dims[p][s->first.n ? s->first.v[d] : d];
        resolve(l->v[p], from[p], rank, to[p]);
    }
    for (int d = 0; d < l->n; d++) {
        int64_t v[POINTS];
        column(c, l, d, v);
        l->any[d] = number(v[0]);
        if (!compare_equal(c, v))
            n_open += open[d] = !say_dim(c, l, d, rank, from, to);
        else if (v[0] == -1)
            inferred = d;
    }
    if (n_open && inferred >= 0 && say_dim(c, l, inferred, rank, from, to))
        inferred = -1;
    if (say_open(c, l, open, n_open, inferred, to))
        return true;
    if (inferred < 0) /* else what it is may have a name, and another be -1 */
        return false;
    open[inferred] = true;
    return say_open(c, l, open, n_open + 1, -1, to);
}

/* ---- the text ---- */

static const char *print_entry(const struct comparison *c, const struct entry *e)
{
    struct arena *a = &c->im[0]->g.arena;
    const struct symbol *all = c->im[0]->symbols;
    if (e->symbol < 0)
        return arena_print(a, "%" PRId64, e->number);
    const char *name = all[e->symbol].name;
    return e->sum && e->plus >= 0 ? arena_print(a, "%s+%s", name, all[e->plus].name)
           : e->sum               ? arena_print(a, "%s+%" PRId64, name, e->number)
           : e->times > 1         ? arena_print(a, "%s*%" PRId64, name, e->times)
           : e->over > 1          ? arena_print(a, "%s/%" PRId64, name, e->over)
                                  : name;
}

static const char *print_list(const struct comparison *c, const struct list *l)
{
    const char *text = "";
    for (int d = 0; d < l->n && text; d++) {
        const char *entry = print_entry(c, &l->any[d]);
        text = entry
                   ? arena_print(&c->im[0]->g.arena, "%s%s%s", text, d ? ", " : "", entry)
                   : NULL;
    }
    return text;
}

/* ---- another tensor's dims ---- */

/* Sizes of axes, which another tensor has: `like` in place of the list. */
static bool say_like(struct comparison *c, int64_t (*extents)[POINTS], int n,
                     struct edit *e)
{
    struct arena *a = &c->im[0]->g.arena;
    int64_t dims[STRATA_MAX_RANK];
    e->like =
        c->s[0]->n_in == 1 ? compare_like(c, c->index, extents, n, dims) : VALUE_NONE;
    if (e->like < 0)
        return false;
    e->text = (struct section_attr){.key = "like", .value = ""};
    for (int k = 0; k < n && e->text.value; k++)
        e->text.value =
            arena_print(a, "%s%s%" PRId64, e->text.value, k ? ", " : "", dims[k]);
    return e->text.value != NULL;
}

/* The sizes that a Resize gives its axes. */
static bool say_sizes_like(struct comparison *c, const struct list *l, struct edit *e)
{
    int64_t extents[STRATA_MAX_RANK][POINTS];
    for (int k = 0; k < l->n; k++)
        column(c, l, k, extents[k]);
    return say_like(c, extents, l->n, e);
}

/* The lengths of a Slice's ranges, from where it says itself. */
static bool say_ends_like(struct comparison *c, const struct list *l, struct edit *e)
{
    int64_t extents[STRATA_MAX_RANK][POINTS];
    for (int p = 0; p < c->n; p++) {
        const strata_slice *s = c->s[p]->params;
        const struct value *y = graph_value(&c->im[p]->g, c->s[p]->out[0]);
        if (!y || s->step.n || !s->axes.n)
            return false;
        for (int k = 0; k < l->n; k++)
            extents[k][p] = y->dims[s->axes.v[k]];
    }
    return say_like(c, extents, l->n, e);
}

/* ---- layers ---- */

static bool say_shuffle(const struct comparison *c, struct list *l, const char *key)
{
    return strcmp(key, "shape") == 0 ? say_reshape(c, l) : say_list(c, l);
}

static bool say_shape(const struct comparison *c, struct list *l, const char *key)
{
    return strcmp(key, "shape") == 0 ? say_expand(c, l) : say_list(c, l);
}

static bool say_slice(const struct comparison *c, struct list *l, const char *key)
{
    const strata_slice *s = c->s[0]->params;
    const bool begin = strcmp(key, "begin") == 0, end = strcmp(key, "end") == 0;
    return (begin || end) && !s->like.n ? say_range(c, l, end) : say_list(c, l);
}

/* What a layer's lists say besides numbers and symbols; or, in place of the list of that
 * key, what another tensor says. */
static const struct rule {
    const char *type;
    bool (*say)(const struct comparison *c, struct list *l, const char *key);
    const char *key;
    bool (*like)(struct comparison *c, const struct list *l, struct edit *e);
} rules[] = {
    {"core::Shuffle@1", say_shuffle, NULL, NULL},
    {"core::Expand@1", say_shape, NULL, NULL},
    {"core::Slice@1", say_slice, "end", say_ends_like},
    {"core::Resize@1", NULL, "size", say_sizes_like},
};

static const struct rule *find_rule(const struct section *s)
{
    static const struct rule none = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (strcmp(s->layer->full_name, rules[i].type) == 0)
            return &rules[i];
    return &none;
}

static bool read_list(const struct comparison *c, const strata_attr *a, struct list *l)
{
    bool known = a->type == STRATA_INTS;
    for (int p = 0; known && p < c->n; p++) {
        l->v[p] = (const void *)((const char *)c->s[p]->params + a->offset);
        known = l->v[p]->n == l->v[0]->n && l->v[p]->n <= STRATA_MAX_RANK;
    }
    l->n = known ? (int)l->v[0]->n : 0;
    return known;
}

bool compare_list(struct comparison *c, const strata_attr *a, struct edit *e)
{
    const struct rule *rule = find_rule(c->s[0]);
    struct list l = {0};
    if (!read_list(c, a, &l))
        return false;
    if (!(rule->say ? rule->say(c, &l, a->name) : say_list(c, &l)))
        return rule->like && strcmp(rule->key, a->name) == 0 && rule->like(c, &l, e);
    e->text.value = l.dropped ? NULL : print_list(c, &l);
    for (int d = 0; d < l.n; d++)
        e->text.named |= l.any[d].symbol >= 0;
    return true;
}
