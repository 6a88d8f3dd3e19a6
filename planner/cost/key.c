/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of costs. Words are separated by one blank, in a fixed order:
 *
 *   run LAYER IMPL module=NS/VERSION/BUILD row=N in=TENSOR,... out=... weights=...
 *       attributes=NAME:VALUE;... epilogue=... math=... threads=N
 *   reformat FORMAT>FORMAT DIMS threads=N
 *
 * and on devices with a cache, cache=cold or cache=warm: how a run finds it.
 *
 * A tensor is FORMAT[DIMS]; equal neighbours are written once, as COUNT*TENSOR. Of
 * formats in which it lies in memory alike the first of the table stands for all.
 */
#include "planner/cost/cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/planner.h"
#include "registry/math/mode.h"
#include "core/text.h"

/* Text that grows; `failed` once memory ran out. */
struct text {
    char *bytes;
    size_t n, capacity;
    bool failed;
};

static void text_bytes(struct text *t, const char *from, size_t n)
{
    while (!t->failed && t->n + n + 1 > t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 512;
        char *bytes = realloc(t->bytes, capacity);
        t->failed = !bytes;
        if (bytes) {
            t->bytes = bytes;
            t->capacity = capacity;
        }
    }
    if (t->failed)
        return;
    memcpy(t->bytes + t->n, from, n);
    t->n += n;
    t->bytes[t->n] = '\0';
}

static void text_add(struct text *t, const char *format, ...) PRINTF_LIKE(2, 3);
static void text_add(struct text *t, const char *format, ...)
{
    char buffer[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    if (n > 0)
        text_bytes(t, buffer, (size_t)n < sizeof buffer ? (size_t)n : sizeof buffer - 1);
}

/* Text of others: whatever could end a word is written as %XX. */
static void text_word(struct text *t, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)from[i];
        if (c <= ' ' || c == '%' || c >= 0x7f)
            text_add(t, "%%%02X", c);
        else
            text_bytes(t, &from[i], 1);
    }
}

/* ---- attributes ----------------------------------------------------------------------
 */

static void add_choice(struct text *t, const strata_attr *a, int32_t index)
{
    const char *name = a->choices;
    for (int32_t i = 0; name && i < index; i++)
        name = strchr(name, '|') ? strchr(name, '|') + 1 : NULL;
    if (name)
        text_word(t, name, strcspn(name, "|"));
    else
        text_add(t, "%d", (int)index);
}

static void add_value(struct text *t, const strata_attr *a, const char *params)
{
    const void *at = params + a->offset;
    const strata_ints *ints = at;
    const strata_reals *reals = at;
    const strata_string *string = at;
    char real[TEXT_REAL];
    switch (a->type) {
    case STRATA_I64:
        text_add(t, "%lld", (long long)*(const int64_t *)at);
        break;
    case STRATA_F64:
        text_add(t, "%s", text_real(real, 17, *(const double *)at));
        break;
    case STRATA_BOOL:
        text_add(t, "%d", *(const int32_t *)at != 0);
        break;
    case STRATA_ENUM:
        add_choice(t, a, *(const int32_t *)at);
        break;
    case STRATA_STRING:
        text_word(t, string->text ? string->text : "", string->length);
        break;
    case STRATA_INTS:
        for (int64_t i = 0; i < ints->n; i++)
            text_add(t, "%s%lld", i ? "," : "", (long long)ints->v[i]);
        break;
    case STRATA_REALS:
        for (int64_t i = 0; i < reals->n; i++)
            text_add(t, "%s%s", i ? "," : "", text_real(real, 17, reals->v[i]));
        break;
    }
}

static void add_attributes(struct text *t, const struct registry_layer *type,
                           const void *params)
{
    text_add(t, " attributes=");
    for (size_t i = 0; i < type->n_attrs; i++) {
        text_add(t, "%s%s:", i ? ";" : "", type->attrs[i].name);
        add_value(t, &type->attrs[i], params);
    }
}

/* ---- tensors ------------------------------------------------------------------- */

static void add_dims(struct text *t, const int64_t *dims, int rank)
{
    for (int d = 0; d < rank; d++)
        text_add(t, d ? "x%lld" : "%lld", (long long)dims[d]);
}

/* The first format of the table in which such a tensor has the same memory. What is timed
 * does not tell them apart. */
static uint64_t first_alike(uint64_t format, const int64_t *dims, int rank)
{
    const int last = __builtin_ctzll(format);
    strata_desc own, other;
    if (format_desc(&own, *format_at(last), dims, rank, NULL) != STRATA_OK)
        return format;
    for (int f = 0; f < last; f++)
        if (format_at(f)->dtype == own.dtype &&
            format_desc(&other, *format_at(f), dims, rank, NULL) == STRATA_OK &&
            strata_desc_equal(&own, &other))
            return UINT64_C(1) << f;
    return format;
}

