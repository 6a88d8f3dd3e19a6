/* SPDX-License-Identifier: Apache-2.0
 *
 * The network's text as a person would write it: what is a default is left out, as is
 * `inputs` where it is the layer above. And its weights, each once.
 */
#include "network/import/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/stream.h"
#include "formats/format.h"
#include "io/weights/weights.h"
#include "network/text/lines.h"

/* Where a value comes from. */
struct source {
    const char *name; /* of a layer or an input; NULL: of none */
    int port;
};

struct writer {
    const struct import *im;
    struct lines lines;
    struct source *sources; /* of values */
    const char **keys;      /* of constants in the weights file; NULL: not in it */
};

/* ---- weights -------------------------------------------------------------------------
 */

#define SHARED_BYTES 65536 /* of a constant that is looked for among the others */

static size_t constant_bytes(const struct value *v)
{
    return (size_t)value_count(v) * weight_dtype_size(weight_dtype_of(v->dtype));
}

/* A constant, in the order of layers. */
struct entry {
    const struct value *v;
    int value, at;
};

static int compare_values(const struct value *a, const struct value *b)
{
    if (a->dtype != b->dtype)
        return a->dtype < b->dtype ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    for (int d = 0; d < a->rank; d++)
        if (a->dims[d] != b->dims[d])
            return a->dims[d] < b->dims[d] ? -1 : 1;
    return a->data == b->data ? 0 : memcmp(a->data, b->data, constant_bytes(a));
}

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    const int order = compare_values(a->v, b->v);
    return order ? order : a->at - b->at;
}

/* Large constants that are weights, each value once; how many. */
static size_t list_large(const struct writer *w, struct entry *out, bool *listed)
{
    const struct import *im = w->im;
    size_t n = 0;
    for (size_t i = 0; i < im->n_sections; i++)
        for (int k = 0; k < im->sections[i]->n_weights; k++) {
            const int value = im->sections[i]->weights[k].value;
            const struct value *v = &im->g.values[value];
            if (listed[value] || !v->data || constant_bytes(v) < SHARED_BYTES)
                continue;
            listed[value] = true;
            out[n] = (struct entry){v, value, (int)n};
            n++;
        }
    return n;
}

/* Of constants that are alike the first: layers that share a weight read copies of it, as
 * exporters write them. *first: of each value. */
static int find_alike(const struct writer *w, int *first, strata_error *err)
{
    const size_t n_values = w->im->g.n_values;
    struct entry *all = zalloc(n_values, sizeof *all, "names", err);
    bool *listed = zalloc(n_values, sizeof *listed, "names", err);
    const int status = all && listed ? STRATA_OK : STRATA_ENOMEM;
    const size_t n = status == STRATA_OK ? list_large(w, all, listed) : 0;
    for (size_t i = 0; i < n_values; i++)
        first[i] = (int)i;
    if (n)
        qsort(all, n, sizeof *all, compare_entries);
    for (size_t i = 1; i < n; i++)
        if (compare_values(all[i - 1].v, all[i].v) == 0)
            first[all[i].value] = first[all[i - 1].value];
    free(all);
    free(listed);
    return status;
}

/* The first layer that a constant is a weight of names it; others refer to that. */
static int name_weights(struct writer *w, strata_error *err)
{
    const struct import *im = w->im;
    struct arena *a = (struct arena *)&im->g.arena;
    int *first = zalloc(im->g.n_values, sizeof *first, "names", err);
    int status = first ? find_alike(w, first, err) : STRATA_ENOMEM;
    for (size_t i = 0; i < im->n_sections && status == STRATA_OK; i++) {
        const struct section *s = im->sections[i];
        for (int k = 0; k < s->n_weights; k++) {
            const int value = s->weights[k].value;
            const char **key = &w->keys[first[value]];
            if (!*key)
                *key = arena_print(a, "%s.%s", s->name, s->weights[k].name);
            w->keys[value] = *key;
        }
    }
    free(first);
    return a->full ? STRATA_ENOMEM : status;
}

static int begin(struct writer *w, const struct import *im, strata_error *err)
{
    *w = (struct writer){.im = im};
    w->sources = zalloc(im->g.n_values, sizeof *w->sources, "names", err);
    w->keys = zalloc(im->g.n_values, sizeof *w->keys, "names", err);
    return w->sources && w->keys ? name_weights(w, err) : STRATA_ENOMEM;
}

static void end(struct writer *w)
{
    free(w->sources);
    free(w->keys);
}

static struct weight_view view_weight(const char *key, const struct value *v)
{
    struct weight_view view = {.name = key,
                               .dtype = weight_dtype_of(v->dtype),
                               .rank = v->rank,
                               .data = v->data};
    memcpy(view.dims, v->dims, sizeof view.dims);
    view.bytes = constant_bytes(v);
    return view;
}

