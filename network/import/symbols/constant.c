/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants that differ with sizes, said for any. Along each dim that differs, elements
 * repeat, as a row for each of a batch: then one is stored, and an Expand repeats it,
 * unless readers stretch it anyway. Or those of one size are the first of those of a
 * larger one, as places in a sequence: then the largest is stored, and a Slice cuts it.
 * Or they are from another one on, as places behind those of a cache.
 */
#include "network/import/symbols/compare.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/weights/weights.h"

/* What becomes of the constant under way. */
struct constant {
    const struct value *v[POINTS];
    int rank;
    size_t size; /* bytes of an element */
    bool varies[STRATA_MAX_RANK], once[STRATA_MAX_RANK];
    int64_t extent[STRATA_MAX_RANK][POINTS];
    /* Whose parts they are: the first import's; or, with an offset, a wide one's. Along a
     * dim of that they begin behind the first element, by as much as a symbol is larger
     * than its least size, which is `ahead`. */
    const struct value *whole;
    int along, offset; /* -1: at the first element */
    int64_t shift[POINTS], ahead;
    size_t reader; /* the first section that reads it */
    struct edit *edit;
    int value; /* that the chain of new sections begins with or has come to */
};

/* ---- elements ---- */

/* The place in the whole of an element, given by its index, from `shift` on. */
static size_t place_of(const struct constant *k, const int64_t *index, int64_t shift)
{
    size_t at = 0;
    for (int d = 0; d < k->rank; d++) {
        const int64_t i = k->once[d] ? 0 : index[d] + (d == k->along ? shift : 0);
        at = at * (size_t)k->whole->dims[d] + (size_t)i;
    }
    return at;
}

