/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows applied to nodes, and the pass that makes the network's layers. The functions of
 * rows call back what is above the pass: mutual recursion with map/, which ends because
 * nothing there maps a node.
 */
#include "network/import/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "network/import/private.h"

#define NAMES_BYTES 512 /* of a row's names */

/* ---- for the functions of rows -------------------------------------------------------
 */

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
    import_want(m->im, v);
    map_refuse(m,
               "input '%s' must be constant; it is '%s', which is computed: give "
               "--constant NAME=FILE for what it comes from, or --shape",
               what, v->name);
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

/* ---- rows ----------------------------------------------------------------------------
 */

const struct map_rule *map_find(const char *op, const char *domain)
{
    for (const struct map_table *const *t = map_tables; *t; t++)
        for (size_t i = 0; i < (*t)->n; i++) {
            const struct map_rule *r = &(*t)->rules[i];
            if (strcmp(r->op, op) == 0 && strcmp(r->domain ? r->domain : "", domain) == 0)
                return r;
        }
    return NULL;
}

static void take_fixed(struct mapping *m)
{
    char list[NAMES_BYTES], *rest = list, *pair;
    snprintf(list, sizeof list, "%s", m->rule->fixed ? m->rule->fixed : "");
    while ((pair = strsep(&rest, ","))) {
        char *value = strchr(pair, '=');
        if (!value)
            continue;
        *value++ = '\0';
        section_word(m->g, m->s, arena_text(&m->g->arena, pair, strlen(pair)),
                     arena_text(&m->g->arena, value, strlen(value)));
    }
}

/* The layer's inputs and weights; those at the end that are absent are not given. */
static void take_ports(struct mapping *m)
{
    const char *ports = m->rule->ports ? m->rule->ports : "";
    struct section *s = m->s;
    char kind = '-';
    size_t weight = 0;
    strata_error why = {0};
    if (registry_find(m->im->registry, s->type, &s->layer, &why) != STRATA_OK) {
        map_refuse(m, "%s", why.message);
        return;
    }
    for (int i = 0; i < m->node->n_in; i++) {
        kind = *ports && *ports != '+' ? *ports++ : *ports == '+' ? kind : '-';
        if (kind == 'x')
            section_in(m->g, s, m->node->in[i]);
        else if (kind == 'w' && weight < s->layer->n_weights &&
                 map_constant(m, i, s->layer->weights[weight++].name))
            section_weight(s, s->layer->weights[weight - 1].name, m->node->in[i]);
    }
    while (s->n_in > 0 && s->in[s->n_in - 1] < 0)
        s->n_in--;
}

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
    const bool whole = v->dtype == STRATA_INT64 || v->dtype == STRATA_INT32 ||
                       v->dtype == STRATA_BOOL8 || v->dtype == STRATA_INT8 ||
                       v->dtype == STRATA_UINT8;
    for (int64_t k = 0; k < n; k++) {
        reals[k] = value_real(v, k);
        integers[k] = value_integer(v, k);
    }
    if (whole)
        section_integers(m->g, m->s, ours, integers, n);
    else
        section_reals(m->g, m->s, ours, reals, n);
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

/* ONNX's outputs are the layer's, as many as there are. */
static void take_outputs(struct mapping *m)
{
    for (int i = 0; i < m->node->n_out; i++)
        map_out(m, i);
}

/* Whether output 0 was given a layer or a value. */
static bool makes(const struct mapping *m)
{
    const struct value *v = m->node->n_out ? graph_value(m->g, m->node->out[0]) : NULL;
    return !v || v->constant || m->n_sections > 0;
}

int map_node(struct mapping *m, strata_error *err)
{
    const struct node *n = m->node;
    m->rule = map_find(n->op, n->domain);
    if (!m->rule && map_custom(m, m->im->registry))
        return arena_status(&m->g->arena, "layers", err);
    if (!m->rule) {
        import_refuse_node(m->im, n, n->op,
                           "no layer for it; a plugin can add one: docs/onnx.md");
        m->refused = true;
        return STRATA_OK;
    }
    if (m->rule->layer) {
        map_section(m, m->rule->layer);
        take_fixed(m);
        if (m->s)
            take_ports(m);
        if (!m->refused)
            map_names(m, m->rule->names);
        take_outputs(m);
    }
    if (m->rule->finish && !m->refused)
        m->rule->finish(m);
    if (!m->refused && !makes(m))
        map_refuse(m, "it lacks an input that it needs");
    return arena_status(&m->g->arena, "layers", err);
}

/* ---- the pass ------------------------------------------------------------------------
 */

static void keep_section(struct import *im, struct section *s)
{
    struct section **all = arena_grow(&im->g.arena, im->sections, &im->sections_capacity,
                                      im->n_sections, sizeof(struct section *));
    if (!all)
        return;
    im->sections = all;
    im->sections[im->n_sections++] = s;
}

