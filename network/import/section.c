/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking a section's layer: its shapes, and by its reference its values.
 */
#include "network/import/section.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/stream.h"
#include "formats/format.h"
#include "io/weights/weights.h"
#include "network/attributes.h"
#include "network/import/symbols/memo.h"
#include "network/network.h"

/* ---- asking the layer ----------------------------------------------------------------
 */

/* The tensors of a section as a layer's callbacks see them. */
struct instance {
    strata_node node;
    strata_tensor *in, *out, *weight, *expected;
};

static void set_tensor(strata_tensor *t, const struct value *v)
{
    *t = (strata_tensor){.vector = 1, .vector_dim = -1};
    if (!v)
        return;
    t->dtype = v->dtype;
    t->rank = v->rank ? v->rank : 1;
    t->dims[0] = 1;
    for (int d = 0; d < v->rank; d++)
        t->dims[d] = v->dims[d];
    t->count = t->size = value_count(v);
}

static const struct section_weight *weight_of(const struct section *s, size_t i)
{
    for (int k = 0; k < s->n_weights; k++)
        if (strcmp(s->weights[k].name, s->layer->weights[i].name) == 0)
            return &s->weights[k];
    return NULL;
}

/* FP32 stands for the narrower floats, as in a network. */
static int logical(int dtype)
{
    return dtype_is_free(dtype) ? STRATA_FP32 : dtype;
}

/* As a network would convert it: its own dtype where the layer takes it. */
static int taken_dtype(const strata_weight *declared, int dtype)
{
    const uint64_t allowed = declared->dtypes;
    if (dtype >= 0 && allowed >> dtype & 1)
        return dtype;
    return !allowed || allowed >> STRATA_FP32 & 1 ? STRATA_FP32
                                                  : __builtin_ctzll(allowed);
}

static int instance_make(struct graph *g, struct section *s, struct instance *x,
                         strata_error *err)
{
    const size_t n_weights = s->layer->n_weights;
    strata_tensor *all =
        arena_get(&g->arena, (size_t)(s->n_in + s->n_out) + 2 * n_weights, sizeof *all);
    if (!all)
        return arena_status(&g->arena, "tensors of a layer", err);
    x->in = all;
    x->out = x->in + s->n_in;
    x->weight = x->out + s->n_out;
    x->expected = x->weight + n_weights;
    for (int i = 0; i < s->n_in; i++) {
        set_tensor(&x->in[i], graph_value(g, s->in[i]));
        if (s->in[i] >= 0 && !value_is_exact(&g->values[s->in[i]]))
            x->in[i].dtype = logical(x->in[i].dtype);
    }
    for (int i = 0; i < s->n_out; i++)
        if (s->n_in && !s->layer->layer.shape)
            x->out[i] = x->in[0];
        else
            x->out[i].dtype = s->n_in ? x->in[0].dtype : STRATA_FP32;
    for (size_t i = 0; i < n_weights; i++) {
        const struct section_weight *w = weight_of(s, i);
        set_tensor(&x->weight[i], w ? graph_value(g, w->value) : NULL);
        x->weight[i].dtype = taken_dtype(&s->layer->weights[i], x->weight[i].dtype);
        x->expected[i].dtype = x->weight[i].dtype;
    }
    x->node = (strata_node){.struct_size = sizeof x->node,
                            .n_in = s->n_in,
                            .n_out = s->n_out,
                            .n_weights = (int32_t)n_weights,
                            .params = s->params,
                            .in = x->in,
                            .out = x->out,
                            .weight = x->weight,
                            .device = STRATA_HOST,
                            .row = -1,
                            .host = registry_host(),
                            .err = err};
    return STRATA_OK;
}

static bool find_size(const struct graph *g, const char *name, size_t n, int64_t *out)
{
    for (size_t i = 0; i < g->n_sizes; i++)
        if (strlen(g->sizes[i].name) == n && memcmp(g->sizes[i].name, name, n) == 0) {
            *out = g->sizes[i].value;
            return true;
        }
    return false;
}

/* The size in place of a name of the graph's, times, over or with what follows it; other
 * words as they are. */
static void put_word(FILE *f, const struct graph *g, const char *word, size_t n)
{
    const size_t stop = strcspn(word, ",*/+ "), name = stop < n ? stop : n;
    int64_t value, other = name + 1 < n ? strtoll(word + name + 1, NULL, 10) : 1;
    const char sign = name < n ? word[name] : '*';
    if (sign == '+')
        find_size(g, word + name + 1, n - name - 1, &other);
    if (find_size(g, word, name, &value) && other > (sign == '+' ? -1 : 0))
        fprintf(f, "%" PRId64,
                sign == '/'   ? value / other
                : sign == '+' ? value + other
                              : value * other);
    else
        fwrite(word, 1, n, f);
}