/* The next index below these dims; false: there is none. */
static bool step(int64_t *index, const int64_t *dims, int rank)
{
    for (int d = rank; d-- > 0;) {
        if (++index[d] < dims[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static bool fits(const struct constant *k, const struct value *v, int64_t shift)
{
    bool fit = shift >= 0;
    for (int d = 0; fit && d < k->rank; d++)
        fit = k->once[d] || v->dims[d] + (d == k->along ? shift : 0) <= k->whole->dims[d];
    return fit;
}

/* The same elements; zeros of both signs are, as products of masks make either. */
static bool same_elements(const char *a, const char *b, size_t bytes, int dtype)
{
    if (memcmp(a, b, bytes) == 0)
        return true;
    for (size_t i = 0; i < bytes; i += sizeof(float)) {
        float x, y;
        if (dtype != STRATA_FP32)
            return false;
        memcpy(&x, a + i, sizeof x);
        memcpy(&y, b + i, sizeof y);
        if (memcmp(&x, &y, sizeof x) != 0 && (x != 0 || y != 0))
            return false;
    }
    return true;
}

/* Whether each element of an import is that of the whole which stands for it. */
static bool is_part(const struct constant *k, const struct value *v, int64_t shift)
{
    int64_t index[STRATA_MAX_RANK] = {0};
    const int last = k->rank - 1;
    const bool rows = k->rank > 0 && !k->once[last]; /* in one piece in both */
    const size_t piece = rows ? (size_t)v->dims[last] * k->size : k->size;
    const char *from = k->whole->data, *at = v->data;
    if (value_count(v) == 0 || !fits(k, v, shift))
        return value_count(v) == 0;
    do {
        if (!same_elements(at, from + place_of(k, index, shift) * k->size, piece,
                           v->dtype))
            return false;
        at += piece;
    } while (step(index, v->dims, rows ? last : k->rank));
    return true;
}

static bool is_part_of_all(const struct comparison *c, const struct constant *k)
{
    for (int p = 0; p < c->n; p++)
        if (!is_part(k, k->v[p], k->shift[p]))
            return false;
    return true;
}

/* Dims in all imports; false: other dtypes or ranks, or the first has not the largest. */
static bool measure(const struct comparison *c, struct constant *k)
{
    for (int p = 0; p < c->n; p++) {
        const struct value *v = &c->im[p]->g.values[c->s[p]->weights[0].value];
        k->v[p] = v;
        if (v->dtype != k->v[0]->dtype || v->rank != k->v[0]->rank)
            return false;
        for (int d = 0; d < v->rank; d++) {
            k->extent[d][p] = v->dims[d];
            k->varies[d] |= v->dims[d] != k->v[0]->dims[d];
            if (v->dims[d] > k->v[0]->dims[d])
                return false;
        }
    }
    k->whole = k->v[0];
    k->rank = k->v[0]->rank;
    k->size = weight_dtype_size(weight_dtype_of(k->v[0]->dtype));
    return value_count(k->v[0]) > 0;
}

/* ---- readers ---- */

static bool is_output(const struct import *im, int value)
{
    for (size_t i = 0; i < im->g.n_outputs; i++)
        if (im->g.outputs[i] == value)
            return true;
    return false;
}

static bool reads(const struct section *s, int value)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] == value)
            return true;
    return false;
}

static size_t first_reader(const struct import *im, int value)
{
    size_t i = 0;
    while (i < im->n_sections && !reads(im->sections[i], value))
        i++;
    return i;
}

/* Whether a value of the first import is no constant, and has them there. */
static bool stretches(const struct comparison *c, int value, int d, const int64_t *extent)
{
    const struct origin o = value < 0 ? (struct origin){0} : c->origins[0][value];
    if (o.section < 0)
        return compare_has_extent(c, (size_t)(-1 - o.section), -1, d, extent);
    return o.section > 0 &&
           strcmp(c->im[0]->sections[o.section - 1]->type, "Constant") != 0 &&
           compare_has_extent(c, (size_t)(o.section - 1), o.port, d, extent);
}

static bool broadcasts(const struct section *s)
{
    return strcmp(s->type, "ElementWise") == 0 || strcmp(s->type, "Compare") == 0 ||
           strcmp(s->type, "Select") == 0;
}

/* Whether all that read a value stretch a dim of 1 to that of another input. */
static bool is_stretched(const struct comparison *c, const struct constant *k, int value,
                         int d)
{
    const struct import *im = c->im[0];
    for (size_t i = k->reader; i < im->n_sections; i++) {
        const struct section *s = im->sections[i];
        bool has = false;
        for (int in = 0; in < s->n_in && broadcasts(s); in++) {
            const struct value *v = graph_value(&im->g, s->in[in]);
            has |= v && s->in[in] != value &&
                   stretches(c, s->in[in], d - k->rank + v->rank, k->extent[d]);
        }
        if (reads(s, value) && !has)
            return false;
    }
    return true;
}

/* ---- new sections ---- */

static bool is_taken(const struct comparison *c, const char *name)
{
    for (size_t i = 0; i < c->im[0]->n_sections; i++)
        if (strcmp(c->im[0]->sections[i]->name, name) == 0)
            return true;
    for (size_t e = 0; e < c->n_edits; e++)
        for (int m = 0; m < c->edits[e].n_made; m++)
            if (strcmp(c->edits[e].made[m]->name, name) == 0)
                return true;
    return false;
}

/* A section of the value that the chain has come to, NAME/TYPE. Its output is not there
 * yet. */
static struct section *make(struct comparison *c, struct constant *k, const char *type)
{
    struct graph *g = &c->im[0]->g;
    struct section *s = section_make(g, type, NULL);
    if (!s)
        return NULL;
    s->name = arena_print(&g->arena, "%s/%s", c->s[0]->name, type);
    while (s->name && is_taken(c, s->name))
        s->name = arena_print(&g->arena, "%s_", s->name);
    section_in(g, s, k->value);
    if (s->name)
        k->edit->made[k->edit->n_made++] = s;
    return s;
}

/* The section's output is what the chain has come to. */
static void give(struct comparison *c, struct constant *k, struct section *s)
{
    struct graph *g = &c->im[0]->g;
    k->value = graph_add_value(g, "");
    section_out(g, s, k->value);
}

/* ---- what repeats ---- */

/* An Expand by the names of sizes; other dims that vary stay as they are. */
static void repeat(struct comparison *c, struct constant *k, const bool *which)
{
    struct graph *g = &c->im[0]->g;
    const char *shape = "";
    for (int d = 0; d < k->rank && shape; d++) {
        const int symbol = which[d] ? compare_symbol(c, k->extent[d]) : -1;
        const char *gap = d ? ", " : "";
        shape = symbol < 0 ? arena_print(&g->arena, "%s%s%" PRId64, shape, gap,
                                         k->varies[d] ? 1 : k->extent[d][0])
                           : arena_print(&g->arena, "%s%s%s", shape, gap,
                                         c->im[0]->symbols[symbol].name);
    }
    struct section *e = make(c, k, "Expand");
    section_word(g, e, "shape", shape);
    if (e)
        e->attrs[0].named = true;
    give(c, k, e);
}

/* ---- what is the beginning ---- */

static bool is_cut(const struct constant *k, int d)
{
    return k->varies[d] && !k->once[d];
}

/* One Slice of all dims whose sizes have names. */
static void cut_by_name(struct comparison *c, struct constant *k)
{
    struct graph *g = &c->im[0]->g;
    int64_t axes[STRATA_MAX_RANK], begin[STRATA_MAX_RANK] = {0};
    const char *end = "";
    int n = 0;
    for (int d = 0; d < k->rank && end; d++) {
        const bool cut = is_cut(k, d) && d != k->along;
        const int symbol = cut ? compare_symbol(c, k->extent[d]) : -1;
        if (symbol < 0)
            continue;
        end = arena_print(&g->arena, "%s%s%s", end, n ? ", " : "",
                          c->im[0]->symbols[symbol].name);
        axes[n++] = d;
    }
    if (n == 0)
        return;
    struct section *s = make(c, k, "Slice");
    section_integers(g, s, "axes", axes, n);
    section_integers(g, s, "begin", begin, n);
    section_word(g, s, "end", end);
    if (s)
        s->attrs[2].named = true;
    give(c, k, s);
}

/* A Slice of a dim that is as long as that of a tensor, from the offset on where it has
 * one; false: there is none. */
static bool cut_like(struct comparison *c, struct constant *k, int d)
{
    struct graph *g = &c->im[0]->g;
    int64_t dim;
    const int like = compare_like(c, k->reader, &k->extent[d], 1, &dim);
    if (like < 0)
        return false;
    struct section *s = make(c, k, "Slice");
    section_in(g, s, like);
    section_integer(g, s, "like", dim);
    section_integer(g, s, "axes", d);
    if (d == k->along)
        section_word(g, s, "begin", c->im[0]->symbols[k->offset].name);
    if (s && d == k->along)
        s->attrs[2].named = true;
    give(c, k, s);
    return true;
}

/* Whether the constant is stored as large as any size needs it: a symbol that it hangs on
 * has a range, of which the first import has the end. */
static bool is_whole(const struct comparison *c, const struct constant *k, int d)
{
    const struct import *im = c->im[0];
    for (int p = 1; p < c->n; p++) {
        int changed = -1, n = 0;
        for (int i = 0; i < im->n_symbols; i++)
            if (!im->symbols[i].is_sum &&
                c->im[p]->symbols[i].value != im->symbols[i].value) {
                changed = i;
                n++;
            }
        if (n != 1 || k->extent[d][p] == k->extent[d][0])
            continue;
        const struct symbol *s = &im->symbols[changed];
        if (s->least == s->most || s->value < s->most)
            return false;
    }
    return true;
}

/* ---- the constant ---- */

/* Dims that repeat whatever the size; and whether the others are stored whole. */
static bool classify(const struct comparison *c, struct constant *k, int value)
{
    const struct value *first = k->v[0];
    bool good = true;
    for (int d = 0; d < k->rank; d++) {
        bool alone[STRATA_MAX_RANK];
        memcpy(alone, k->once, sizeof alone);
        k->once[d] = k->varies[d] && (compare_symbol(c, k->extent[d]) >= 0 ||
                                      is_stretched(c, k, value, d));
        if (k->once[d] && !is_part(k, first, 0))
            memcpy(k->once, alone, sizeof alone);
    }
    for (int d = 0; d < k->rank; d++)
        good &= !is_cut(k, d) || is_whole(c, k, d);
    return good;
}

/* What stands in that place of a wide import, where layers may be gone: by its name. */
static const struct section *find_place(const struct comparison *c, const struct wide *w)
{
    const struct import *im = w->im;
    const char *name = c->s[0]->name;
    const struct section *s = c->index < im->n_sections ? im->sections[c->index] : NULL;
    for (size_t i = 0; (!s || strcmp(s->name, name) != 0) && i < im->n_sections; i++)
        if (strcmp(im->sections[i]->name, name) == 0)
            s = im->sections[i];
    return s;
}

/* Whether they are parts of what a wide import has in that place. */
static bool is_window(const struct comparison *c, struct constant *k,
                      const struct wide *w, int along)
{
    const struct symbol *first = &c->im[0]->symbols[w->offset];
    const struct section *s = find_place(c, w);
    if (!s || strcmp(s->type, "Constant") != 0 || first->value < first->most)
        return false;
    const struct value *whole = &w->im->g.values[s->weights[0].value];
    if (whole->dtype != k->v[0]->dtype || whole->rank != k->rank)
        return false;
    k->whole = whole;
    k->along = along;
    k->offset = w->offset;
    k->ahead = w->im->symbols[w->offset].value;
    for (int p = 0; p < c->n; p++)
        k->shift[p] = c->im[p]->symbols[w->offset].value - k->ahead;
    return is_part_of_all(c, k);
}

static bool find_window(struct comparison *c, struct constant *k)
{
    for (int i = 0; i < c->points->n_wide; i++)
        for (int d = 0; d < k->rank; d++)
            if (!k->once[d] && is_window(c, k, &c->points->wide[i], d))
                return true;
    c->points->lacks_wide |= c->points->n_wide == 0;
    return false;
}

/* What is stored of the whole: one of what repeats, and zeros ahead of it, which no size
 * reads. */
static int store(struct comparison *c, const struct constant *k)
{
    struct graph *g = &c->im[0]->g;
    const struct value v = *k->whole;
    int64_t dims[STRATA_MAX_RANK], index[STRATA_MAX_RANK] = {0};
    size_t n = 1;
    for (int d = 0; d < k->rank; d++) {
        dims[d] = k->once[d] ? 1 : v.dims[d] + (d == k->along ? k->ahead : 0);
        n *= (size_t)dims[d];
    }
    char *data = arena_get(&g->arena, n, k->size), *at = data;
    if (!data)
        return VALUE_NONE;
    do {
        if (k->along < 0 || index[k->along] >= k->ahead)
            memcpy(at, (const char *)v.data + place_of(k, index, -k->ahead) * k->size,
                   k->size);
        at += k->size;
    } while (step(index, dims, k->rank));
    return graph_add_constant(g, v.name, v.dtype, v.rank, dims, data);
}

/* The last value of the chain is what readers read. */
static void end_chain(struct constant *k, const struct section *s)
{
    const int was = s->out[0], n = k->edit->n_made;
    if (n == 0) {
        k->edit->out = was;
        return;
    }
    k->edit->made[n - 1]->out[0] = was;
    k->edit->made[n - 1]->ranks[0] = k->rank;
}

int compare_constant(struct comparison *c)
{
    struct graph *g = &c->im[0]->g;
    const struct section *s = c->s[0];
    const char *key = s->weights[0].name;
    struct constant k = {.along = -1, .reader = first_reader(c->im[0], s->out[0])};
    bool repeated[STRATA_MAX_RANK] = {false}, any = false, found = true;
    if (is_output(c->im[0], s->out[0]) || !measure(c, &k) ||
        !classify(c, &k, s->out[0]) || (!is_part_of_all(c, &k) && !find_window(c, &k)))
        return compare_differs(c, key);
    for (int d = 0; d < k.rank; d++)
        any |= repeated[d] = k.once[d] && !is_stretched(c, &k, s->out[0], d);
    if (!(k.edit = compare_edit(c)))
        return STRATA_ENOMEM;
    k.edit->constant = store(c, &k);
    k.edit->before = k.reader;
    k.edit->out = k.value = graph_add_value(g, s->name);
    if (k.along >= 0)
        found = cut_like(c, &k, k.along);
    cut_by_name(c, &k);
    for (int d = 0; d < k.rank && found; d++)
        if (is_cut(&k, d) && d != k.along && compare_symbol(c, k.extent[d]) < 0)
            found = cut_like(c, &k, d);
    if (!found)
        return compare_differs(c, key);
    if (any)
        repeat(c, &k, repeated);
    const int status = arena_status(&g->arena, "layers", c->err);
    if (status == STRATA_OK)
        end_chain(&k, s);
    return status;
}