static uint64_t format_of_memory(const strata_tensor *t)
{
    return t->format ? first_alike(t->format, t->dims, t->rank) : 0;
}

static bool same_tensor(const strata_tensor *a, const strata_tensor *b)
{
    return a->rank == b->rank && a->dtype == b->dtype &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0 &&
           format_of_memory(a) == format_of_memory(b);
}

static void add_tensors(struct text *t, const char *side, const strata_tensor *tensors,
                        int n)
{
    text_add(t, " %s=", side);
    for (int i = 0, count; i < n; i += count) {
        const strata_tensor *s = &tensors[i];
        for (count = 1; i + count < n && same_tensor(s, &tensors[i + count]);)
            count++;
        text_add(t, i ? "," : "%s", "");
        if (count > 1)
            text_add(t, "%d*", count);
        text_add(t, "%s[",
                 s->format ? format_mask_name(format_of_memory(s), s->rank)
                           : strata_dtype_name(s->dtype));
        add_dims(t, s->dims, s->rank);
        text_add(t, "]");
    }
}

static void add_epilogue(struct text *t, const strata_epilogue *p)
{
    static const struct {
        int32_t flag;
        const char *name;
    } parts[] = {{STRATA_EPILOGUE_SCALE, "scale"},
                 {STRATA_EPILOGUE_BIAS, "bias"},
                 {STRATA_EPILOGUE_RESIDUAL, "residual"}};
    char alpha[TEXT_REAL], beta[TEXT_REAL];
    text_add(t, " epilogue=");
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (p->flags & parts[i].flag)
            text_add(t, "%s;", parts[i].name);
    if (p->flags & STRATA_EPILOGUE_ACTIVATION)
        text_add(t, "activation:%d,%s,%s", (int)p->activation,
                 text_real(alpha, 17, p->alpha), text_real(beta, 17, p->beta));
}

/* Bytes that a run of the network goes through, about. */
static int64_t footprint(const struct planner *planner)
{
    const strata_network *net = planner->network;
    const int64_t size = net->build.precision == PRECISION_FP32 ? 4 : 2;
    int64_t bytes = 0;
    for (size_t i = 0; i < net->n_layers; i++)
        for (size_t w = 0; w < net->layers[i].type->n_weights; w++) {
            const struct network_weight *weight = &net->layers[i].weights[w];
            if (weight->rank > 0)
                bytes += size * network_elements(weight->dims, weight->rank);
        }
    int64_t largest = 0;
    for (size_t t = 0; t < net->n_tensors; t++) {
        const int64_t n = network_elements(net->tensors[t].dims, net->tensors[t].rank);
        largest = n > largest ? n : largest;
    }
    return bytes + 2 * size * largest; /* one is read, one written */
}

bool cost_is_cold(const struct planner *planner)
{
    const int64_t cache = planner->device.properties.cache_bytes;
    return cache > 0 && footprint(planner) > cache;
}

static void add_circumstances(struct text *t, const struct planner *planner)
{
    text_add(t, " threads=%d", planner->threads);
    if (planner->device.properties.cache_bytes > 0)
        text_add(t, " cache=%s", planner->cold ? "cold" : "warm");
}

/* ---- keys ---------------------------------------------------------------------- */

static void add_module(struct text *t, const struct registry_impl *impl)
{
    struct module_info module = module_info(impl->module);
    text_add(t, " module=%s/", module.ns);
    text_word(t, module.version, strlen(module.version));
    text_add(t, "/%.12s", module.build_id);
}

/* A longer key ends in a hash of all of it. */
static int finish_key(struct text *t, char **out, strata_error *err)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    if (t->failed) {
        free(t->bytes);
        return error_no_memory(err, 0, "the key of a cost");
    }
    if (t->n > COST_KEY_MAX) {
        for (size_t i = 0; i < t->n; i++)
            hash = (hash ^ (unsigned char)t->bytes[i]) * UINT64_C(1099511628211);
        snprintf(t->bytes + COST_KEY_MAX - 22, 23, " hash=%016llx",
                 (unsigned long long)hash);
    }
    *out = t->bytes;
    return STRATA_OK;
}

/* The format of a node's i-th input. */
static int format_read(const struct planner_candidate *c, int i)
{
    return c->in_formats[i < PLAN_MAX_PORTS ? i : PLAN_MAX_PORTS - 1];
}