/* In the order of layers: values are numbered as the file has its nodes. */
static int list_weights(const struct import *im, struct weight_view **out, size_t *n,
                        strata_error *err)
{
    struct writer w;
    int status = begin(&w, im, err);
    *n = 0;
    *out =
        status == STRATA_OK ? zalloc(im->g.n_values, sizeof **out, "weights", err) : NULL;
    for (size_t i = 0; *out && i < im->n_sections; i++) {
        const struct section *s = im->sections[i];
        for (int k = 0; k < s->n_weights; k++)
            if (line_owns(w.keys[s->weights[k].value], s->name, s->weights[k].name))
                (*out)[(*n)++] = view_weight(w.keys[s->weights[k].value],
                                             &im->g.values[s->weights[k].value]);
    }
    end(&w);
    return *out ? STRATA_OK : STRATA_ENOMEM;
}

int import_save_weights(const struct import *im, const char *path, strata_error *err)
{
    struct weight_view *views;
    size_t n;
    int status = list_weights(im, &views, &n, err);
    if (status == STRATA_OK)
        status = weights_save(path, views, n, err);
    free(views);
    return status;
}

int import_weights(const struct import *im, void **bytes, size_t *size, strata_error *err)
{
    struct weight_view *views;
    size_t n;
    int status = list_weights(im, &views, &n, err);
    *bytes = NULL;
    if (status == STRATA_OK)
        status = weights_write(bytes, size, views, n, err);
    free(views);
    return status;
}

/* ---- text ----------------------------------------------------------------------------
 */

static void put_source(const struct writer *w, int value)
{
    const struct source *s = value >= 0 ? &w->sources[value] : NULL;
    if (!s || !s->name)
        fputs("none", w->lines.f);
    else if (s->port)
        fprintf(w->lines.f, "%s:%d", s->name, s->port);
    else
        fputs(s->name, w->lines.f);
}

static void put_list(struct writer *w, const char *key, const int *values, size_t n)
{
    const long at = line_begin(&w->lines, key);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? w->lines.gap : "", w->lines.f);
        put_source(w, values[i]);
    }
    line_end(&w->lines, key, at);
}

static void put_format(struct writer *w, const struct value *v)
{
    line_format(&w->lines,
                (struct format){.dtype = v->dtype, .order = ORDER_LINEAR, .vector = 1},
                v->rank ? v->rank : 1);
}

/* Whether a network binds it as another float than the model has. */
static bool is_narrow(const struct value *v)
{
    return dtype_is_free(v->dtype) && v->dtype != STRATA_FP32 && !value_is_exact(v);
}

/* The model's own types, where a float is not of the usual one. */
static void write_output_formats(struct writer *w)
{
    const struct graph *g = &w->im->g;
    bool narrow = false;
    for (size_t i = 0; i < g->n_outputs; i++)
        narrow |= is_narrow(&g->values[g->outputs[i]]);
    if (!narrow)
        return;
    const long at = line_begin(&w->lines, "output_formats");
    for (size_t i = 0; i < g->n_outputs; i++) {
        fputs(i ? w->lines.gap : "", w->lines.f);
        put_format(w, &g->values[g->outputs[i]]);
    }
    line_end(&w->lines, "output_formats", at);
}

/* The name of dim d of an input; NULL: it is a number. */
static const char *dim_name(const struct writer *w, const struct value *v, int d)
{
    const struct symbol *s = v->symbols[d] ? &w->im->symbols[v->symbols[d] - 1] : NULL;
    return s && !*s->reason ? s->name : NULL;
}

static void write_named(struct writer *w, const struct value *v)
{
    const long at = line_begin(&w->lines, "shape");
    for (int d = 0; d < v->rank; d++) {
        const char *name = dim_name(w, v, d);
        fputs(d ? " x " : "", w->lines.f);
        if (name)
            fputs(name, w->lines.f);
        else
            fprintf(w->lines.f, "%" PRId64, v->dims[d]);
    }
    line_end(&w->lines, "shape", at);
}

static void write_profile(struct writer *w)
{
    bool begun = false;
    w->lines.section = "profile";
    for (int i = 0; i < w->im->n_symbols; i++) {
        const struct symbol *s = &w->im->symbols[i];
        if (*s->reason || s->is_sum)
            continue;
        fputs(begun ? "" : "\n[profile]\n", w->lines.f);
        line_sizes(&w->lines, s->name,
                   (struct line_range){s->least, s->most, s->step, s->sizes, s->n});
        begun = true;
    }
}

static void write_input(struct writer *w, const struct value *v)
{
    const int64_t one = 1;
    bool named = false;
    w->lines.section = v->spelled;
    fputc('\n', w->lines.f);
    if (v->carried)
        fprintf(w->lines.f, "# of %s in the model\n", onnx_type_name(v->carried));
    fprintf(w->lines.f, "[%s %s]\n", v->next ? "state" : "input", v->spelled);
    for (int d = 0; d < v->rank; d++)
        named |= dim_name(w, v, d) != NULL;
    if (named)
        write_named(w, v);
    else
        line_dims(&w->lines, "shape", v->rank ? v->dims : &one, v->rank ? v->rank : 1);
    if (!dtype_is_free(v->dtype))
        line_word(&w->lines, "dtype", strata_dtype_name(v->dtype));
    if (is_narrow(v)) {
        const long at = line_begin(&w->lines, "format");
        put_format(w, v);
        line_end(&w->lines, "format", at);
    }
    if (v->next)
        put_list(w, "next", &(int){v->next - 1}, 1);
    if (v->room)
        fprintf(w->lines.f, "room = %" PRId64 "\n", v->room);
}

