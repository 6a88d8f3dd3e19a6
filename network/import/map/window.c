/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators with a window: convolutions and pooling.
 */
#include "network/import/map/compose.h"

#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"

#define WINDOW "kernel_shape=kernel,strides=stride,dilations=dilation"

static void leave_out(struct section *s, const char *key)
{
    int kept = 0;
    for (int i = 0; s && i < s->n_attrs; i++)
        if (strcmp(s->attrs[i].key, key) != 0)
            s->attrs[kept++] = s->attrs[i];
    if (s)
        s->n_attrs = kept;
}

/* An attribute of m->s as a person would say it: nothing where it is the neutral number
 * in all dims, one number where that is in all. */
static void shorten(struct mapping *m, const char *ours, const char *theirs,
                    int64_t neutral)
{
    int64_t v[2 * STRATA_MAX_RANK];
    const int64_t n = node_integers(m->node, theirs, v, 2 * STRATA_MAX_RANK);
    if (n < 1 || n > 2 * STRATA_MAX_RANK)
        return;
    for (int64_t i = 1; i < n; i++)
        if (v[i] != v[0])
            return;
    if (v[0] == neutral)
        leave_out(m->s, ours);
    else
        section_integer(m->g, m->s, ours, v[0]);
}

/* Begins, then ends: one number where all are the same, no ends where they are the
 * begins; nothing where all are 0. */
static void put_pads(struct mapping *m, const int64_t *pads, int64_t n)
{
    bool same = true, twice = n % 2 == 0;
    for (int64_t i = 0; i < n; i++) {
        same &= pads[i] == pads[0];
        twice &= pads[i] == pads[(i + n / 2) % n];
    }
    if (!same || pads[0] != 0)
        section_integers(m->g, m->s, "pad", pads, same ? 1 : twice ? n / 2 : n);
}

/* Pads, or the word that tells how to choose them. */
static void finish_window(struct mapping *m)
{
    static const char *const modes[][2] = {{"NOTSET", ""},
                                           {"", ""},
                                           {"VALID", "valid"},
                                           {"SAME_UPPER", "same_upper"},
                                           {"SAME_LOWER", "same_lower"}};
    const char *mode = node_text(m->node, "auto_pad", "NOTSET");
    int64_t pads[2 * STRATA_MAX_RANK];
    const int64_t n = node_integers(m->node, "pads", pads, 2 * STRATA_MAX_RANK);
    size_t i = 0;
    while (i < ARRAY_LENGTH(modes) && strcmp(mode, modes[i][0]) != 0)
        i++;
    if (i == ARRAY_LENGTH(modes))
        map_refuse(m,
                   "'auto_pad' = '%s' is none of NOTSET, VALID, SAME_UPPER and "
                   "SAME_LOWER",
                   mode);
    else if (*modes[i][1])
        section_word(m->g, m->s, "pad_mode", modes[i][1]);
    else if (n > 2 * STRATA_MAX_RANK)
        map_refuse(m, "'pads' has %lld numbers; there are at most %d dims", (long long)n,
                   STRATA_MAX_RANK);
    else if (n > 0)
        put_pads(m, pads, n);
    shorten(m, "stride", "strides", 1);
    shorten(m, "dilation", "dilations", 1);
}

void compose_window(struct mapping *m)
{
    map_names(m, WINDOW ",group=groups");
    finish_window(m);
}

/* The size of the output counts, whatever the pads say. */
static void finish_transposed(struct mapping *m)
{
    int64_t size[STRATA_MAX_RANK];
    const int n = map_integers(m, "output_shape", -1, size);
    const int space = map_input_rank(m, 0) - 2;
    finish_window(m);
    if (n <= 0)
        return;
    leave_out(m->s, "pad");
    if (n != space && n != space + 2)
        map_refuse(m, "'output_shape' has %d numbers; the input has %d spatial dims", n,
                   space);
    else
        section_integers(m->g, m->s, "output_size", size + (n - space), space);
}

/* The place in the whole input as ONNX counts it with storage_order = 1: within a plane
 * the first spatial dim runs fastest. */
