/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor descriptors with the semantics of cuDNN's core concepts. Everything here works
 * on "axes": the dims of the memory behind a descriptor, in which a vectorised dim is
 * two axes, blocks (strides[d] apart) and lanes (1 apart, pad lanes included).
 */
#include "core/arguments.h"
#include "core/checked.h"
#include "core/status.h"

#include <string.h>

#define MAX_AXES (STRATA_MAX_RANK + 1)
/* Nodes the exact overlap search may visit before it answers "overlapping". */
#define OVERLAP_BUDGET 100000

struct axis {
    int64_t extent, stride;
};

struct axes {
    struct axis at[MAX_AXES];
    int n;
};

static const struct {
    const char *name;
    size_t size;
} dtypes[STRATA_DTYPE_COUNT] = {
    [STRATA_FP32] = {"fp32", 4},  [STRATA_FP16] = {"fp16", 2},
    [STRATA_INT8] = {"int8", 1},  [STRATA_UINT8] = {"u8", 1},
    [STRATA_INT32] = {"i32", 4},  [STRATA_INT64] = {"i64", 8},
    [STRATA_BOOL8] = {"bool", 1}, [STRATA_BF16] = {"bf16", 2},
    [STRATA_E4M3] = {"e4m3", 1},  [STRATA_E5M2] = {"e5m2", 1},
    [STRATA_FP64] = {"fp64", 8},
};

/* order lists the dims from the outermost to the innermost in memory. */
static const struct {
    const char *name;
    int rank;
    int order[5];
} layouts[STRATA_LAYOUT_COUNT] = {
    [STRATA_LAYOUT_NCHW] = {"NCHW", 4, {0, 1, 2, 3}},
    [STRATA_LAYOUT_NHWC] = {"NHWC", 4, {0, 2, 3, 1}},
    [STRATA_LAYOUT_CHWN] = {"CHWN", 4, {1, 2, 3, 0}},
    [STRATA_LAYOUT_NCDHW] = {"NCDHW", 5, {0, 1, 2, 3, 4}},
    [STRATA_LAYOUT_NDHWC] = {"NDHWC", 5, {0, 2, 3, 4, 1}},
    [STRATA_LAYOUT_CDHWN] = {"CDHWN", 5, {1, 2, 3, 4, 0}},
    [STRATA_LAYOUT_BMN_ROW] = {"BMN (row-major)", 3, {0, 1, 2}},
    [STRATA_LAYOUT_BMN_COLUMN] = {"BMN (column-major)", 3, {0, 2, 1}},
};

static const char *const dim_letters[STRATA_MAX_RANK + 1] = {
    [1] = "N", [2] = "NC", [3] = "BMN", [4] = "NCHW", [5] = "NCDHW",
};

const char *strata_dtype_name(int dtype)
{
    return dtype >= 0 && dtype < STRATA_DTYPE_COUNT ? dtypes[dtype].name : NULL;
}

