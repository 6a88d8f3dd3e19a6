/* SPDX-License-Identifier: Apache-2.0
 *
 * Two imports of a model, with other batches: the same layers, of the same inputs,
 * attributes and constants? What differs and can be said for any batch is said so in the
 * first: a reshape by 0 and -1, other lists by the symbol's name, a constant that is
 * repeated by an Expand.
 */
#include "network/import/batch/compare.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/weights/weights.h"

static int differs(struct comparison *c, const char *key)
{
    return error_set(c->err, STRATA_EUNSUPPORTED, "layer '%s' holds it in %s",
                     c->s[FIRST]->name, key);
}

/* ---- connections ---- */

static struct origin *find_origins(const struct import *im, strata_error *err)
{
    struct origin *out = zalloc(im->g.n_values, sizeof *out, "values", err);
    for (size_t i = 0; out && i < im->g.n_inputs; i++)
        out[im->g.inputs[i]].section = -1 - (int)i;
    for (size_t i = 0; out && i < im->n_sections; i++)
        for (int k = 0; k < im->sections[i]->n_out; k++)
            if (im->sections[i]->out[k] >= 0)
                out[im->sections[i]->out[k]] = (struct origin){(int)i + 1, k};
    return out;
}

static bool same_origin(const struct comparison *c, int a, int b)
{
    const struct origin none = {0};
    const struct origin x = a >= 0 ? c->origins[FIRST][a] : none;
    const struct origin y = b >= 0 ? c->origins[SECOND][b] : none;
    return x.section == y.section && x.port == y.port;
}

static bool same_inputs(const struct comparison *c)
{
    const struct section *a = c->s[FIRST], *b = c->s[SECOND];
    bool same = a->n_in == b->n_in && a->n_out == b->n_out;
    for (int i = 0; same && i < a->n_in; i++)
        same = same_origin(c, a->in[i], b->in[i]);
    return same;
}

static bool same_outputs(const struct comparison *c)
{
    const struct graph *a = &c->im[FIRST]->g, *b = &c->im[SECOND]->g;
    bool same = a->n_outputs == b->n_outputs;
    for (size_t i = 0; same && i < a->n_outputs; i++)
        same = same_origin(c, a->outputs[i], b->outputs[i]);
    return same;
}

/* ---- attributes ---- */

static const strata_attr *find_attribute(const struct section *s, const char *key)
{
    for (size_t i = 0; i < s->layer->n_attrs; i++)
        if (strcmp(s->layer->attrs[i].name, key) == 0)
            return &s->layer->attrs[i];
    return NULL;
}

static struct edit *add_edit(struct comparison *c)
{
    if (grow(&c->edits, &c->edits_capacity, c->n_edits, sizeof *c->edits, c->err) !=
        STRATA_OK)
        return NULL;
    c->edits[c->n_edits] = (struct edit){.section = c->s[FIRST], .attr = -1};
    return &c->edits[c->n_edits++];
}

static int edit_attribute(struct comparison *c, const strata_attr *a, int i)
{
    struct section_attr text = c->s[FIRST]->attrs[i];
    if (!a || !compare_list(c, a, &text))
        return differs(c, text.key);
    struct edit *e = add_edit(c);
    if (!e)
        return STRATA_ENOMEM;
    e->attr = i;
    e->text = text;
    return STRATA_OK;
}

static int compare_attributes(struct comparison *c)
{
    const struct section *a = c->s[FIRST], *b = c->s[SECOND];
    int status = STRATA_OK;
    for (int i = 0; i < a->n_attrs && status == STRATA_OK; i++) {
        const strata_attr *attr = find_attribute(a, a->attrs[i].key);
        if (i >= b->n_attrs || strcmp(a->attrs[i].key, b->attrs[i].key) != 0)
            status = differs(c, a->attrs[i].key);
        else if (strcmp(a->attrs[i].value, b->attrs[i].value) != 0)
            status = edit_attribute(c, attr, i);
    }
    return status == STRATA_OK && a->n_attrs < b->n_attrs
               ? differs(c, b->attrs[a->n_attrs].key)
               : status;
}

/* ---- constants ---- */

static size_t bytes_of(const struct value *v, int from)
{
    size_t n = weight_dtype_size(weight_dtype_of(v->dtype));
    for (int d = from; d < v->rank; d++)
        n *= (size_t)v->dims[d];
    return n;
}

