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
        status =
            attributes_read(c, section, n->layer, n->params, &n->memory, NULL, &n->err);
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
    t->count = shape->rank > 0;
    for (int d = 0; d < shape->rank; d++)
        t->count *= t->dims[d] = shape->dims[d];
}

static bool same_dims(const strata_tensor *a, const strata_tensor *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static int32_t weight_dtype(const struct harness_node *n, int i)
{
    const uint64_t allowed = n->layer->weights[i].dtypes;
    const int32_t given = n->weight_dtype ? n->weight_dtype[i] : STRATA_FP32;
    return allowed == 0 || allowed >> given & 1 ? given : __builtin_ctzll(allowed);
}

/* What a file has, from what weight_shape expects; `given`: the factors that a case has.
 */
static void resolve_stored(struct harness_node *n, const strata_tensor *expected,
                           const bool *given)
{
    const bool packed = expected[0].vector == HARNESS_PER_BYTE;
    struct harness_stored *s = &n->stored;
    *s = (struct harness_stored){.factors = 0};
    for (int i = 1; i < n->node.n_weights; i++)
        if (n->layer->weights[i].flags & STRATA_FACTORS && expected[i].rank > 0 &&
            (packed || given[i] || expected[i].vector > 1))
            s->factors = i;
    if (s->factors == 0 || n->weight[0].rank == 0 || n->weight[0].dtype != STRATA_FP32) {
        s->factors = 0;
        return;
    }
    struct harness_shape shape = {.rank = n->weight[0].rank};
    memcpy(shape.dims, n->weight[0].dims, sizeof shape.dims);
    if (packed)
        shape.dims[expected[0].vector_dim] =
            (shape.dims[expected[0].vector_dim] + HARNESS_PER_BYTE - 1) /
            HARNESS_PER_BYTE;
    set_shape(&s->weight, &shape, packed ? STRATA_UINT8 : STRATA_INT8);
    shape.rank = expected[s->factors].rank;
    memcpy(shape.dims, expected[s->factors].dims, sizeof shape.dims);
    set_shape(&s->factor, &shape, STRATA_FP32);
    s->along = packed ? expected[0].vector_dim : -1;
    s->group_along = expected[s->factors].vector_dim;
    s->group = expected[s->factors].vector > 1 ? expected[s->factors].vector : 1;
}

static int resolve_weights(struct harness_node *n, unsigned absent)
{
    strata_tensor expected[HARNESS_WEIGHTS] = {0};
    bool given[HARNESS_WEIGHTS] = {false};
    int (*shape)(const strata_node *, strata_tensor *) = n->layer->layer.weight_shape;
    for (int i = 0; i < n->node.n_weights; i++)
        expected[i].dtype = n->weight[i].dtype;
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
        given[i] = w->rank > 0;
        if (declared->flags & STRATA_FACTORS) {
            w->rank = 0; /* the core's: most impls find them absent */
            continue;
        }
        if (w->rank == 0 && !(absent >> i & 1) && expected[i].rank > 0) {
            struct harness_shape s = {.rank = expected[i].rank};
            memcpy(s.dims, expected[i].dims, sizeof s.dims);
            set_shape(w, &s, expected[i].dtype);
        }
        if (expected[i].rank > 0)
            w->dtype = expected[i].dtype;
        if (w->rank == 0 && declared->flags & STRATA_REQUIRED)
            return error_set(&n->err, STRATA_EINVAL, "weight %s is required",
                             declared->name);
    }
    if (status == STRATA_OK)
        resolve_stored(n, expected, given);
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
    }
    return status;
}

static int set_inputs(struct harness_node *n, const struct harness_shape *in, int n_in)
{
    const strata_layer *l = &n->layer->layer;
    if (n_in < l->min_in || (l->max_in >= 0 && n_in > l->max_in) || n_in > HARNESS_INPUTS)
        return error_set(&n->err, STRATA_EINVAL, "%d inputs", n_in);
    for (int i = 0; i < n_in; i++) {
        set_shape(&n->in[i], &in[i], n->in_dtype ? n->in_dtype[i] : STRATA_FP32);
        if (in[i].rank == 0 && !(l->optional_in >> i & 1))
            return error_set(&n->err, STRATA_EINVAL, "input %d is not optional", i);
    }
    return STRATA_OK;
}