static int order_by_columns(struct mapping *m, int at)
{
    const struct value *x = map_input(m, 0);
    int64_t plane = 1, below = 1, above = 1;
    for (int d = 2; d < x->rank; d++)
        plane *= x->dims[d];
    int rest = compose_op(m, "ElementWise", "mod", at,
                          compose_number(m, STRATA_INT64, (double)plane));
    int sum = compose_op(m, "ElementWise", "sub", at, rest);
    below = plane;
    for (int d = 2; d < x->rank; d++) {
        below /= x->dims[d] ? x->dims[d] : 1;
        const int size = compose_number(m, STRATA_INT64, (double)below);
        const int index = compose_op(m, "ElementWise", "div", rest, size);
        const int share = compose_op(m, "ElementWise", "product", index,
                                     compose_number(m, STRATA_INT64, (double)above));
        rest = compose_op(m, "ElementWise", "mod", rest, size);
        sum = compose_op(m, "ElementWise", "sum", sum, share);
        above *= x->dims[d];
    }
    return sum;
}

/* Integers of 8 bits are numbers of FP32, too, by a scale of 1: so a plan may pool them
 * as they are. */
static void pool_bytes(struct mapping *m, int dtype)
{
    struct section *pool = m->s;
    const int one = compose_number(m, STRATA_FP32, 1);
    const int wide = compose_one(m, "Dequantize", pool->in[0]);
    const size_t n = m->n_sections;
    if (wide < 0 || n < 2)
        return;
    section_weight(m->s, "scale", one);
    struct section *first = m->sections[n - 1];
    m->sections[n - 1] = pool;
    m->sections[n - 2] = first;
    pool->in[0] = wide;
    pool->out[0] = map_between(m);
    compose_one(m, "Quantize", pool->out[0]);
    section_word(m->g, m->s, "dtype", strata_dtype_name(dtype));
    section_weight(m->s, "scale", one);
    compose_end(m, 0, -1);
}

static void finish_max_pool(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    struct section *pool = m->s;
    finish_window(m);
    if (!x || m->refused)
        return;
    if (map_has_output(m, 1))
        section_flag(m->g, pool, "indices", true);
    else if (pool)
        pool->n_out = 1;
    if (x->dtype == STRATA_INT8 || x->dtype == STRATA_UINT8)
        pool_bytes(m, x->dtype);
    if (map_has_output(m, 1) && node_integer(m->node, "storage_order", 0)) {
        pool->out[1] = map_between(m);
        compose_is(m, 1, order_by_columns(m, pool->out[1]), -1, NULL);
    }
}

/* What the third input says beyond the size that was pooled is added at the ends. */
static void finish_unpool(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    int64_t size[STRATA_MAX_RANK], kernel[STRATA_MAX_RANK], stride[STRATA_MAX_RANK];
    int64_t pads[2 * STRATA_MAX_RANK] = {0}, more[STRATA_MAX_RANK] = {0};
    const int n = map_integers(m, "output_shape", 2, size);
    const int space = x ? x->rank - 2 : 0;
    bool adds = false;
    finish_window(m);
    node_integers(m->node, "pads", pads, 2 * STRATA_MAX_RANK);
    if (n <= 0 || m->refused)
        return;
    if (n != space + 2 || map_integers(m, "kernel_shape", -1, kernel) != space) {
        map_refuse(m, "'output_shape' has %d numbers, the input rank %d", n, space + 2);
        return;
    }
    if (map_integers(m, "strides", -1, stride) != space)
        for (int d = 0; d < space; d++)
            stride[d] = 1;
    if (!compose_fits(m, "output_shape", size, n, 0) ||
        !compose_fits(m, "strides", stride, space, 1) ||
        !compose_fits(m, "kernel_shape", kernel, space, 1) ||
        !compose_fits(m, "pads", pads, 2 * space, 0))
        return;
    for (int d = 0; d < space; d++) {
        more[d] = size[d + 2] - ((x->dims[d + 2] - 1) * stride[d] + kernel[d] - pads[d] -
                                 pads[space + d]);
        adds |= more[d] != 0;
    }
    if (!adds || !m->s)
        return;
    m->s->out[0] = map_between(m);
    compose_one(m, "Padding", m->s->out[0]);
    section_integers(m->g, m->s, "end", more, space);
    compose_end(m, 0, -1);
}

/* Whether all that reads the result makes floats of it, which a large sum is rounded to.
 */
static bool becomes_floats(const struct mapping *m)
{
    const struct graph *g = m->g;
    const int y = m->node->out[0];
    bool floats = true;
    for (size_t i = 0; floats && i < g->n_outputs; i++)
        floats = g->outputs[i] != y;
    for (size_t i = 0; floats && i < g->n_nodes; i++)
        for (int k = 0; floats && k < g->nodes[i]->n_in; k++)
            floats = g->nodes[i]->in[k] != y ||
                     (strcmp(g->nodes[i]->op, "Cast") == 0 &&
                      dtype_is_free(onnx_type_core((enum onnx_type)node_integer(
                          g->nodes[i], "to", ONNX_UNDEFINED))));
    return floats;
}

