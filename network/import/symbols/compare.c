/* SPDX-License-Identifier: Apache-2.0
 *
 * Imports of a model at several sizes: the same layers, of the same inputs, attributes
 * and constants? What differs and can be said for any size is said so in the first.
 */
#include "network/import/symbols/compare.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/weights/weights.h"

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

/* Whether value b of import p comes from where a of the first does. */
static bool same_origin(const struct comparison *c, int p, int a, int b)
{
    const struct origin none = {0};
    const struct origin x = a >= 0 ? c->origins[0][a] : none;
    const struct origin y = b >= 0 ? c->origins[p][b] : none;
    return x.section == y.section && x.port == y.port;
}

static bool same_layers(const struct comparison *c)
{
    const struct section *a = c->s[0];
    bool same = true;
    for (int p = 1; same && p < c->n; p++) {
        const struct section *b = c->s[p];
        same =
            strcmp(a->type, b->type) == 0 && a->n_in == b->n_in && a->n_out == b->n_out;
        for (int i = 0; same && i < a->n_in; i++)
            same = same_origin(c, p, a->in[i], b->in[i]);
    }
    return same;
}

/* As many sections and outputs, and these of the same ones. */
static bool same_ends(const struct comparison *c)
{
    const struct import *a = c->im[0];
    bool same = true;
    for (int p = 1; same && p < c->n; p++) {
        const struct import *b = c->im[p];
        same = a->n_sections == b->n_sections && a->g.n_outputs == b->g.n_outputs;
        for (size_t i = 0; same && i < a->g.n_outputs; i++)
            same = same_origin(c, p, a->g.outputs[i], b->g.outputs[i]);
    }
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

static int edit_attribute(struct comparison *c, int i)
{
    const struct section_attr was = c->s[0]->attrs[i];
    const strata_attr *a = find_attribute(c->s[0], was.key);
    struct edit *e = compare_edit(c);
    if (!e)
        return STRATA_ENOMEM;
    e->attr = i;
    e->text = was;
    return a && compare_list(c, a, e) ? STRATA_OK : compare_differs(c, was.key);
}

static int compare_attributes(struct comparison *c)
{
    const struct section *a = c->s[0];
    int status = STRATA_OK;
    for (int i = 0; i < a->n_attrs && status == STRATA_OK; i++) {
        bool same = true;
        for (int p = 1; p < c->n; p++) {
            const struct section *b = c->s[p];
            if (i >= b->n_attrs || strcmp(a->attrs[i].key, b->attrs[i].key) != 0)
                return compare_differs(c, a->attrs[i].key);
            same &= strcmp(a->attrs[i].value, b->attrs[i].value) == 0;
        }
        status = same ? STRATA_OK : edit_attribute(c, i);
    }
    for (int p = 1; p < c->n && status == STRATA_OK; p++)
        if (a->n_attrs < c->s[p]->n_attrs)
            status = compare_differs(c, c->s[p]->attrs[a->n_attrs].key);
    return status;
}

/* ---- weights ---- */

static bool same_constant(const struct value *a, const struct value *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    size_t size = weight_dtype_size(weight_dtype_of(a->dtype));
    for (int d = 0; same && d < a->rank; d++) {
        same = a->dims[d] == b->dims[d];
        size *= (size_t)a->dims[d];
    }
    return same &&
           (a->data == b->data || size == 0 || memcmp(a->data, b->data, size) == 0);
}

static int compare_weights(struct comparison *c)
{
    const struct section *a = c->s[0];
    bool same = true;
    for (int p = 1; p < c->n; p++) {
        const struct section *b = c->s[p];
        for (int i = 0; i < a->n_weights; i++) {
            const char *name = a->weights[i].name;
            if (i >= b->n_weights || strcmp(name, b->weights[i].name) != 0)
                return compare_differs(c, name);
            if (same_constant(&c->im[0]->g.values[a->weights[i].value],
                              &c->im[p]->g.values[b->weights[i].value]))
                continue;
            same = false;
            if (strcmp(a->type, "Constant") != 0)
                return compare_differs(c, name);
        }
        if (a->n_weights < b->n_weights)
            return compare_differs(c, b->weights[a->n_weights].name);
    }
    return same ? STRATA_OK : compare_constant(c);
}

/* ---- networks ---- */

static int compare_sections(struct comparison *c)
{
    size_t n = c->im[0]->n_sections;
    int status = STRATA_OK;
    for (int p = 1; p < c->n; p++)
        n = c->im[p]->n_sections < n ? c->im[p]->n_sections : n;
    for (size_t i = 0; status == STRATA_OK && i < n; i++) {
        c->index = i;
        for (int p = 0; p < c->n; p++)
            c->s[p] = c->im[p]->sections[i];
        if (!same_layers(c))
            return error_set(c->err, STRATA_EUNSUPPORTED,
                             "at another size of it layer '%s' is another",
                             c->s[0]->name);
        status = compare_attributes(c);
        if (status == STRATA_OK)
            status = compare_weights(c);
    }
    if (status == STRATA_OK && !same_ends(c))
        status = error_set(c->err, STRATA_EUNSUPPORTED,
                           "at another size of it there are other layers");
    return status;
}

static void drop_attribute(struct section *s, int i)
{
    memmove(&s->attrs[i], &s->attrs[i + 1],
            (size_t)(--s->n_attrs - i) * sizeof *s->attrs);
}

static void edit_sections(struct comparison *c)
{
    for (size_t k = c->n_edits; k-- > 0;) { /* from behind: attributes may go */
        const struct edit *e = &c->edits[k];
        if (e->attr >= 0 && e->text.value)
            e->section->attrs[e->attr] = e->text;
        else if (e->attr >= 0)
            drop_attribute(e->section, e->attr);
        if (e->like >= 0)
            section_in(&c->im[0]->g, e->section, e->like);
        if (e->attr < 0) {
            e->section->weights[0].value = e->constant;
            e->section->out[0] = e->out;
        }
    }
}

void import_name_sizes(struct import *im)
{
    struct graph *g = &im->g;
    g->n_sizes = 0;
    for (int i = 0; g->sizes && i < im->n_symbols; i++)
        if (!*im->symbols[i].reason)
            g->sizes[g->n_sizes++] =
                (struct graph_size){im->symbols[i].name, im->symbols[i].value};
}

static int apply(struct comparison *c)
{
    struct import *im = c->im[0];
    struct arena *a = &im->g.arena;
    size_t room = im->n_sections + 1, n = 0;
    for (size_t k = 0; k < c->n_edits; k++)
        room += (size_t)c->edits[k].n_made;
    struct section **all = arena_get(a, room, sizeof(struct section *));
    im->g.sizes = arena_get(a, IMPORT_SYMBOLS, sizeof *im->g.sizes);
    if (!all || !im->g.sizes)
        return arena_status(a, "layers", c->err);
    edit_sections(c);
    for (size_t i = 0; i < im->n_sections; i++) {
        for (size_t k = 0; k < c->n_edits; k++)
            for (int m = 0; c->edits[k].before == i && m < c->edits[k].n_made; m++)
                all[n++] = c->edits[k].made[m];
        all[n++] = im->sections[i];
    }
    im->sections = all;
    im->n_sections = n;
    im->sections_capacity = room;
    import_name_sizes(im);
    return STRATA_OK;
}

int symbols_compare(struct points *points, bool rewrite, strata_error *err)
{
    const int n = points->n;
    struct comparison c = {.points = points, .im = points->im, .n = n, .err = err};
    int status = STRATA_OK;
    points->lacks_wide = false;
    for (int p = 0; p < n && status == STRATA_OK; p++)
        if (!(c.origins[p] = find_origins(points->im[p], err)))
            status = STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = compare_sections(&c);
    if (status == STRATA_OK && rewrite)
        status = apply(&c);
    for (int p = 0; p < n; p++)
        free(c.origins[p]);
    free(c.edits);
    return status;
}