static int fill_views(strata_tensor **out, const struct planner *planner,
                      const struct planner_node *n, const struct planner_candidate *c,
                      bool output, strata_error *err)
{
    int count = output ? n->n_out : n->n_in, status = STRATA_OK;
    *out = zalloc((size_t)(output ? n->n_out : n->n_ports), sizeof **out, "a candidate",
                  err);
    if (!*out)
        return STRATA_ENOMEM;
    for (int i = 0; i < count && status == STRATA_OK; i++) {
        strata_desc d;
        int port = i < PLAN_MAX_PORTS ? i : PLAN_MAX_PORTS - 1;
        int format = output ? c->out_formats[port] : format_read(c, i);
        int tensor = output ? planner_output(planner, n, c->fused, i) : n->in[i];
        status = planner_desc(&d, planner->network, tensor, format, err);
        if (status == STRATA_OK)
            tensor_view(&(*out)[output ? i : planner_port(n, i)], &d,
                        UINT64_C(1) << format, STRATA_PAD_ZERO, NULL);
    }
    return status;
}

static int fill_weights(struct cost_query *q, const struct planner *planner,
                        const struct planner_node *n, strata_error *err)
{
    q->weights =
        zalloc(n->layer->type->n_weights, sizeof *q->weights, "a candidate", err);
    return q->weights ? planner_weights(planner, n, &q->candidate->impl->impl,
                                        q->candidate->fused, q->weights, err)
                      : STRATA_ENOMEM;
}

/* Without factors that are in the first one's values. */
static int seen_weights(const struct registry_layer *type, const strata_impl *impl)
{
    size_t n = type->n_weights;
    while (n > 0 && !(impl->flags & STRATA_WEIGHT_STORED) &&
           type->weights[n - 1].flags & STRATA_FACTORS)
        n--;
    return (int)n;
}

int cost_port_before(const struct planner_node *n, const struct planner_candidate *c,
                     int port)
{
    int read = 0;
    while (read < n->n_in && planner_port(n, read) != port)
        read++;
    for (int i = 0; i < read && read < n->n_in; i++)
        if (n->in[i] == n->in[read] && format_read(c, i) == format_read(c, read))
            return planner_port(n, i);
    return -1;
}

/* Ports that read what an earlier one does, which is loaded once. */
static void add_repeats(struct text *t, const struct planner_node *n,
                        const struct planner_candidate *c)
{
    for (int port = 1, before; port < n->n_ports; port++)
        if ((before = cost_port_before(n, c, port)) >= 0)
            text_add(t, " in%d=in%d", port, before);
}

int cost_query_run(struct cost_query *q, const struct planner *planner,
                   const struct planner_candidate *c, strata_error *err)
{
    const struct planner_node *n = planner_run_node(planner, c);
    const struct registry_layer *type = n->layer->type;
    struct text t = {0};
    *q = (struct cost_query){.candidate = c, .layer = n->layer->name};
    int status = fill_views(&q->in, planner, n, c, false, err);
    if (status == STRATA_OK)
        status = fill_views(&q->out, planner, n, c, true, err);
    if (status == STRATA_OK)
        status = fill_weights(q, planner, n, err);
    if (status != STRATA_OK)
        return status;
    text_add(&t, "run %s ", type->full_name);
    text_word(&t, c->impl->impl.name, strlen(c->impl->impl.name));
    add_module(&t, c->impl);
    text_add(&t, " row=%d", c->row);
    add_tensors(&t, "in", q->in, n->n_ports);
    add_repeats(&t, n, c);
    add_tensors(&t, "out", q->out, n->n_out);
    add_tensors(&t, "weights", q->weights, seen_weights(type, &c->impl->impl));
    add_attributes(&t, type, c->fused && n->composed ? n->composed : n->layer->params);
    strata_epilogue epilogue = planner_epilogue(planner, n, c->fused);
    add_epilogue(&t, &epilogue);
    text_add(&t, " math=%s", math_name(planner->math));
    add_circumstances(&t, planner);
    return finish_key(&t, &q->key, err);
}

static void add_format(struct text *t, int format, const struct network_tensor *tensor)
{
    const uint64_t mask = first_alike(UINT64_C(1) << format, tensor->dims, tensor->rank);
    text_add(t, "%s", format_mask_name(mask, tensor->rank));
}

int cost_query_reformat(struct cost_query *q, const struct planner *planner, int tensor,
                        int from, int to, strata_error *err)
{
    const struct network_tensor *tensors = &planner->network->tensors[tensor];
    struct text t = {0};
    *q = (struct cost_query){.layer = tensors->name};
    int status = planner_desc(&q->from, planner->network, tensor, from, err);
    if (status == STRATA_OK)
        status = planner_desc(&q->to, planner->network, tensor, to, err);
    if (status != STRATA_OK)
        return status;
    text_add(&t, "reformat ");
    add_format(&t, from, tensors);
    text_add(&t, ">");
    add_format(&t, to, tensors);
    text_add(&t, " ");
    add_dims(&t, tensors->dims, tensors->rank);
    add_circumstances(&t, planner);
    return finish_key(&t, &q->key, err);
}

void cost_query_free(struct cost_query *q)
{
    free(q->key);
    free(q->in);
    free(q->out);
    free(q->weights);
}
