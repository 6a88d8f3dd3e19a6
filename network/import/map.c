/* SPDX-License-Identifier: Apache-2.0
 *
 * What the functions of rows ask and make.
 */
#include "network/import/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "network/import/private.h"

#define NAMES_BYTES 512 /* of a row's names */

void map_refuse(struct mapping *m, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!m->refused)
        import_refuse_node(m->im, m->node, NULL, "%s", text);
    m->refused = true;
}

const struct value *map_input(const struct mapping *m, int i)
{
    return i < m->node->n_in ? graph_value(m->g, m->node->in[i]) : NULL;
}

int map_input_rank(const struct mapping *m, int i)
{
    const struct value *v = map_input(m, i);
    return v ? v->rank : 0;
}

bool map_has_output(const struct mapping *m, int i)
{
    return i < m->node->n_out && m->node->out[i] >= 0 &&
           m->g->values[m->node->out[i]].readers > 0;
}

const struct value *map_constant(struct mapping *m, int i, const char *what)
{
    const struct value *v = map_input(m, i);
    if (!v || v->constant)
        return v;
    if (v->counted) {
        map_refuse(
            m,
            "input '%s' must be constant, and it hangs on how many rows values tell "
            "(of a NonZero or a NonMaxSuppression): export the network up to there, "
            "as to boxes and scores, and do the rest behind it (docs/onnx.md)",
            what);
        return NULL;
    }
    const char *origin = import_want(m->im, v);
    if (v->node && origin)
        map_refuse(m,
                   "input '%s' must be constant; it is '%s', which is computed of the "
                   "model's input '%s': give --constant %s=FILE, or a number or a list "
                   "of them, or --shape",
                   what, v->name, origin, origin);
    else if (v->node)
        map_refuse(
            m,
            "input '%s' must be constant; it is '%s', which a run computes: sizes "
            "that hang on values have no place in a network; export the model with "
            "a number there, or as two, before it and behind it, or give "
            "--constant NAME=FILE for what it comes from, or --shape (docs/onnx.md)",
            what, v->name);
    else
        map_refuse(m,
                   "input '%s' must be constant; it is the model's input '%s': give "
                   "--constant %s=FILE, or a number or a list of them, as 3,4",
                   what, v->name, v->name);
    return NULL;
}

int map_integers(struct mapping *m, const char *name, int i, int64_t out[STRATA_MAX_RANK])
{
    const struct value *v = i >= 0 ? map_constant(m, i, name) : NULL;
    int64_t n = v ? value_count(v) : node_integers(m->node, name, out, STRATA_MAX_RANK);
    if (n > STRATA_MAX_RANK) {
        map_refuse(m, "'%s' has %lld numbers; there are at most %d dims", name,
                   (long long)n, STRATA_MAX_RANK);
        return 0;
    }
    for (int64_t k = 0; v && k < n; k++)
        out[k] = value_integer(v, k);
    return (int)n;
}

int64_t map_axis(struct mapping *m, int64_t axis, int rank)
{
    if (axis < -rank || axis >= (rank ? rank : 1)) {
        map_refuse(m, "axis %lld is not one of a rank of %d", (long long)axis, rank);
        return 0;
    }
    return axis < 0 ? axis + rank : axis;
}

struct section *map_section(struct mapping *m, const char *type)
{
    struct section **all = arena_grow(&m->g->arena, m->sections, &m->capacity,
                                      m->n_sections, sizeof(struct section *));
    m->s = all ? section_make(m->g, type, m->node) : NULL;
    if (!m->s)
        return NULL;
    m->sections = all;
    m->sections[m->n_sections++] = m->s;
    return m->s;
}

int map_between(struct mapping *m)
{
    return graph_add_value(m->g, "");
}

void map_in(struct mapping *m, int i)
{
    section_in(m->g, m->s, i < m->node->n_in ? m->node->in[i] : VALUE_NONE);
}

void map_out(struct mapping *m, int i)
{
    map_out_rank(m, i, -1);
}

void map_out_rank(struct mapping *m, int i, int rank)
{
    section_out_rank(m->g, m->s, i < m->node->n_out ? m->node->out[i] : VALUE_NONE, rank);
}

void map_rank(struct mapping *m, int i, int rank)
{
    if (m->s && i < m->s->n_out)
        m->s->ranks[i] = rank;
}