/* ConvInteger is exact where all sums of its products are numbers of FP32; it is refused
 * where others are needed as integers. */
static bool is_exact(struct mapping *m, const struct value *w, const double *v)
{
    const int64_t filters = w->rank ? w->dims[0] : 1;
    const int64_t taps = filters ? value_count(w) / filters : 0;
    for (int64_t k = 0; k < filters; k++) {
        double sum = 0;
        for (int64_t i = 0; i < taps; i++)
            sum += v[k * taps + i] < 0 ? -v[k * taps + i] : v[k * taps + i];
        if (sum * 255 <= (double)(1 << 24))
            continue;
        if (becomes_floats(m))
            return true;
        map_refuse(
            m,
            "sums of filter %lld may exceed 2^24, up to which they are exact here, "
            "and it is not for a Cast to floats alone: quantize without this node "
            "(nodes_to_exclude), or as QDQ",
            (long long)k);
        return false;
    }
    return true;
}

/* Input i less its zero point, input z, as FP32. */
static int centred(struct mapping *m, int i, int z)
{
    const int wide = compose_cast(m, compose_input(m, i), STRATA_FP32);
    const struct value *zero = map_input(m, z);
    if (!zero)
        return wide;
    return compose_op(m, "ElementWise", "sub", wide,
                      compose_cast(m, compose_input(m, z), STRATA_FP32));
}

static void map_conv_integer(struct mapping *m)
{
    const struct value *w = map_constant(m, 1, "w"), *zero = map_constant(m, 3, "zero");
    double *v = compose_values(m, w), *z = compose_values(m, zero);
    const int64_t n = w ? value_count(w) : 0, n_zero = zero ? value_count(zero) : 0;
    if (m->refused || !v)
        return;
    if (w->rank < 3 || (zero && n_zero != 1 && n_zero != w->dims[0])) {
        map_refuse(m, "'w' has rank %d, its zero point %lld numbers", w->rank,
                   (long long)n_zero);
        return;
    }
    for (int64_t i = 0; i < n && n_zero; i++)
        v[i] -= z[n_zero == 1 ? 0 : i / (n / w->dims[0])];
    if (!is_exact(m, w, v))
        return;
    compose_one(m, "Convolution", centred(m, 0, 2));
    section_weight(m->s, "weight", compose_reals(m, w->rank, w->dims, v));
    const int y = m->s->out[0];
    compose_window(m);
    compose_cast(m, y, STRATA_INT32);
    compose_end(m, 0, -1);
}

#define POOL(op_, kind_, names_, finish_)                                                \
    {                                                                                    \
        .op = op_, .layer = "Pooling", .fixed = "kind=" kind_, .ports = "x",             \
        .names = names_, .finish = finish_                                               \
    }

static const struct map_rule rules[] = {
    {.op = "Conv",
     .layer = "Convolution",
     .ports = "xww",
     .names = WINDOW ",group=groups",
     .finish = finish_window,
     .note = "1 to 3 spatial dims; computed weights: several layers"},
    {.op = "ConvTranspose",
     .layer = "Deconvolution",
     .ports = "xww",
     .names = WINDOW ",group=groups,output_padding=output_pad",
     .finish = finish_transposed,
     .note = "1 to 3 spatial dims; computed weights: several layers"},
    {.op = "ConvInteger",
     .finish = map_conv_integer,
     .note = "weights are constant; sums below 2^24, if not cast to floats"},
    POOL("MaxPool", "max", WINDOW ",ceil_mode=ceil_mode?", finish_max_pool),
    POOL("AveragePool", "average",
         WINDOW ",ceil_mode=ceil_mode?,count_include_pad=count_include_pad?",
         finish_window),
    POOL("LpPool", "lp", WINDOW ",ceil_mode=ceil_mode?,p=p", finish_window),
    POOL("GlobalAveragePool", "average,global=yes", "", NULL),
    POOL("GlobalMaxPool", "max,global=yes", "", NULL),
    POOL("GlobalLpPool", "lp,global=yes", "p=p", NULL),
    {.op = "MaxUnpool",
     .layer = "MaxUnpool",
     .ports = "xx-",
     .names = "kernel_shape=kernel,strides=stride",
     .finish = finish_unpool},
};

const struct map_table map_window = {"Windows", rules, ARRAY_LENGTH(rules)};