/* A list whose names of sizes are numbers, which may be 0, as no single one of [profile]
 * is. */
static void put_sizes(FILE *f, const struct graph *g, const char *list)
{
    while (*list) {
        const size_t gap = strspn(list, ", "), n = strcspn(list + gap, ", ");
        fwrite(list, 1, gap, f);
        put_word(f, g, list + gap, n);
        list += gap + n;
    }
}

static int read_attributes(struct graph *g, struct section *s, strata_error *err)
{
    char *text = NULL;
    size_t size;
    struct config *c = NULL;
    FILE *f = text_stream(&text, &size);
    if (!f)
        return error_no_memory(err, 0, "attributes");
    fputs("[layer x]\n", f);
    for (int i = 0; i < s->n_attrs; i++) {
        const struct section_attr *a = &s->attrs[i];
        fprintf(f, "%s = ", a->key);
        if (a->named)
            put_sizes(f, g, a->value);
        else
            fputs(a->value, f);
        fputc('\n', f);
    }
    s->params = arena_get(&g->arena, s->layer->layer.params_size, 1);
    int status = text_finish(f, &text) && s->params
                     ? config_parse(&c, text, strlen(text), "attributes", NULL, err)
                     : error_no_memory(err, 0, "attributes");
    if (status == STRATA_OK)
        status = attributes_read(c, config_section(c, 0), s->layer, s->params,
                                 &s->params_memory, NULL, err);
    if (status == STRATA_OK)
        status = config_finish(c, err);
    config_free(c);
    free(text);
    return status;
}

static int layer_outputs(const struct section *s)
{
    const strata_layer *layer = &s->layer->layer;
    return layer->n_out >= 0 ? layer->n_out
           : layer->outputs  ? layer->outputs(s->params)
                             : 1;
}

/* As many inputs and outputs as the layer has; outputs that the node does not name are
 * read by nobody. */
static int check_ports(struct graph *g, struct section *s, strata_error *err)
{
    const strata_layer *layer = &s->layer->layer;
    const int n = layer_outputs(s);
    if (s->n_in < layer->min_in || (layer->max_in >= 0 && s->n_in > layer->max_in))
        return error_set(err, STRATA_EINVAL, "%s has %d inputs; %d to %d are allowed",
                         s->layer->full_name, s->n_in, layer->min_in, layer->max_in);
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] < 0 && !(i < 64 && layer->optional_in >> i & 1))
            return error_set(err, STRATA_EINVAL, "%s lacks its input %d",
                             s->layer->full_name, i);
    if (s->n_out > n)
        return error_set(err, STRATA_EINVAL, "%s has %d outputs; %d are read",
                         s->layer->full_name, n, s->n_out);
    for (size_t i = 0; i < s->layer->n_weights; i++)
        if (s->layer->weights[i].flags & STRATA_REQUIRED && !weight_of(s, i))
            return error_set(err, STRATA_EINVAL, "%s lacks its weight '%s'",
                             s->layer->full_name, s->layer->weights[i].name);
    while (s->n_out < n && !g->arena.full)
        section_out(g, s, VALUE_NONE);
    return arena_status(&g->arena, "a layer", err);
}

/* The model's own dtype of a float result: that of the first float read, of a weight
 * where no input is one. */
static int free_dtype(const struct graph *g, const struct section *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && dtype_is_free(g->values[s->in[i]].dtype))
            return g->values[s->in[i]].dtype;
    for (int k = 0; k < s->n_weights; k++)
        if (dtype_is_free(g->values[s->weights[k].value].dtype))
            return g->values[s->weights[k].value].dtype;
    return STRATA_FP32;
}

#define DIMS_TEXT 192 /* of eight dims */

static void put_dims(char out[DIMS_TEXT], const strata_tensor *t)
{
    size_t used = 0;
    for (int d = 0; d < t->rank; d++)
        used += (size_t)snprintf(out + used, DIMS_TEXT - used, "%s%" PRId64, d ? "x" : "",
                                 t->dims[d]);
}

/* Factors of the first weight, put in by map_factors, are a list; the layer has them
 * along a dim of that weight. */
static bool is_list_of(const strata_tensor *given, const strata_tensor *expected)
{
    const int64_t n = network_elements(expected->dims, expected->rank);
    return given->rank <= 1 && network_elements(given->dims, given->rank) == n;
}

/* Of a first weight's values of few bits a byte has several, along one dim. */
static int64_t stored_dim(const strata_tensor *expected, size_t i, int d)
{
    const int64_t each = i == 0 && d == expected->vector_dim && expected->vector > 1
                             ? expected->vector
                             : 1;
    return expected->dims[d] / each + (expected->dims[d] % each != 0);
}