size_t strata_dtype_size(int dtype)
{
    return dtype >= 0 && dtype < STRATA_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

/* ---- axes ---------------------------------------------------------------------- */

/* Whether anything of it can be computed; if not, its check says why. */
static bool is_filled(const strata_desc *d)
{
    return d && d->rank >= 0 && d->rank <= STRATA_MAX_RANK &&
           (d->vector_dim < 0 || d->vector >= 1);
}

/* 1: it has elements, 0: none, -1: it is not filled in. */
static int elements(const strata_desc *d)
{
    if (!is_filled(d))
        return -1;
    for (int i = 0; i < d->rank; i++)
        if (d->dims[i] == 0)
            return 0;
    return 1;
}

static void add_axis(struct axes *a, int64_t extent, int64_t stride)
{
    if (extent > 1) /* the stride of a dim of 1 is never used */
        a->at[a->n++] = (struct axis){extent, stride};
}

static void add_dim(struct axes *a, const strata_desc *d, int dim)
{
    int64_t extent = d->dims[dim];
    if (dim == d->vector_dim) {
        add_axis(a, d->vector, 1);
        extent = extent / d->vector + (extent % d->vector != 0);
    }
    add_axis(a, extent, d->strides[dim]);
}

/* Axes of the dims whose bit is set in `dims`, innermost first. */
static struct axes axes_of(const strata_desc *d, unsigned dims)
{
    struct axes a = {.n = 0};
    const int rank = elements(d) > 0 ? d->rank : 0;
    for (int i = 0; i < rank; i++)
        if (dims >> i & 1)
            add_dim(&a, d, i);
    for (int i = 1; i < a.n; i++)
        for (int j = i; j > 0 && a.at[j].stride < a.at[j - 1].stride; j--) {
            struct axis swap = a.at[j];
            a.at[j] = a.at[j - 1];
            a.at[j - 1] = swap;
        }
    return a;
}

/* Offset of the last element, plus one. */
static bool axes_size(const struct axes *a, int64_t *out)
{
    int64_t size = 1;
    for (int i = 0; i < a->n; i++)
        if (!checked_mul_add(a->at[i].extent - 1, a->at[i].stride, size, &size))
            return false;
    *out = size;
    return true;
}

/* No gap and no overlap, in whatever order. */
static bool axes_packed(const struct axes *a)
{
    int64_t next = 1;
    for (int i = 0; i < a->n; i++)
        if (a->at[i].stride != next || !checked_mul(next, a->at[i].extent, &next))
            return false;
    return true;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Two axes alone meet where x*s1 = y*s2, first at x = s2/g, y = s1/g. */
static bool pair_overlaps(const struct axis *a, const struct axis *b)
{
    const int64_t g = gcd(a->stride, b->stride);
    return b->stride / g < a->extent && a->stride / g < b->extent;
}

/* Whether steps x_i, |x_i| < extent_i, over axes 0..top add up to `rest`; reach[i] is
 * the farthest that axes 0..i-1 go. `moved` says that a step was taken already. */
static bool steps_reach(const struct axes *a, const int64_t *reach, int top, int64_t rest,
                        bool moved, int *budget)
{
    if (top < 0)
        return moved && rest == 0;
    if (--*budget < 0)
        return true;
    const struct axis axis = a->at[top];
    const int64_t low = rest - reach[top], high = rest + reach[top];
    const int64_t least = low / axis.stride + (low > 0 && low % axis.stride != 0);
    const int64_t most = high / axis.stride - (high < 0 && high % axis.stride != 0);
    /* The first step may be taken positive: the negated steps meet as well. */
    const int64_t first = moved ? 1 - axis.extent : 0;
    const int64_t from = least > first ? least : first;
    const int64_t to = most < axis.extent ? most : axis.extent - 1;
    for (int64_t x = from; x <= to; x++)
        if (steps_reach(a, reach, top - 1, rest - x * axis.stride, moved || x != 0,
                        budget))
            return true;
    return false;
}

/* Exact for every layout of nested strides, for any two axes, and for all others within
 * OVERLAP_BUDGET; past it the answer is "overlapping", which refuses an output. */
static bool axes_overlap(const struct axes *a, int64_t size)
{
    int64_t reach[MAX_AXES], positions = 1, next = 0;
    bool nested = true;
    for (int i = 0; i < a->n; i++) {
        if (a->at[i].stride == 0 || !checked_mul(positions, a->at[i].extent, &positions))
            return true;
        reach[i] = next;
        nested = nested && a->at[i].stride > next;
        next += (a->at[i].extent - 1) * a->at[i].stride; /* below size: checked */
    }
    if (nested)
        return false;
    if (positions > size)
        return true;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < i; j++)
            if (pair_overlaps(&a->at[i], &a->at[j]))
                return true;
    int budget = size < INT64_MAX / 4 ? OVERLAP_BUDGET : 0;
    return a->n > 2 && steps_reach(a, reach, a->n - 1, 0, false, &budget);
}

/* ---- checks ---------------------------------------------------------------------- */

static int check_shape(const strata_desc *d, strata_error *err)
{
    if (strata_dtype_size(d->dtype) == 0)
        return error_set(err, STRATA_EINVAL,
                         "tensor descriptor: dtype %d is unknown; use one of STRATA_FP32 "
                         "(0) to STRATA_FP64 (%d)",
                         d->dtype, STRATA_DTYPE_COUNT - 1);
    if (d->rank < 1 || d->rank > STRATA_MAX_RANK)
        return error_set(
            err, STRATA_EINVAL,
            "tensor descriptor: rank %d; a tensor has 1 to %d dims, a scalar "
            "is one dim of 1",
            d->rank, STRATA_MAX_RANK);
    for (int i = 0; i < d->rank; i++)
        if (d->dims[i] < 0)
            return error_set(err, STRATA_EINVAL,
                             "tensor descriptor: dim %d is %lld; a dim is 0 (no "
                             "elements) or more",
                             i, (long long)d->dims[i]);
    return STRATA_OK;
}

static int check_strides(const strata_desc *d, strata_error *err)
{
    for (int i = 0; i < d->rank; i++)
        if (d->strides[i] < 0)
            return error_set(err, STRATA_EINVAL,
                             "tensor descriptor: dim %d has the negative stride %lld; "
                             "strides are 0 or more, reverse the data instead",
                             i, (long long)d->strides[i]);
    if (d->vector_dim < -1 || d->vector_dim >= d->rank)
        return error_set(err, STRATA_EINVAL,
                         "tensor descriptor: vectorised dim %d of a tensor of rank %d; "
                         "use -1 for none, or 0 to %d",
                         d->vector_dim, d->rank, d->rank - 1);
    if (d->vector_dim == -1 ? d->vector != 1 : d->vector < 2)
        return error_set(err, STRATA_EINVAL,
                         "tensor descriptor: vector of %d with vectorised dim %d; a "
                         "vector has 2 elements or more, and 1 goes with dim -1",
                         d->vector, d->vector_dim);
    return STRATA_OK;
}

static int check_size(const strata_desc *d, strata_error *err)
{
    int64_t bytes;
    const struct axes a = axes_of(d, ~0u);
    if (elements(d) == 0 ||
        (axes_size(&a, &bytes) &&
         checked_mul(bytes, (int64_t)strata_dtype_size(d->dtype), &bytes) &&
         strata_desc_count(d) >= 0))
        return STRATA_OK;
    return error_set(err, STRATA_EOVERFLOW,
                     "tensor descriptor: the size of rank %d, dim 0 of %lld in %s, does "
                     "not fit 63 bits of bytes; use smaller dims or strides",
                     d->rank, (long long)d->dims[0], strata_dtype_name(d->dtype));
}

static int check_input(const strata_desc *d, strata_error *err)
{
    int status = check_shape(d, err);
    if (status == STRATA_OK)
        status = check_strides(d, err);
    return status == STRATA_OK ? check_size(d, err) : status;
}

int strata_desc_check(const strata_desc *d, int output, strata_error *err)
{
    int status = ARGUMENTS(err, {"d", d});
    if (status == STRATA_OK)
        status = check_input(d, err);
    if (status != STRATA_OK || !output || !strata_desc_overlapping(d))
        return status;
    return error_set(err, STRATA_EINVAL,
                     "tensor descriptor: the strides place several elements at one "
                     "address, which only an input may do; an output needs strides that "
                     "keep its elements apart");
}

/* ---- sizes ----------------------------------------------------------------------- */

int64_t strata_desc_size(const strata_desc *d)
{
    int64_t size;
    const int some = elements(d);
    const struct axes a = axes_of(d, ~0u);
    return some <= 0 ? some : axes_size(&a, &size) ? size : -1;
}

int64_t strata_desc_bytes(const strata_desc *d)
{
    int64_t bytes;
    const int64_t n = strata_desc_size(d);
    return d && checked_mul(n, (int64_t)strata_dtype_size(d->dtype), &bytes) ? bytes : -1;
}

int64_t strata_desc_count(const strata_desc *d)
{
    int64_t count;
    const int some = elements(d);
    return some <= 0 ? some : checked_product(d->dims, d->rank, &count) ? count : -1;
}

int64_t strata_desc_offset(const strata_desc *d, const int64_t *index)
{
    int64_t offset = 0;
    if (!is_filled(d) || !index)
        return -1;
    for (int i = 0; i < d->rank; i++)
        offset += i == d->vector_dim
                      ? index[i] / d->vector * d->strides[i] + index[i] % d->vector
                      : index[i] * d->strides[i];
    return offset;
}

/* ---- predicates ------------------------------------------------------------------ */

int strata_desc_overlapping(const strata_desc *d)
{
    const int64_t size = strata_desc_size(d);
    const struct axes a = axes_of(d, ~0u);
    return elements(d) > 0 && (size < 0 || axes_overlap(&a, size));
}

static int packed_dims(const strata_desc *d, unsigned dims)
{
    const struct axes a = axes_of(d, dims);
    return elements(d) >= 0 && axes_packed(&a);
}

int strata_desc_fully_packed(const strata_desc *d)
{
    return packed_dims(d, ~0u);
}

int strata_desc_packed(const strata_desc *d, const char *letters)
{
    unsigned dims = 0;
    const char *names = elements(d) >= 0 && d->rank > 0 ? dim_letters[d->rank] : NULL;
    if (names == NULL || letters == NULL)
        return 0;
    for (; *letters != '\0'; letters++) {
        const char *at = strchr(names, *letters);
        if (at == NULL)
            return 0;
        dims |= 1u << (at - names);
    }
    return packed_dims(d, dims);
}

int strata_desc_spatially_packed(const strata_desc *d)
{
    return packed_dims(d, ~3u);
}

/* How a dim's index becomes an offset, pad lanes included, in the one form that equal
 * offset functions share: lanes 1 apart in blocks, or (vector 1) all `block` apart. */
struct dim_form {
    int64_t padded, vector, block;
};

static struct dim_form dim_form(const strata_desc *d, int dim)
{
    const int64_t extent = d->dims[dim], stride = d->strides[dim];
    struct dim_form form = {extent, 1, stride};
    if (dim == d->vector_dim) {
        const int64_t blocks = extent / d->vector + (extent % d->vector != 0);
        form.padded = blocks * d->vector;
        if (blocks == 1 || stride == d->vector)
            form.block = 1;
        else
            form.vector = d->vector;
    }
    if (form.padded == 1)
        form.block = 0;
    return form;
}

int strata_desc_equal(const strata_desc *a, const strata_desc *b)
{
    if (elements(a) < 0 || elements(b) < 0 || a->dtype != b->dtype ||
        a->rank != b->rank ||
        memcmp(a->dims, b->dims, sizeof(a->dims[0]) * (size_t)a->rank) != 0)
        return 0;
    for (int i = 0; i < a->rank && elements(a) > 0; i++) {
        const struct dim_form f = dim_form(a, i), g = dim_form(b, i);
        if (f.padded != g.padded || f.vector != g.vector || f.block != g.block)
            return 0;
    }
    return 1;
}

/* ---- constructors ---------------------------------------------------------------- */

static int desc_start(strata_desc *out, int dtype, const int64_t *dims, int rank,
                      strata_error *err)
{
    *out = (strata_desc){.dtype = dtype, .rank = rank, .vector_dim = -1, .vector = 1};
    for (int i = 0; i < rank && rank <= STRATA_MAX_RANK; i++)
        out->dims[i] = dims[i];
    return check_shape(out, err);
}

/* Strides of a packed tensor whose dims lie in `order`, outermost first; dims of 0 count
 * as 1 so that every stride is at least 1. */
static int desc_pack(strata_desc *out, const int *order, strata_error *err)
{
    int64_t stride = out->vector;
    bool fits = true;
    for (int i = out->rank - 1; i >= 0; i--) {
        const int dim = order[i];
        int64_t extent = out->dims[dim];
        if (dim == out->vector_dim)
            extent = extent / out->vector + (extent % out->vector != 0);
        out->strides[dim] = stride;
        fits = fits && checked_mul(stride, extent > 0 ? extent : 1, &stride);
    }
    if (fits)
        return check_input(out, err);
    return error_set(err, STRATA_EOVERFLOW,
                     "tensor descriptor: the product of %d dims, dim 0 of %lld, does not "
                     "fit 63 bits; use smaller dims",
                     out->rank, (long long)out->dims[0]);
}

int strata_desc_layout(strata_desc *out, strata_layout layout, int dtype,
                       const int64_t *dims, int rank, strata_error *err)
{
    int status = ARGUMENTS(err, {"out", out}, {"dims", dims});
    if (status != STRATA_OK)
        return status;
    if ((int)layout < 0 || layout >= STRATA_LAYOUT_COUNT)
        return error_set(err, STRATA_EINVAL,
                         "tensor descriptor: layout %d is unknown; use one of "
                         "STRATA_LAYOUT_NCHW (0) to STRATA_LAYOUT_BMN_COLUMN (%d)",
                         (int)layout, STRATA_LAYOUT_COUNT - 1);
    if ((status = desc_start(out, dtype, dims, rank, err)) != STRATA_OK)
        return status;
    if (rank != layouts[layout].rank)
        return error_set(err, STRATA_EINVAL,
                         "tensor descriptor: rank %d with layout %s, which has %d dims; "
                         "use a layout of that rank or strata_desc_strided",
                         rank, layouts[layout].name, layouts[layout].rank);
    return desc_pack(out, layouts[layout].order, err);
}

int strata_desc_strided(strata_desc *out, int dtype, const int64_t *dims,
                        const int64_t *strides, int rank, strata_error *err)
{
    int status = ARGUMENTS(err, {"out", out}, {"dims", dims}, {"strides", strides});
    if (status == STRATA_OK)
        status = desc_start(out, dtype, dims, rank, err);
    if (status != STRATA_OK)
        return status;
    memcpy(out->strides, strides, sizeof(strides[0]) * (size_t)rank);
    return check_input(out, err);
}

int strata_desc_vector(strata_desc *out, int dtype, const int64_t *dims, int rank, int x,
                       strata_error *err)
{
    static const int order[STRATA_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    int status = ARGUMENTS(err, {"out", out}, {"dims", dims});
    if (status == STRATA_OK)
        status = desc_start(out, dtype, dims, rank, err);
    if (status != STRATA_OK)
        return status;
    if (rank < 2 || x < 1)
        return error_set(err, STRATA_EINVAL,
                         "tensor descriptor: rank %d in vectors of %d; NC/xHWx needs a "
                         "channel dim (rank 2 or more) and x of 1 or more",
                         rank, x);
    if (x > 1) {
        out->vector_dim = 1;
        out->vector = x;
    }
    return desc_pack(out, order, err);
}