static bool same_constant(const struct value *a, const struct value *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d];
    const size_t size = same ? bytes_of(a, 0) : 0;
    return same &&
           (a->data == b->data || size == 0 || memcmp(a->data, b->data, size) == 0);
}

/* Whether `n` pieces of so many bytes are all alike and like another. */
static bool repeats(const char *pieces, int64_t n, size_t size, const char *like)
{
    bool same = true;
    for (int64_t i = 0; same && i < n; i++)
        same = memcmp(pieces + (size_t)i * size, like, size) == 0;
    return same;
}

/* The first dim of more than one element, if both repeat the same along it as often as
 * the batch is; -1: they do not. */
static int repeated_dim(const struct comparison *c, const struct value *a,
                        const struct value *b)
{
    int at = 0;
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    while (at < a->rank && a->dims[at] == 1)
        at++;
    same = same && at < a->rank && a->dims[at] == c->batch[FIRST] &&
           b->dims[at] == c->batch[SECOND];
    for (int d = 0; same && d < a->rank; d++)
        same = d == at || a->dims[d] == b->dims[d];
    const size_t size = same ? bytes_of(a, at + 1) : 0;
    return size && repeats(a->data, a->dims[at], size, a->data) &&
                   repeats(b->data, b->dims[at], size, a->data)
               ? at
               : -1;
}

static bool is_constant(const struct comparison *c, int value)
{
    const int from = c->origins[FIRST][value].section;
    return from > 0 && strcmp(c->im[FIRST]->sections[from - 1]->type, "Constant") == 0;
}

/* Whether all that read a value stretch it to another input that has the batch there. */
static bool is_stretched(const struct comparison *c, int value, int dim)
{
    const struct import *im = c->im[FIRST];
    const int rank = im->g.values[value].rank;
    for (size_t i = 0; i < im->n_sections; i++) {
        const struct section *s = im->sections[i];
        bool reads = false, has = false;
        for (int k = 0; k < s->n_in; k++) {
            const struct value *v = graph_value(&im->g, s->in[k]);
            const int at = v ? dim - rank + v->rank : -1;
            reads |= s->in[k] == value;
            has |= at >= 0 && v->dims[at] == c->batch[FIRST] && !is_constant(c, s->in[k]);
        }
        if (reads && !(has && strcmp(s->type, "ElementWise") == 0))
            return false;
    }
    return true;
}

static bool is_output(const struct import *im, int value)
{
    for (size_t i = 0; i < im->g.n_outputs; i++)
        if (im->g.outputs[i] == value)
            return true;
    return false;
}

static const char *expand_name(struct import *im, const char *of)
{
    const char *name = arena_print(&im->g.arena, "%s/Expand", of);
    for (size_t i = 0; name && i < im->n_sections; i++)
        if (strcmp(im->sections[i]->name, name) == 0) {
            name = arena_print(&im->g.arena, "%s_", name);
            i = 0;
        }
    return name;
}

/* An Expand of the value `once` to what section s gives. */
static struct section *make_expand(struct comparison *c, const struct section *s,
                                   int once, const struct value *v, int dim)
{
    struct import *im = c->im[FIRST];
    struct section *e = section_make(&im->g, "Expand", s->node);
    const char *shape = "";
    for (int d = 0; d < v->rank && shape; d++)
        shape = d == dim ? arena_print(&im->g.arena, "%s%s%s", shape, d ? ", " : "",
                                       im->batch.name)
                         : arena_print(&im->g.arena, "%s%s%" PRId64, shape, d ? ", " : "",
                                       v->dims[d]);
    if (!e || !shape)
        return NULL;
    section_in(&im->g, e, once);
    section_out_rank(&im->g, e, s->out[0], v->rank);
    section_word(&im->g, e, "shape", shape);
    e->attrs[0].named = true;
    e->name = expand_name(im, s->name);
    return e;
}