/* Without what a value in an INI file cannot hold. */
static void write_name(struct writer *w)
{
    char *name = arena_print((struct arena *)&w->im->g.arena, "%s", w->im->g.name);
    for (char *c = name; c && *c; c++)
        if ((unsigned char)*c < 0x20 || strchr("\";\x7f", *c))
            *c = '_';
    if (name)
        line_text(&w->lines, "name", name);
}

/* A weight of the type as the file names it; NULL: the section has none. */
struct named {
    const struct writer *w;
    const struct section *s;
};

static const char *tensor_of(const void *of, size_t weight)
{
    const struct named *n = of;
    for (int i = 0; i < n->s->n_weights; i++)
        if (strcmp(n->s->weights[i].name, n->s->layer->weights[weight].name) == 0)
            return n->w->keys[n->s->weights[i].value];
    return NULL;
}

/* Whether the layer reads, without being told, the one output of the layer above. */
static bool reads_above(const struct writer *w, const struct section *above,
                        const struct section *s)
{
    const struct import *im = w->im;
    if (s->n_in != 1 || s->in[0] < 0)
        return false;
    if (!above)
        return im->g.n_inputs == 1 && s->in[0] == im->g.inputs[0] &&
               !im->g.values[s->in[0]].next;
    return above->n_out == 1 && above->out[0] == s->in[0];
}

/* The text of an attribute that names symbols; NULL: it does not. */
static const char *named_attribute(const void *of, const char *key)
{
    const struct section *s = of;
    for (int i = 0; i < s->n_attrs; i++)
        if (s->attrs[i].named && strcmp(s->attrs[i].key, key) == 0)
            return s->attrs[i].value;
    return NULL;
}

static void write_section(struct writer *w, const struct section *above,
                          const struct section *s)
{
    w->lines.section = s->name;
    fputc('\n', w->lines.f);
    if (s->comment)
        fprintf(w->lines.f, "# %s\n", s->comment);
    fprintf(w->lines.f, "[layer %s]\ntype = %s\n", s->name, s->type);
    if (s->n_in && !reads_above(w, above, s))
        put_list(w, "inputs", s->in, (size_t)s->n_in);
    line_attributes(&w->lines, s->layer, s->params, named_attribute, s);
    line_weights(&w->lines, s->name, s->layer, tensor_of, &(struct named){w, s});
}

static void write_all(struct writer *w, const char *file)
{
    const struct import *im = w->im;
    const struct onnx_model *m = im->model;
    bool weights = false;
    for (size_t i = 0; i < im->g.n_inputs; i++)
        w->sources[im->g.inputs[i]].name = im->g.values[im->g.inputs[i]].spelled;
    for (size_t i = 0; i < im->n_sections; i++) {
        const struct section *s = im->sections[i];
        weights |= s->n_weights > 0;
        for (int k = 0; k < s->n_out; k++)
            if (s->out[k] >= 0)
                w->sources[s->out[k]] = (struct source){s->name, k};
    }
    fprintf(w->lines.f, "# From an ONNX model");
    if (*m->producer)
        fprintf(w->lines.f, " of %s %s", m->producer, m->producer_version);
    fputs("\n[network]\nformat = 1\n", w->lines.f);
    w->lines.section = "network";
    write_name(w);
    put_list(w, "outputs", im->g.outputs, im->g.n_outputs);
    write_output_formats(w);
    for (size_t i = 0; i < im->g.n_inputs; i++)
        write_input(w, &im->g.values[im->g.inputs[i]]);
    write_profile(w);
    if (weights) {
        fputs("\n[weights w]\n", w->lines.f);
        line_text(&w->lines, "file", file);
    }
    for (size_t i = 0; i < im->n_sections; i++)
        write_section(w, i ? im->sections[i - 1] : NULL, im->sections[i]);
}

int import_text(const struct import *im, const char *file, char **text, size_t *size,
                strata_error *err)
{
    struct writer w;
    int status = begin(&w, im, err);
    *text = NULL;
    if (status == STRATA_OK) {
        w.lines = (struct lines){
            .f = text_stream(text, size), .gap = ", ", .err = err, .status = STRATA_OK};
        if (w.lines.f) {
            write_all(&w, file);
            lines_finish(&w.lines, text, *size);
            status = w.lines.status;
        } else
            status = error_no_memory(err, 0, "a network's text");
    }
    end(&w);
    return status;
}
