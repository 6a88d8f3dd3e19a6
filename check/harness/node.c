/* SPDX-License-Identifier: Apache-2.0
 *
 * Instances for layer tests: parameters from text, the shapes of weights and outputs,
 * and combinations of formats.
 */
#include "check/harness/harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network/attributes.h"
#include "formats/format.h"

/* ---- attributes ---------------------------------------------------------------- */

/* "a = 1; b = 2" as the lines of an INI section. */
static char *section_text(const char *attrs)
{
    static const char head[] = "[layer case]\n";
    char *text = malloc(sizeof head + strlen(attrs) + 2), *to = text;
    if (!text)
        return NULL;
    to += sprintf(to, "%s", head);
    bool start = true; /* of a line, where blanks would mean a continuation */
    for (; *attrs; attrs++) {
        if (*attrs == ' ' && start)
            continue;
        start = *attrs == ';';
        *to++ = *attrs == ';' ? '\n' : *attrs;
    }
    strcpy(to, "\n");
    return text;
}

static int parse_attributes(struct harness_node *n, const char *attrs)
{
    const char *names[64];
    size_t n_names = n->layer->n_attrs < 64 ? n->layer->n_attrs : 64;
    struct config *c = NULL;
    char *text = section_text(attrs);
    if (!text)
        return error_no_memory(&n->err, strlen(attrs), "attributes");
    int status = config_parse(&c, text, strlen(text), "case", NULL, &n->err);
    struct config_section *section = c ? config_section(c, 0) : NULL;
    if (status == STRATA_OK && section)
        status = attributes_read(c, section, n->layer, n->params, &n->memory, &n->err);
    for (size_t i = 0; i < n_names; i++)
        names[i] = n->layer->attrs[i].name;
    if (status == STRATA_OK && section)
        config_unknown(c, section, names, n_names);
    if (status == STRATA_OK)
        status = config_finish(c, &n->err);
    config_free(c);
    free(text);
    return status;
}

void harness_enter(const struct harness_node *n, const char *phase)
{
    if (n->phase)
        snprintf(n->phase, HARNESS_PHASE, "%s", phase);
}

/* ---- shapes -------------------------------------------------------------------- */

static int node_fail(strata_error *err, int code, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return error_set(err, code, "%s", text);
}

static void node_log(int level, const char *format, ...)
{
    (void)level;
    (void)format;
}

static const void *node_extension(const char *id)
{
    (void)id;
    return NULL;
}

static const strata_host host = {
    .struct_size = sizeof host,
    .abi_major = STRATA_ABI_MAJOR,
    .abi_minor = STRATA_ABI_MINOR,
    .fail = node_fail,
    .log = node_log,
    .extension = node_extension,
};

static void set_shape(strata_tensor *t, const struct harness_shape *shape, int32_t dtype)
{
    t->rank = shape->rank;
    t->dtype = dtype;
    t->vector = 1;
    t->vector_dim = -1;
    t->count = 1;
    for (int d = 0; d < shape->rank; d++)
        t->count *= t->dims[d] = shape->dims[d];
}