/* The constant once, and an Expand of it where somebody needs it repeated. */
static int edit_constant(struct comparison *c, int dim)
{
    struct graph *g = &c->im[FIRST]->g;
    const struct section *s = c->s[FIRST];
    const struct value v = g->values[s->weights[0].value];
    const bool output = is_output(c->im[FIRST], s->out[0]);
    const bool stretched = !output && is_stretched(c, s->out[0], dim);
    int64_t dims[STRATA_MAX_RANK];
    if (!stretched && (output || !c->named))
        return differs(c, s->weights[0].name);
    struct edit *e = add_edit(c);
    if (!e)
        return STRATA_ENOMEM;
    memcpy(dims, v.dims, sizeof dims);
    dims[dim] = 1;
    e->constant = graph_add_constant(g, v.name, v.dtype, v.rank, dims, v.data);
    e->once = stretched ? s->out[0] : graph_add_value(g, v.name);
    if (!stretched)
        e->expand = make_expand(c, s, e->once, &v, dim);
    return arena_status(&g->arena, "a layer", c->err);
}

static int compare_weights(struct comparison *c)
{
    const struct section *a = c->s[FIRST], *b = c->s[SECOND];
    for (int i = 0; i < a->n_weights; i++) {
        const char *name = a->weights[i].name;
        if (i >= b->n_weights || strcmp(name, b->weights[i].name) != 0)
            return differs(c, name);
        const struct value *x = &c->im[FIRST]->g.values[a->weights[i].value];
        const struct value *y = &c->im[SECOND]->g.values[b->weights[i].value];
        const int dim = strcmp(a->type, "Constant") == 0 ? repeated_dim(c, x, y) : -1;
        if (same_constant(x, y))
            continue;
        if (dim < 0)
            return differs(c, name);
        return edit_constant(c, dim);
    }
    return a->n_weights < b->n_weights ? differs(c, b->weights[a->n_weights].name)
                                       : STRATA_OK;
}

/* ---- networks ---- */

static int compare_section(struct comparison *c)
{
    const struct section *a = c->s[FIRST], *b = c->s[SECOND];
    if (strcmp(a->type, b->type) != 0 || !same_inputs(c))
        return error_set(c->err, STRATA_EUNSUPPORTED,
                         "with %" PRId64
                         " of it layer '%s' is another than with %" PRId64,
                         c->batch[SECOND], a->name, c->batch[FIRST]);
    const int status = compare_attributes(c);
    return status == STRATA_OK ? compare_weights(c) : status;
}

static int compare_sections(struct comparison *c)
{
    const struct import *a = c->im[FIRST], *b = c->im[SECOND];
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < a->n_sections && i < b->n_sections;
         i++) {
        c->s[FIRST] = a->sections[i];
        c->s[SECOND] = b->sections[i];
        status = compare_section(c);
    }
    if (status == STRATA_OK && (a->n_sections != b->n_sections || !same_outputs(c)))
        status = error_set(c->err, STRATA_EUNSUPPORTED,
                           "with %" PRId64 " of it there are other layers than with "
                           "%" PRId64,
                           c->batch[SECOND], c->batch[FIRST]);
    return status;
}

static int apply(struct comparison *c)
{
    struct import *im = c->im[FIRST];
    const size_t room = 2 * im->n_sections + 1;
    struct section **all = arena_get(&im->g.arena, room, sizeof(struct section *));
    size_t n = 0, k = 0;
    if (!all)
        return arena_status(&im->g.arena, "layers", c->err);
    for (size_t i = 0; i < im->n_sections; i++) {
        struct section *s = all[n++] = im->sections[i];
        for (; k < c->n_edits && c->edits[k].section == s; k++) {
            const struct edit *e = &c->edits[k];
            if (e->attr >= 0) {
                s->attrs[e->attr] = e->text;
                continue;
            }
            s->weights[0].value = e->constant;
            s->out[0] = e->once;
            if (e->expand)
                all[n++] = e->expand;
        }
    }
    im->sections = all;
    im->n_sections = n;
    im->sections_capacity = room;
    im->g.symbol = im->batch.name;
    return STRATA_OK;
}

int import_compare(struct import *first, const struct import *second, strata_error *err)
{
    struct comparison c = {.im = {first, (struct import *)second},
                           .batch = {first->batch.value, second->batch.value},
                           .named = first->batch.n == 1,
                           .err = err};
    int status = STRATA_ENOMEM;
    c.origins[FIRST] = find_origins(first, err);
    c.origins[SECOND] = find_origins(second, err);
    if (c.origins[FIRST] && c.origins[SECOND])
        status = compare_sections(&c);
    if (status == STRATA_OK)
        status = apply(&c);
    for (int k = 0; k < 2; k++)
        free(c.origins[k]);
    free(c.edits);
    return status;
}
