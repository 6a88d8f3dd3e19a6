/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxUnpool: what max pooling with indices was made of, as far as it is known. Each value
 * goes to its index in the whole output, all else is 0. Indices outside of it go nowhere.
 * Where two values meet, the later one in the input stays.
 *
 * The indices of a pooling lead each plane into its own: so threads take planes apart. One
 * that leads elsewhere is put off, and then one thread goes through all once more.
 */
#include "plugins/max_unpool/max_unpool.h"

#include "plugins/common/image.h"
#include "plugins/common/walk.h"

enum { X, INDICES };

static const strata_attr attrs[] = {
    {.name = "kernel",
     .type = STRATA_INTS,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(strata_max_unpool, kernel),
     .min = 1,
     .max = INT32_MAX,
     .doc = "window of the pooling, one value or one per spatial dim"},
    {.name = "stride",
     .type = STRATA_INTS,
     .offset = offsetof(strata_max_unpool, stride),
     .min = 1,
     .max = INT32_MAX,
     .doc = "step of its window; empty: 1"},
    {.name = "pad",
     .type = STRATA_INTS,
     .offset = offsetof(strata_max_unpool, pad),
     .min = 0,
     .max = INT32_MAX,
     .doc = "its pads: one value, one per spatial dim, or all begins and then all ends; "
            "empty: 0"},
    {.name = "output_size",
     .type = STRATA_INTS,
     .offset = offsetof(strata_max_unpool, output_size),
     .min = 1,
     .max = INT32_MAX,
     .doc = "spatial size of the output; empty: by the window"},
};

static int max_unpool_shape(const strata_node *n)
{
    const strata_tensor *x = &n->in[X], *indices = &n->in[INDICES];
    struct window w;
    int status = max_unpool_window(&w, n->params, x, n->host, n->err);
    if (status != STRATA_OK)
        return status;
    if (indices->dtype != STRATA_INT64)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input 1 is not i64; give the indices of a max pooling");
    if (indices->rank != x->rank ||
        memcmp(indices->dims, x->dims, (size_t)x->rank * sizeof x->dims[0]) != 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "inputs 0 and 1 differ in shape; needed is one index a value");
    n->out[0].rank = x->rank;
    n->out[0].dims[0] = x->dims[0];
    n->out[0].dims[1] = x->dims[1];
    for (int d = 0; d < w.dims; d++)
        n->out[0].dims[2 + d] = w.out[w.first + d];
    return STRATA_OK;
}

static double max_unpool_flops(const strata_node *n)
{
    (void)n;
    return 0;
}

/* ---- impls --------------------------------------------------------------------- */

/* Values [from, to), those alone whose indices are in [low, high); dense linear tensors of
 * elements of `size` bytes. How many were left out. */
static inline __attribute__((always_inline)) int64_t scatter(const strata_run *r,
                                                             size_t size, int64_t from,
                                                             int64_t to, int64_t low,
                                                             int64_t high)
{
    const char *x = r->in[X].data;
    const int64_t *index = r->in[INDICES].data;
    char *y = r->out[0].data;
    int64_t strays = 0;
    for (int64_t i = from; i < to; i++)
        if (index[i] >= low && index[i] < high)
            memcpy(y + (size_t)index[i] * size, x + (size_t)i * size, size);
        else
            strays++;
    return strays;
}

static int64_t scatter_sized(const strata_run *r, int64_t from, int64_t to, int64_t low,
                             int64_t high)
{
    return dtype_size(r->out[0].dtype) == 2 ? scatter(r, 2, from, to, low, high)
                                            : scatter(r, 4, from, to, low, high);
}

static int c_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[X], *y = &r->out[0];
    int64_t planes = x->dims[0] * x->dims[1], strays = 0;
    int64_t from = image_plane(x), to = image_plane(y);
    size_t bytes = (size_t)to * dtype_size(y->dtype);
#pragma omp parallel for reduction(+ : strays) if (y->count > IMAGE_PARALLEL)
    for (int64_t c = 0; c < planes; c++) {
        memset((char *)y->data + (size_t)c * bytes, 0, bytes);
        strays +=
            scatter_sized(r, c * from, (c + 1) * from, c * to, (c + 1) * to);
    }
    if (strays > 0)
        scatter_sized(r, 0, x->count, 0, y->count);
    return STRATA_OK;
}

/* Offset of element i, in row-major order, of a tensor of any format. */
static int64_t offset_of(const strata_tensor *t, int64_t i)
{
    int64_t index[STRATA_MAX_RANK];
    for (int d = t->rank - 1; d >= 0; d--) {
        index[d] = i % t->dims[d];
        i /= t->dims[d];
    }
    return strata_offset(t, index);
}

static int any_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[X], *y = &r->out[0];
    const int64_t *index = r->in[INDICES].data;
    size_t size = dtype_size(y->dtype);
    memset(y->data, 0, (size_t)y->size * size);
    for (int64_t i = 0; i < x->count; i++)
        if (index[i] >= 0 && index[i] < y->count)
            memcpy((char *)y->data + (size_t)offset_of(y, index[i]) * size,
                   (const char *)x->data + (size_t)offset_of(x, i) * size, size);
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const double *x = in[X];
    const int64_t *index = in[INDICES];
    int64_t from = 1, to = 1;
    double *y = out[0];
    (void)weight;
    for (int d = 0; d < n->in[X].rank; d++) {
        from *= n->in[X].dims[d];
        to *= n->out[0].dims[d];
    }
    memset(y, 0, (size_t)to * sizeof *y);
    for (int64_t i = 0; i < from; i++)
        if (index[i] >= 0 && index[i] < to)
            y[index[i]] = x[i];
    return STRATA_OK;
}

static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                 reference_run};

static const void *max_unpool_extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables -------------------------------------------------------------------- */

static const strata_row c_rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW, STRATA_I64_NCHW},
     {STRATA_SAME}},
};
static const strata_row any_rows[] = {{{WALK_FLOATS, STRATA_I64_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .name = "c", .rows = STRATA_ARRAY(c_rows),
     .bandwidth = 0.3, .run = c_run},
    {.id = 2, .device = STRATA_HOST, .flags = STRATA_PAD_IGNORED, .name = "any",
     .rows = STRATA_ARRAY(any_rows), .bandwidth = 0.05, .run = any_run},
};

static const strata_layer max_unpool = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "MaxUnpool",
    .doc = "The inverse of max pooling with indices, zeros elsewhere; ranks 3 to 5.",
    .min_in = 2, .max_in = 2, .n_out = 1, .params_size = sizeof(strata_max_unpool),
    .attrs = STRATA_ARRAY(attrs), .impls = STRATA_ARRAY(impls),
    .shape = max_unpool_shape, .flops = max_unpool_flops,
    .extension = max_unpool_extension,
};
static const strata_layer *const layers[] = {&max_unpool};
STRATA_MODULE("core", "1.0.0", "MaxUnpool", layers)