/* A weight is as large as the layer asks for: its reference reads that much. */
static int check_dims(const struct section *s, size_t i, const strata_tensor *given,
                      const strata_tensor *expected, strata_error *err)
{
    bool same = given->rank == expected->rank;
    if (s->layer->weights[i].flags & STRATA_FACTORS && is_list_of(given, expected))
        return STRATA_OK;
    for (int d = 0; same && d < given->rank; d++)
        same = given->dims[d] == stored_dim(expected, i, d);
    if (same)
        return STRATA_OK;
    char found[DIMS_TEXT], needed[DIMS_TEXT];
    put_dims(found, given);
    put_dims(needed, expected);
    return error_set(err, STRATA_EINVAL, "weight '%s' is %s; %s is needed",
                     s->layer->weights[i].name, found, needed);
}

static int infer_outputs(struct graph *g, struct section *s, struct instance *x,
                         strata_error *err)
{
    const strata_layer *layer = &s->layer->layer;
    int status =
        layer->weight_shape ? layer->weight_shape(&x->node, x->expected) : STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < s->layer->n_weights; i++)
        if (x->weight[i].rank && x->expected[i].rank) {
            status = check_dims(s, i, &x->weight[i], &x->expected[i], err);
            x->weight[i] = x->expected[i];
        }
    if (status == STRATA_OK && layer->shape)
        status = layer->shape(&x->node);
    bool scalar = s->n_in > 0;
    for (int i = 0; i < s->n_in; i++)
        scalar &= s->in[i] < 0 || g->values[s->in[i]].rank == 0;
    for (int i = 0; status == STRATA_OK && i < s->n_out; i++) {
        struct value *v = graph_value(g, s->out[i]);
        const strata_tensor *t = &x->out[i];
        if (network_elements(t->dims, t->rank) < 0)
            status = error_set(err, STRATA_EINVAL,
                               "output %d would have more elements than a tensor may "
                               "have",
                               i);
        if (!v || status != STRATA_OK)
            continue;
        v->exact = t->exact && dtype_is_free(t->dtype);
        v->dtype = t->exact || !dtype_is_free(t->dtype) ? t->dtype : free_dtype(g, s);
        v->rank = s->ranks[i] >= 0                            ? s->ranks[i]
                  : scalar && t->rank == 1 && t->dims[0] == 1 ? 0
                                                              : t->rank;
        memcpy(v->dims, t->dims, sizeof v->dims);
    }
    return status == STRATA_OK || err->status != STRATA_OK
               ? status
               : error_set(err, status, "%s failed without a message",
                           s->layer->full_name);
}

int section_infer(struct graph *g, struct section *s, strata_registry *registry,
                  strata_error *err)
{
    struct instance x;
    if (!s)
        return arena_status(&g->arena, "layers", err);
    int status = s->layer ? STRATA_OK : registry_find(registry, s->type, &s->layer, err);
    if (status == STRATA_OK)
        status = read_attributes(g, s, err);
    if (status == STRATA_OK)
        status = check_ports(g, s, err);
    if (status == STRATA_OK)
        status = instance_make(g, s, &x, err);
    return status == STRATA_OK ? infer_outputs(g, s, &x, err) : status;
}

/* ---- values --------------------------------------------------------------------------
 */

/* A constant as an array of double or int64_t, which is what the layer asks for: its
 * dtype may be another than the model's. */
static void *widen(const struct value *v, int dtype, bool typed, strata_error *err)
{
    const int64_t n = value_count(v);
    const bool whole = typed && !graph_is_real(dtype);
    void *out = zalloc((size_t)n + 1, sizeof(double), "values", err);
    if (out && n && v->data &&
        weights_convert(out, whole ? STRATA_INT64 : STRATA_FP64, v->data,
                        weight_dtype_of(v->dtype), n, err) != STRATA_OK) {
        free(out);
        return NULL;
    }
    return out;
}

static int narrow(struct graph *g, struct value *v, const void *wide, bool typed,
                  strata_error *err)
{
    const bool whole = typed && !graph_is_real(v->dtype);
    const int64_t n = value_count(v);
    struct arena *arena = g->memo ? memo_arena(g->memo) : &g->arena;
    void *out = arena_get(arena, (size_t)n, weight_dtype_size(weight_dtype_of(v->dtype)));
    if (!out)
        return arena_status(arena, "constants", err);
    v->constant = true;
    v->data = out;
    return weights_convert(out, v->dtype, wide, whole ? WEIGHT_I64 : WEIGHT_F64, n, err);
}