void map_become(struct mapping *m, const char *type)
{
    if (!m->s)
        return;
    m->s->type = type;
    m->s->layer = NULL;
    m->s->n_attrs = 0;
}

void map_is_constant(struct mapping *m, int i, int dtype, int rank, const int64_t *dims,
                     const void *data)
{
    struct value *v = i < m->node->n_out ? graph_value(m->g, m->node->out[i]) : NULL;
    if (!v)
        return;
    v->dtype = dtype;
    v->rank = rank;
    for (int d = 0; d < rank; d++)
        v->dims[d] = dims[d];
    v->constant = true;
    v->data = data;
}

void map_is(struct mapping *m, int i, int value)
{
    map_section(m, "Identity");
    section_in(m->g, m->s, value);
    map_out(m, i);
}

void map_reshape(struct mapping *m, int value, int i, int rank, const int64_t *dims)
{
    const struct value *v = graph_value(m->g, value);
    int64_t shape[STRATA_MAX_RANK] = {1}, n = 1;
    for (int d = 0; d < rank; d++) {
        n *= dims[d];
        shape[d] = d == 0 && v && v->rank > 0 && v->dims[0] == dims[0] ? 0 : dims[d];
    }
    if (n == 0 && v) {
        map_is_constant(m, i, v->dtype, rank, dims, NULL);
        return;
    }
    if (v && v->rank == rank && memcmp(v->dims, dims, (size_t)rank * sizeof *dims) == 0) {
        map_is(m, i, value);
        return;
    }
    map_section(m, "Shuffle");
    section_in(m->g, m->s, value);
    section_integers(m->g, m->s, "shape", shape, rank ? rank : 1);
    map_out_rank(m, i, rank);
}

/* ---- names ---- */

static void take_constant(struct mapping *m, const char *ours, int i)
{
    const struct value *v = map_constant(m, i, ours);
    if (!v)
        return;
    const int64_t n = value_count(v);
    double reals[64];
    int64_t integers[64];
    if (n > 64) {
        map_refuse(m, "input %d has %lld numbers; an attribute has at most 64", i,
                   (long long)n);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        reals[k] = value_real(v, k);
        integers[k] = value_integer(v, k);
    }
    if (graph_is_real(v->dtype))
        section_reals(m->g, m->s, ours, reals, n);
    else
        section_integers(m->g, m->s, ours, integers, n);
}

static void take_attribute(struct mapping *m, const char *ours, char kind,
                           const struct onnx_attribute *a)
{
    if (kind == '?')
        section_flag(m->g, m->s, ours, a->integer != 0);
    else if (a->kind == ONNX_A_REAL)
        section_real(m->g, m->s, ours, a->real);
    else if (a->kind == ONNX_A_INTEGER)
        section_integer(m->g, m->s, ours, a->integer);
    else if (a->kind == ONNX_A_REALS)
        section_reals(m->g, m->s, ours, a->reals, (int64_t)a->n);
    else if (a->kind == ONNX_A_INTEGERS)
        section_integers(m->g, m->s, ours, a->integers, (int64_t)a->n);
    else if (a->kind == ONNX_A_TEXT) {
        char *text = arena_text(&m->g->arena, a->text, a->text_bytes);
        for (char *c = text; c && *c && kind == '~'; c++)
            *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
        section_word(m->g, m->s, ours, text);
    } else
        map_refuse(m, "attribute '%s' is of a kind that it cannot be", a->name);
}

void map_names(struct mapping *m, const char *names)
{
    char list[NAMES_BYTES], *rest = list, *pair;
    snprintf(list, sizeof list, "%s", names ? names : "");
    while ((pair = strsep(&rest, ","))) {
        char *ours = strchr(pair, '=');
        if (!ours)
            continue;
        *ours++ = '\0';
        char *last = ours + strlen(ours) - 1, kind = *last;
        if (kind == '?' || kind == '~')
            *last = '\0';
        ours = arena_text(&m->g->arena, ours, strlen(ours));
        const struct onnx_attribute *a = node_attribute(m->node, pair);
        if (ours && pair[0] == '#')
            take_constant(m, ours, atoi(pair + 1));
        else if (ours && a)
            take_attribute(m, ours, kind, a);
    }
}