int harness_open(struct harness_node *n, const struct registry_layer *layer,
                 const char *attrs, const struct harness_shape *in, int n_in,
                 const struct harness_shape *weight, unsigned absent)
{
    const strata_layer *l = &layer->layer;
    *n = (struct harness_node){.mirror = n->mirror,
                               .phase = n->phase,
                               .plain = n->plain,
                               .in_dtype = n->in_dtype,
                               .weight_dtype = n->weight_dtype};
    attrs = attrs ? attrs : "";
    n->layer = layer;
    n->params = calloc(1, l->params_size + 1);
    if (!n->params || layer->n_weights > HARNESS_WEIGHTS)
        return error_set(&n->err, STRATA_ENOMEM, "the harness cannot hold this layer");
    int status = set_inputs(n, in, n_in);
    if (status != STRATA_OK)
        return status;
    for (size_t i = 0; i < layer->n_weights; i++)
        set_shape(&n->weight[i], weight ? &weight[i] : &(struct harness_shape){0},
                  weight_dtype(n, (int)i));
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
    status = parse_attributes(n, attrs);
    if (status == STRATA_OK)
        status = resolve_weights(n, absent);
    return status == STRATA_OK ? resolve_outputs(n) : status;
}

void harness_close(struct harness_node *n)
{
    free(n->params);
    free(n->memory);
    free(n->stored.values);
    free(n->stored.factor_values);
    n->params = n->memory = NULL;
    n->stored.values = n->stored.factor_values = NULL;
}

/* ---- references ---------------------------------------------------------------- */

static const strata_reference *plain_reference(const struct registry_layer *l)
{
    return l->layer.extension ? l->layer.extension(STRATA_REFERENCE_V1) : NULL;
}

static const strata_reference_typed *typed_reference(const struct registry_layer *l)
{
    return l->layer.extension ? l->layer.extension(STRATA_REFERENCE_V2) : NULL;
}

bool harness_is_typed(const struct registry_layer *layer)
{
    return typed_reference(layer) != NULL;
}

static uint32_t reference_flags(const struct registry_layer *layer)
{
    const strata_reference_typed *typed = typed_reference(layer);
    const strata_reference *plain = plain_reference(layer);
    return typed ? typed->flags : plain ? plain->flags : 0;
}

bool harness_ignores_nan(const struct registry_layer *layer)
{
    return (reference_flags(layer) & STRATA_NAN_IGNORED) != 0;
}

bool harness_rounds_within(const struct registry_layer *layer)
{
    return (reference_flags(layer) & STRATA_E4M3_WITHIN) != 0;
}

bool harness_holds_within(const struct registry_layer *layer)
{
    return (reference_flags(layer) & STRATA_HELD_WITHIN) != 0;
}

/* Doubles for values of any class; the values themselves where they are doubles. */
static bool lend_reals(const double **out, double **made, const void *values,
                       const strata_tensor *t)
{
    *out = values;
    if (!values || number_is_real(t->dtype))
        return true;
    *made = malloc((size_t)t->count * sizeof(double) + 1);
    *out = *made;
    if (*made)
        number_to_reals(*made, values, t->dtype, t->count);
    return *made;
}