/* Arrays of a section's tensors, in the order inputs, weights, outputs. */
struct arrays {
    void **in, **weight, **out;
    size_t n;
    bool typed; /* as "strata.reference/2" has them; else double everywhere */
};

static int widen_all(struct graph *g, const struct section *s, const struct instance *x,
                     struct arrays *a, int64_t most, strata_error *err)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 &&
            !(a->in[i] = widen(&g->values[s->in[i]], x->in[i].dtype, a->typed, err)))
            return err->status;
    for (size_t i = 0; i < s->layer->n_weights; i++) {
        const struct section_weight *w = weight_of(s, i);
        if (w && !(a->weight[i] =
                       widen(&g->values[w->value], x->weight[i].dtype, a->typed, err)))
            return err->status;
    }
    for (int i = 0; i < s->n_out; i++) {
        int64_t n = 1;
        for (int d = 0; d < x->out[i].rank; d++)
            n *= x->out[i].dims[d];
        if (n > most)
            return error_set(err, STRATA_EOVERFLOW, "a constant of %" PRId64 " elements",
                             n);
        if (!(a->out[i] = zalloc((size_t)n + 1, sizeof(double), "values", err)))
            return err->status;
    }
    return STRATA_OK;
}

static int run_reference(const struct section *s, const strata_node *n,
                         const struct arrays *a, strata_error *err)
{
    const strata_layer *layer = &s->layer->layer;
    const strata_reference_typed *typed =
        layer->extension ? layer->extension(STRATA_REFERENCE_V2) : NULL;
    const strata_reference *plain =
        layer->extension ? layer->extension(STRATA_REFERENCE_V1) : NULL;
    if (a->typed && typed)
        return typed->run(n, (const void *const *)a->in, (const void *const *)a->weight,
                          a->out);
    if (plain)
        return plain->run(n, (const double *const *)a->in,
                          (const double *const *)a->weight, (double *const *)a->out);
    return error_set(err, STRATA_EUNSUPPORTED, "%s has no reference",
                     s->layer->full_name);
}

/* Bytes with factors are a weight that loading makes floats of: a reference has those. */
static bool has_factors(const struct section *s)
{
    for (size_t i = 0; i < s->layer->n_weights; i++)
        if (s->layer->weights[i].flags & STRATA_FACTORS && weight_of(s, i))
            return true;
    return false;
}

/* A constant under another name, as exporters write a weight that layers share. */
static bool is_copy(const struct graph *g, const struct section *s)
{
    const struct value *x = s->n_in == 1 ? graph_value(g, s->in[0]) : NULL,
                       *y = s->n_out == 1 ? graph_value(g, s->out[0]) : NULL;
    return x && y && strcmp(s->layer->full_name, "core::Identity@1") == 0 &&
           x->dtype == y->dtype;
}

static void copy_constant(struct graph *g, const struct section *s)
{
    struct value *y = graph_value(g, s->out[0]);
    y->constant = true;
    y->data = graph_value(g, s->in[0])->data;
}

int section_run(struct graph *g, struct section *s, int64_t most, strata_error *err)
{
    if (is_copy(g, s)) {
        copy_constant(g, s);
        return STRATA_OK;
    }
    const strata_layer *layer = &s->layer->layer;
    struct arrays a = {.n = (size_t)(s->n_in + s->n_out) + s->layer->n_weights,
                       .typed = layer->extension &&
                                layer->extension(STRATA_REFERENCE_V2) != NULL};
    const char *key = memo_key(g->memo, g, s);
    struct instance x;
    if (memo_recall(g->memo, key, g, s))
        return STRATA_OK;
    if (has_factors(s))
        return error_set(err, STRATA_EUNSUPPORTED, "its weight has factors");
    if (!(a.in = zalloc(a.n + 1, sizeof *a.in, "values", err)))
        return STRATA_ENOMEM;
    a.weight = a.in + s->n_in;
    a.out = a.weight + s->layer->n_weights;
    int status = instance_make(g, s, &x, err);
    if (status == STRATA_OK)
        status = infer_outputs(g, s, &x, err);
    if (status == STRATA_OK)
        status = widen_all(g, s, &x, &a, most, err);
    if (status == STRATA_OK)
        status = run_reference(s, &x.node, &a, err);
    for (int i = 0; status == STRATA_OK && i < s->n_out; i++)
        if (s->out[i] >= 0)
            status = narrow(g, &g->values[s->out[i]], a.out[i], a.typed, err);
    if (status == STRATA_OK)
        memo_keep(g->memo, key, g, s);
    for (size_t i = 0; i < a.n; i++)
        free(a.in[i]);
    free(a.in);
    return status;
}