/* A layer that gives a constant, or what another layer or an input gives. */
static int keep_source(struct import *im, const char *type, int in, int weight, int out,
                       strata_error *err)
{
    struct section *s = section_make(&im->g, type, NULL);
    if (in >= 0)
        section_in(&im->g, s, in);
    section_weight(s, "value", weight);
    section_out(&im->g, s, out);
    int status = section_infer(&im->g, s, im->registry, err);
    if (status == STRATA_OK)
        keep_section(im, s);
    return status;
}

/* Constants that layers read as inputs come of a Constant each. */
static int provide(struct import *im, struct section *s, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; status == STRATA_OK && i < s->n_in; i++) {
        const int from = s->in[i];
        struct value *v = graph_value(&im->g, from);
        if (!v || !v->constant)
            continue;
        if (v->given < 0) {
            const int rank = v->rank, given = graph_add_value(&im->g, v->name);
            status = keep_source(im, "Constant", VALUE_NONE, from, given, err);
            if (given < 0 || status != STRATA_OK)
                return status == STRATA_OK ? STRATA_ENOMEM : status;
            im->g.values[given].rank = rank;
            im->g.values[from].given = given;
        }
        s->in[i] = im->g.values[from].given;
    }
    return status;
}

/* A node that a pattern made says in the network's text what it was. */
static void tell_origin(struct mapping *m)
{
    if (m->node->from && m->n_sections)
        m->sections[0]->comment =
            arena_print(&m->g->arena, "from: %s", m->node->from);
}

/* The narrow float that some input is whatever the precision; FP32: there is none. */
static int exact_dtype(const struct graph *g, const struct section *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && value_is_exact(&g->values[s->in[i]]) &&
            g->values[s->in[i]].dtype != STRATA_FP32)
            return g->values[s->in[i]].dtype;
    return STRATA_FP32;
}

static int cast_to(struct mapping *m, int from, int dtype, int *to, strata_error *err)
{
    struct section *s = section_make(m->g, "Cast", m->node);
    *to = graph_add_value(m->g, "");
    section_in(m->g, s, from);
    section_out_rank(m->g, s, *to, m->g->values[from].rank);
    section_word(m->g, s, "to", strata_dtype_name(dtype));
    int status = section_infer(m->g, s, m->im->registry, err);
    if (status == STRATA_OK && m->keep)
        keep_section(m->im, s);
    else
        section_free(s);
    return status;
}

int map_match(struct mapping *m, struct section *s, strata_error *err)
{
    const int dtype = s ? exact_dtype(m->g, s) : STRATA_FP32;
    int status = STRATA_OK;
    for (int i = 0; dtype != STRATA_FP32 && i < s->n_in && status == STRATA_OK; i++) {
        const struct value *v = graph_value(m->g, s->in[i]);
        if (v && dtype_is_free(v->dtype) && !value_is_exact(v))
            status = cast_to(m, s->in[i], dtype, &s->in[i], err);
    }
    return status;
}

static int map_one(struct import *im, const struct node *n, strata_error *err)
{
    struct mapping m = {.im = im, .g = &im->g, .node = n, .keep = true};
    int status = map_node(&m, err);
    tell_origin(&m);
    for (size_t i = 0; status == STRATA_OK && !m.refused && i < m.n_sections; i++) {
        strata_error why = {0};
        status = provide(im, m.sections[i], err);
        if (status != STRATA_OK)
            break;
        status = map_match(&m, m.sections[i], &why);
        if (status == STRATA_OK)
            status = section_infer(&im->g, m.sections[i], im->registry, &why);
        if (status == STRATA_OK)
            keep_section(im, m.sections[i]);
        else if (status != STRATA_ENOMEM) {
            map_refuse(&m, "%s", why.message);
            status = STRATA_OK;
        }
    }
    return status;
}

/* Outputs that are inputs or constants of the model come of a layer, too. */
static int map_outputs(struct import *im, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < im->g.n_outputs; i++) {
        const int from = im->g.outputs[i];
        const struct value *v = &im->g.values[from];
        if (v->node && !v->constant)
            continue;
        const bool constant = v->constant;
        const int to = graph_add_value(&im->g, v->name);
        status = keep_source(im, constant ? "Constant" : "Identity",
                             constant ? VALUE_NONE : from, constant ? from : VALUE_NONE,
                             to, err);
        im->g.outputs[i] = to;
    }
    return status;
}

int import_map(struct import *im, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < im->g.n_nodes; i++)
        status = map_one(im, im->g.nodes[i], err);
    return status == STRATA_OK && !im->all_refusals ? map_outputs(im, err) : status;
}