static bool same_dims(const strata_tensor *a, const strata_tensor *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static int resolve_weights(struct harness_node *n, unsigned absent)
{
    strata_tensor expected[HARNESS_WEIGHTS] = {0};
    int (*shape)(const strata_node *, strata_tensor *) = n->layer->layer.weight_shape;
    harness_enter(n, "weight_shape");
    int status = shape ? shape(&n->node, expected) : STRATA_OK;
    for (int i = 0; i < n->node.n_weights && status == STRATA_OK; i++) {
        strata_tensor *w = &n->weight[i];
        const strata_weight *declared = &n->layer->weights[i];
        if (w->rank > 0 && expected[i].rank > 0 && !same_dims(w, &expected[i]))
            return error_set(&n->err, STRATA_EINVAL,
                             "weight %s has other dims than the "
                             "layer expects",
                             declared->name);
        if (w->rank == 0 && !(absent >> i & 1) && expected[i].rank > 0) {
            struct harness_shape s = {.rank = expected[i].rank};
            memcpy(s.dims, expected[i].dims, sizeof s.dims);
            set_shape(w, &s, STRATA_FP32);
        }
        w->dtype = expected[i].rank > 0 ? expected[i].dtype : STRATA_FP32;
        if (w->rank == 0 && declared->flags & STRATA_REQUIRED)
            return error_set(&n->err, STRATA_EINVAL, "weight %s is required",
                             declared->name);
    }
    return status;
}

void harness_blank_output(const struct harness_node *n, strata_tensor *out)
{
    const bool has_input = n->node.n_in > 0;
    *out = (strata_tensor){.vector = 1, .vector_dim = -1, .dtype = STRATA_FP32};
    if (has_input && !n->layer->layer.shape)
        *out = n->in[0];
    if (has_input)
        out->dtype = n->in[0].dtype;
    out->format = 0;
}

static int resolve_outputs(struct harness_node *n)
{
    const strata_layer *layer = &n->layer->layer;
    harness_enter(n, "outputs");
    n->node.n_out = layer->n_out >= 0 ? layer->n_out : layer->outputs(n->params);
    if (n->node.n_out < 1 || n->node.n_out > HARNESS_OUTPUTS)
        return error_set(&n->err, STRATA_EINVAL, "%d outputs", n->node.n_out);
    for (int i = 0; i < n->node.n_out; i++)
        harness_blank_output(n, &n->out[i]);
    harness_enter(n, "shape");
    int status = layer->shape ? layer->shape(&n->node) : STRATA_OK;
    for (int i = 0; i < n->node.n_out && status == STRATA_OK; i++) {
        struct harness_shape s = {.rank = n->out[i].rank};
        if (s.rank < 1 || s.rank > STRATA_MAX_RANK)
            return error_set(&n->err, STRATA_EINVAL, "shape gives output %d rank %d", i,
                             s.rank);
        memcpy(s.dims, n->out[i].dims, sizeof s.dims);
        set_shape(&n->out[i], &s, n->out[i].dtype);
        if (n->out[i].count < 1)
            return error_set(&n->err, STRATA_EINVAL, "output %d is empty", i);
    }
    return status;
}

int harness_open(struct harness_node *n, const struct registry_layer *layer,
                 const char *attrs, const struct harness_shape *in, int n_in,
                 const struct harness_shape *weight, unsigned absent)
{
    const strata_layer *l = &layer->layer;
    *n = (struct harness_node){.mirror = n->mirror, .phase = n->phase, .plain = n->plain};
    attrs = attrs ? attrs : "";
    n->layer = layer;
    n->params = calloc(1, l->params_size + 1);
    if (!n->params || layer->n_weights > HARNESS_WEIGHTS)
        return error_set(&n->err, STRATA_ENOMEM, "the harness cannot hold this layer");
    if (n_in < l->min_in || (l->max_in >= 0 && n_in > l->max_in) || n_in > HARNESS_INPUTS)
        return error_set(&n->err, STRATA_EINVAL, "%d inputs", n_in);
    for (int i = 0; i < n_in; i++)
        set_shape(&n->in[i], &in[i], STRATA_FP32);
    for (size_t i = 0; i < layer->n_weights && weight; i++)
        set_shape(&n->weight[i], &weight[i], STRATA_FP32);
    n->node = (strata_node){
        .struct_size = sizeof n->node,
        .n_in = n_in,
        .n_weights = (int32_t)layer->n_weights,
        .params = n->params,
        .in = n->in,
        .out = n->out,
        .weight = n->weight,
        .device = STRATA_HOST,
        .row = -1,
        .host = &host,
        .err = &n->err,
    };
    int status = parse_attributes(n, attrs);
    if (status == STRATA_OK)
        status = resolve_weights(n, absent);
    return status == STRATA_OK ? resolve_outputs(n) : status;
}

void harness_close(struct harness_node *n)
{
    free(n->params);
    free(n->memory);
    n->params = n->memory = NULL;
}

static const strata_reference *reference_of(const struct registry_layer *l)
{
    return l->layer.extension ? l->layer.extension(STRATA_REFERENCE_V1) : NULL;
}

bool harness_ignores_nan(const struct registry_layer *layer)
{
    const strata_reference *r = reference_of(layer);
    return r && r->flags & STRATA_NAN_IGNORED;
}

int harness_reference(struct harness_node *n, const double *const *in,
                      const double *const *weight, double *const *out)
{
    harness_enter(n, "reference");
    const strata_reference *r = reference_of(n->layer);
    if (!r)
        return error_set(&n->err, STRATA_ENOTFOUND, "no " STRATA_REFERENCE_V1);
    return r->run(&n->node, in, weight, out);
}

/* ---- combinations of formats --------------------------------------------------- */

/* Mask of port i; the last entry that is not 0 repeats. */
static uint64_t port_mask(const uint64_t mask[STRATA_MAX_PORTS], int i)
{
    i = i < STRATA_MAX_PORTS ? i : STRATA_MAX_PORTS - 1;
    while (i > 0 && mask[i] == 0)
        i--;
    return mask[i];
}

/* The *k-th bit of a mask, *k divided by the number of bits. */
static uint64_t take_bit(uint64_t mask, int64_t *k)
{
    int64_t bits = __builtin_popcountll(mask), index = bits ? *k % bits : 0;
    *k = bits ? *k / bits : *k;
    for (; index > 0; index--)
        mask &= mask - 1;
    return mask & -mask;
}

bool harness_combination(struct harness_formats *out, const strata_row *row, int n_in,
                         int n_out, int64_t k)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < n_in; i++) {
        uint64_t mask = port_mask(row->in, i);
        out->in[i] = mask & STRATA_SAME ? out->in[0] : take_bit(mask, &k);
    }
    for (int i = 0; i < n_out; i++) {
        uint64_t mask = port_mask(row->out, i);
        out->out[i] = mask & STRATA_SAME ? out->in[0] : take_bit(mask, &k);
    }
    return k == 0;
}

strata_registry *harness_registry(strata_error *err)
{
    strata_registry *registry = NULL;
    const char *path = getenv("STRATA_PLUGIN_PATH");
    strata_registry_options options = {.struct_size = sizeof options,
                                       .search_path = path,
                                       .allow_untrusted = 1,
                                       .no_default_path = 1};
    if (!path)
        error_set(err, STRATA_ENOTFOUND, "STRATA_PLUGIN_PATH is not set");
    else
        strata_registry_create(&registry, &options, err);
    return registry;
}