/* Through "strata.reference/1", which knows doubles alone. */
static int run_plain(struct harness_node *n, const strata_reference *r,
                     const void *const *in, const void *const *weight, void *const *out)
{
    enum { FIRST_WEIGHT = HARNESS_INPUTS, FIRST_OUT = FIRST_WEIGHT + HARNESS_WEIGHTS };
    const double *x[HARNESS_INPUTS], *w[HARNESS_WEIGHTS], *lent;
    double *y[HARNESS_OUTPUTS], *made[FIRST_OUT + HARNESS_OUTPUTS] = {0};
    bool done = true;
    for (int i = 0; i < n->node.n_in; i++)
        done &= lend_reals(&x[i], &made[i], in[i], &n->in[i]);
    for (int i = 0; i < n->node.n_weights; i++)
        done &= lend_reals(&w[i], &made[FIRST_WEIGHT + i], weight[i], &n->weight[i]);
    for (int i = 0; i < n->node.n_out; i++) {
        done &= lend_reals(&lent, &made[FIRST_OUT + i], out[i], &n->out[i]);
        y[i] = made[FIRST_OUT + i] ? made[FIRST_OUT + i] : out[i];
    }
    int status = done ? r->run(&n->node, x, w, y)
                      : error_no_memory(&n->err, 0, "the reference's values");
    for (int i = 0; i < n->node.n_out && status == STRATA_OK; i++)
        if (made[FIRST_OUT + i])
            number_from_reals(out[i], n->out[i].dtype, y[i], n->out[i].count);
    for (size_t i = 0; i < ARRAY_LENGTH(made); i++)
        free(made[i]);
    return status;
}

int harness_reference(struct harness_node *n, const void *const *in,
                      const void *const *weight, void *const *out)
{
    const strata_reference_typed *typed = typed_reference(n->layer);
    const strata_reference *plain = plain_reference(n->layer);
    harness_enter(n, "reference");
    if (typed)
        return typed->run(&n->node, in, weight, out);
    return plain ? run_plain(n, plain, in, weight, out)
                 : error_set(&n->err, STRATA_ENOTFOUND, "it has no reference");
}

/* ---- combinations of formats --------------------------------------------------- */

/* Mask of port i; the last entry that is not 0 repeats. */
static uint64_t port_mask(const uint64_t mask[REGISTRY_PORTS], int i)
{
    i = i < REGISTRY_PORTS ? i : REGISTRY_PORTS - 1;
    while (i > 0 && mask[i] == 0)
        i--;
    return mask[i];
}

bool harness_fits(const strata_tensor *t, uint64_t format)
{
    const struct format *f = format ? format_at(__builtin_ctzll(format)) : NULL;
    return f && number_may_be(t->dtype, t->exact, f->dtype) &&
           (t->rank > 1 || (f->vector == 1 && f->order == ORDER_LINEAR));
}

/* Formats in which a tensor can lie. */
static uint64_t tensor_formats(const strata_tensor *t)
{
    uint64_t mask = 0;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++)
        if (harness_fits(t, UINT64_C(1) << f))
            mask |= UINT64_C(1) << f;
    return mask;
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

/* Formats of a port; of one that goes with input 0, those of that. */
static uint64_t free_formats(const uint64_t mask[REGISTRY_PORTS], int i,
                             const strata_tensor *t)
{
    const uint64_t port = port_mask(mask, i);
    return port & STRATA_SAME ? STRATA_SAME : port & tensor_formats(t);
}

int64_t harness_combinations(const struct registry_row *row, const struct harness_node *n)
{
    int64_t product = 1;
    for (int i = 0; i < n->node.n_in; i++)
        if (n->in[i].rank > 0)
            product *= __builtin_popcountll(free_formats(row->in, i, &n->in[i]));
    for (int i = 0; i < n->node.n_out; i++)
        product *= __builtin_popcountll(free_formats(row->out, i, &n->out[i]));
    return product;
}

bool harness_combination(struct harness_formats *out, const struct registry_row *row,
                         const struct harness_node *n, int64_t k)
{
    memset(out, 0, sizeof *out);
    if (k >= harness_combinations(row, n))
        return false;
    for (int i = 0; i < n->node.n_in; i++) {
        const uint64_t mask = free_formats(row->in, i, &n->in[i]);
        if (n->in[i].rank > 0)
            out->in[i] = mask & STRATA_SAME ? out->in[0] : take_bit(mask, &k);
    }
    for (int i = 0; i < n->node.n_out; i++) {
        const uint64_t mask = free_formats(row->out, i, &n->out[i]);
        out->out[i] = mask & STRATA_SAME ? out->in[0] : take_bit(mask, &k);
    }
    return true;
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
