/* SPDX-License-Identifier: Apache-2.0
 *
 * Every row of the device's reformat table against the host's reformat, bit for bit, at
 * awkward sizes, with garbage in the destination and the source's pads, and guard bands
 * around the destination.
 *
 *   STRATA_TEST_SAMPLE=N    one pair in N for each row, after the first of each kind
 */
#include "tests/cuda/device.h"

#include <stdio.h>

#include <strata/narrow.h>

#include "formats/reformat/reformat.h"

#define GUARD 256 /* bytes on each side of a destination */
#define MAX_ROWS 16

TestSuite(cuda_reformat, .timeout = 600);

static const char *const names[] = {
    "fp32:nchw",  "fp16:nchw",    "fp16:nc/2hw2",   "fp16:nhwc8",   "fp32:nhwc",
    "fp16:nhwc",  "fp32:nc/8hw8", "fp32:nc/16hw16", "int8:nc/4hw4", "int8:nc/32hw32",
    "u8:nhwc",    "i32:nchw",     "int8:nchw",      "u8:nchw",      "fp32:chwn",
    "fp16:chwn",  "int8:nhwc",    "fp16:nc/7hw7",   "int8:nc/5hw5", "i32:nc/4hw4",
    "bf16:nchw",  "bf16:nhwc",    "bf16:nhwc8",     "i64:nchw",     "bool:nchw",
    "fp64:nchw",  "e4m3:nchw",    "e4m3:nhwc16",    "e5m2:nchw",    "e5m2:nhwc16",
    "u8:nc/4hw4", "u8:nc/32hw32", "int8:nhwc16",    "i64:nc/2hw2",
};

/* ---- the bench a pair lies on ---------------------------------------------------------
 */

static struct bench {
    strata_handle *handle;
    char *src, *dst; /* device memory */
    char *host_src, *want, *got;
    size_t room; /* bytes of each */
    uint64_t state;
    int uses[MAX_ROWS];
} bench;

static uint32_t draw(void)
{
    bench.state =
        bench.state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(bench.state >> 33);
}

static int64_t below(int64_t n)
{
    return (int64_t)(draw() % (uint32_t)n);
}

static void open_bench(size_t room)
{
    strata_error err = {0};
    bench.handle = need_cuda();
    bench.room = room;
    bench.src = allocator_get(&bench.handle->allocator, room, "src", &err);
    bench.dst = allocator_get(&bench.handle->allocator, room, "dst", &err);
    bench.host_src = strata_host_alloc(bench.handle, room, &err);
    bench.got = strata_host_alloc(bench.handle, room, &err);
    bench.want = malloc(room);
    cr_assert(bench.src && bench.dst && bench.host_src && bench.got && bench.want, "%s",
              err.message);
    cr_assert_leq(bench.handle->device->ops->reformat_rows(), MAX_ROWS);
}

static void close_bench(void)
{
    allocator_put(&bench.handle->allocator, bench.src, bench.room);
    allocator_put(&bench.handle->allocator, bench.dst, bench.room);
    strata_host_free(bench.handle, bench.host_src, bench.room);
    strata_host_free(bench.handle, bench.got, bench.room);
    free(bench.want);
    strata_destroy(bench.handle);
}

/* Random bits; for floats also what rounding and saturation turn on. */
static void fill_random(char *data, int dtype, int64_t n)
{
    static const float edges[] = {65504,  65519.99f,     65520,     6e-8f,   2.9e-8f,
                                  127.5f, 254.5f,        255.5f,    -128.5f, 1e30f,
                                  -0.0f,  2147483648.0f, 448,       464,     465,
                                  61440,  3.4e38f,       1.0039062f};
    const size_t size = strata_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = (uint64_t)draw() << 33 ^ draw();
        const uint32_t kind = (uint32_t)bits % 4;
        float x = kind == 1 ? edges[bits / 4 % ARRAY_LENGTH(edges)]
                            : (float)((int32_t)(bits % 2400) - 1200) / 4;
        /* just past what FP32 holds: to be rounded once */
        const double fine = (double)x * (bits >> 40 & 1 ? 1 + 0x1p-40 : 1);
        const uint16_t half = half_from_float(x), bfloat = strata_bfloat_of_float(x);
        const int64_t near = (int64_t)bits >> (bits >> 8 & 63);
        char *to = data + (size_t)i * size;
        if (kind > 0 && dtype == STRATA_FP32)
            memcpy(to, &x, size);
        else if (kind > 0 && dtype == STRATA_FP16)
            memcpy(to, &half, size);
        else if (kind > 0 && dtype == STRATA_BF16)
            memcpy(to, &bfloat, size);
        else if (kind > 0 && dtype == STRATA_FP64)
            memcpy(to, &fine, size);
        else if (kind > 0 && dtype == STRATA_INT64)
            memcpy(to, &near, size);
        else
            memcpy(to, &bits, size);
    }
}

static bool is_nan(int dtype, const char *p)
{
    double wide = 0;
    float x = 0;
    uint16_t half = 0;
    memcpy(&half, p, strata_dtype_size(dtype) < 2 ? 1 : 2);
    switch (dtype) {
    case STRATA_FP64:
        memcpy(&wide, p, sizeof wide);
        return wide != wide;
    case STRATA_FP32:
        memcpy(&x, p, sizeof x);
        return x != x;
    case STRATA_FP16:
        return (half & 0x7fff) > 0x7c00;
    case STRATA_BF16:
        return (half & 0x7fff) > 0x7f80;
    case STRATA_E4M3:
        return (half & 0x7f) == 0x7f;
    case STRATA_E5M2:
        return (half & 0x7f) > 0x7c;
    default:
        return false;
    }
}

/* A NaN's payload may differ. */
static bool both_nan(int dtype, const char *a, const char *b)
{
    return is_nan(dtype, a) && is_nan(dtype, b);
}

/* The first byte that differs, or -1. */
static int64_t difference(const strata_desc *dst, size_t start, size_t bytes)
{
    const size_t size = strata_dtype_size(dst->dtype), end = bytes - GUARD;
    if (memcmp(bench.got, bench.want, bytes) == 0)
        return -1;
    for (size_t i = 0; i < bytes; i++) {
        if (bench.got[i] == bench.want[i])
            continue;
        const size_t at = start + (i - start) / size * size;
        if (i < start || at + size > end ||
            !both_nan(dst->dtype, bench.got + at, bench.want + at))
            return (int64_t)i;
    }
    return -1;
}

static void describe(char *text, size_t size, const strata_desc *d)
{
    int n = snprintf(text, size, "%s v%d@%d ", strata_dtype_name(d->dtype), d->vector,
                     d->vector_dim);
    for (int i = 0; i < d->rank; i++)
        n += snprintf(text + n, size - (size_t)n, "%lld/%lld ", (long long)d->dims[i],
                      (long long)d->strides[i]);
}

static void check_row(size_t row, const strata_desc *dst, size_t start, size_t bytes,
                      const strata_desc *src, size_t src_start, uint64_t seed)
{
    const struct device_ops *ops = bench.handle->device->ops;
    strata_stream *s = bench.handle->stream;
    strata_error err = {0};
    char to[256], from[256];
    cr_assert_eq(ops->fill(s, bench.dst, 0xa5, bytes, &err), STRATA_OK, "%s",
                 err.message);
    const int status = ops->reformat_row(s, row, dst, bench.dst + start, src,
                                         bench.src + src_start, &err);
    if (status == STRATA_EUNSUPPORTED) {
        cr_assert_neq(row, ops->reformat_choose(dst, bench.dst + start, src,
                                                bench.src + src_start));
        return;
    }
    bench.uses[row]++;
    cr_assert_eq(status, STRATA_OK, "%s", err.message);
    ops->copy(s, bench.got, bench.dst, bytes, COPY_FROM_DEVICE, &err);
    cr_assert_eq(strata_stream_synchronize(s, &err), STRATA_OK, "row %s: %s",
                 ops->reformat_row_name(row), err.message);
    const int64_t at = difference(dst, start, bytes);
    if (at < 0)
        return;
    describe(to, sizeof to, dst);
    describe(from, sizeof from, src);
    cr_assert(0,
              "row %s, %sat %zu from %sat %zu, seed %llu: byte %lld of %zu is %02x, "
              "not %02x",
              ops->reformat_row_name(row), to, start - GUARD, from, src_start,
              (unsigned long long)seed, (long long)at - (long long)start,
              bytes - 2 * GUARD, bench.got[at] & 0xff, bench.want[at] & 0xff);
}

/* Whether a sample takes this row for this pair. */
static bool is_sampled(size_t row, const strata_desc *dst, const strata_desc *src)
{
    static struct {
        size_t row;
        int dtypes, to, from; /* vectors */
    } seen[4096];
    static size_t n;
    const char *one_in = getenv("STRATA_TEST_SAMPLE");
    const int dtypes = dst->dtype * STRATA_DTYPE_COUNT + src->dtype;
    if (!one_in)
        return true;
    for (size_t i = 0; i < n; i++)
        if (seen[i].row == row && seen[i].dtypes == dtypes && seen[i].to == dst->vector &&
            seen[i].from == src->vector)
            return below(strtol(one_in, NULL, 10)) == 0;
    if (n < ARRAY_LENGTH(seen)) {
        seen[n].row = row;
        seen[n].dtypes = dtypes;
        seen[n].to = dst->vector;
        seen[n++].from = src->vector;
    }
    return true;
}

/* Every row; offsets, in elements, move both tensors off their alignment. */
static void check_pair(const strata_desc *dst, int64_t to, const strata_desc *src,
                       int64_t from)
{
    const struct device_ops *ops = bench.handle->device->ops;
    const uint64_t seed = bench.state;
    strata_error err = {0};
    bool rows[MAX_ROWS], any = false;
    for (size_t row = 0; row < ops->reformat_rows(); row++)
        any |= rows[row] = is_sampled(row, dst, src);
    if (!any)
        return;
    const size_t start = GUARD + (size_t)to * strata_dtype_size(dst->dtype);
    const size_t src_start = (size_t)from * strata_dtype_size(src->dtype);
    const size_t src_bytes = (size_t)strata_desc_bytes(src);
    const size_t bytes = start + (size_t)strata_desc_bytes(dst) + GUARD;
    cr_assert(bytes <= bench.room && src_start + src_bytes <= bench.room);
    fill_random(bench.host_src + src_start, src->dtype, strata_desc_size(src));
    memset(bench.want, 0xa5, bytes);
    cr_assert_eq(reformat(dst, bench.want + start, src, bench.host_src + src_start, &err),
                 STRATA_OK, "%s", err.message);
    ops->copy(bench.handle->stream, bench.src + src_start, bench.host_src + src_start,
              src_bytes, COPY_TO_DEVICE, &err);
    for (size_t row = 0; row < ops->reformat_rows(); row++)
        if (rows[row])
            check_row(row, dst, start, bytes, src, src_start, seed);
    cr_assert_eq(strata_stream_synchronize(bench.handle->stream, &err), STRATA_OK, "%s",
                 err.message);
}

static void check_formats(const char *to, const char *from, const int64_t *dims, int rank,
                          int64_t to_offset, int64_t from_offset)
{
    strata_error err = {0};
    strata_desc dst, src;
    cr_assert_eq(strata_desc_format(&dst, to, dims, rank, &err), 0, "%s", err.message);
    cr_assert_eq(strata_desc_format(&src, from, dims, rank, &err), 0, "%s", err.message);
    check_pair(&dst, to_offset, &src, from_offset);
}

static void expect_all_rows_used(void)
{
    const struct device_ops *ops = bench.handle->device->ops;
    for (size_t row = 0; row < ops->reformat_rows(); row++) {
        cr_expect_gt(bench.uses[row], 0, "row %s took no pair",
                     ops->reformat_row_name(row));
        fprintf(stderr, "# row %s: %d pairs\n", ops->reformat_row_name(row),
                bench.uses[row]);
    }
}

/* ---- tests
 * ----------------------------------------------------------------------------- */

Test(cuda_reformat, every_row_matches_the_host_at_awkward_sizes)
{
    static const int64_t channels[] = {1,  2,  3,  4,  7,  8,  9,  15,
                                       16, 17, 31, 32, 33, 63, 64, 65};
    static const int64_t sides[] = {1, 5, 7, 14};
    open_bench(1 << 20);
    bench.state = 1;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(names); j++)
            for (size_t c = 0; c < ARRAY_LENGTH(channels); c++)
                for (int batch = 1; batch <= 3; batch += 2) {
                    const int64_t side = sides[below(4)];
                    const int64_t dims[] = {batch, channels[c], side,
                                            below(3) ? side : sides[below(4)]};
                    const bool off = below(6) == 0;
                    check_formats(names[i], names[j], dims, 4, off ? below(16) : 0,
                                  off ? below(16) : 0);
                }
    expect_all_rows_used();
    close_bench();
}

/* The four formats of the card, with every channel count and side. */
Test(cuda_reformat, the_four_formats_match_at_every_awkward_size)
{
    static const int64_t channels[] = {1,  2,  3,  4,  7,  8,  9,  15,  16,
                                       17, 31, 32, 33, 63, 64, 65, 130, 200};
    static const int64_t sides[] = {1, 5, 7, 14, 28, 56};
    open_bench(8 << 20);
    bench.state = 2;
    for (size_t i = 0; i < 16; i++)
        for (size_t c = 0; c < ARRAY_LENGTH(channels); c++)
            for (size_t s = 0; s < ARRAY_LENGTH(sides); s++) {
                const int64_t dims[] = {sides[s] > 14 ? 1 : 3, channels[c], sides[s],
                                        sides[s]};
                check_formats(names[i / 4], names[i % 4], dims, 4, 0, 0);
            }
    close_bench();
}

/* Shapes whose tiles end in the middle of a plane, hold some of the channels or several
 * images, or begin at any alignment. */
Test(cuda_reformat, the_four_formats_match_where_tiles_are_cut)
{
    static const int64_t shapes[][4] = {
        {32, 3, 7, 7},    {30, 3, 7, 7},   {7, 3, 7, 7},     {6, 67, 7, 7},
        {5, 67, 7, 7},    {9, 64, 7, 7},   {3, 512, 7, 7},   {3, 512, 14, 14},
        {2, 320, 14, 14}, {2, 67, 28, 28}, {2, 67, 30, 36},  {2, 192, 30, 36},
        {1, 128, 44, 44}, {2, 24, 35, 35}, {2, 6, 120, 100},
    };
    open_bench(4 << 20);
    bench.state = 5;
    for (size_t i = 0; i < 16; i++)
        for (size_t s = 0; s < ARRAY_LENGTH(shapes); s++)
            for (int offset = 0; offset < 3; offset++)
                check_formats(names[i / 4], names[i % 4], shapes[s], 4,
                              offset == 1 ? 2 : 0, offset == 2 ? 2 : 0);
    close_bench();
}

/* The same of bytes, one of each kind of pads, at any address. */
Test(cuda_reformat, the_formats_of_bytes_match_where_tiles_are_cut)
{
    static const char *const bytes[] = {"int8:nchw", "int8:nc/4hw4", "int8:nc/32hw32",
                                        "int8:nhwc16"};
    static const int64_t shapes[][4] = {
        {32, 3, 7, 7},   {7, 3, 7, 7},    {8, 67, 7, 7},    {5, 67, 7, 7},
        {9, 64, 7, 7},   {3, 512, 7, 7},  {3, 512, 14, 14}, {2, 130, 14, 14},
        {2, 67, 28, 28}, {1, 67, 56, 56}, {1, 256, 56, 56}, {2, 3, 56, 56},
        {1, 15, 16, 16}, {2, 17, 8, 12},  {1, 1, 32, 32},   {2, 33, 10, 10},
        {1, 64, 35, 35},
    };
    static const int64_t offsets[][2] = {{0, 0}, {1, 0}, {0, 1}, {4, 4}, {16, 12}};
    open_bench(2 << 20);
    bench.state = 6;
    for (size_t i = 0; i < 16; i++)
        for (size_t s = 0; s < ARRAY_LENGTH(shapes); s++)
            for (size_t k = 0; k < ARRAY_LENGTH(offsets); k++)
                check_formats(bytes[i / 4], bytes[i % 4], shapes[s], 4, offsets[k][0],
                              offsets[k][1]);
    close_bench();
}

Test(cuda_reformat, other_ranks_match)
{
    static const struct {
        int rank;
        int64_t dims[STRATA_MAX_RANK];
    } shapes[] = {
        {1, {65}},
        {2, {3, 65}},
        {3, {3, 17, 33}},
        {5, {2, 9, 3, 5, 7}},
        {5, {1, 64, 2, 8, 8}},
        {6, {2, 3, 2, 3, 4, 5}},
        {4, {2, 0, 7, 7}},
    };
    open_bench(1 << 20);
    bench.state = 3;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(names); j++)
            for (size_t k = 0; k < ARRAY_LENGTH(shapes); k++) {
                strata_desc dst, src;
                if (strata_desc_format(&dst, names[i], shapes[k].dims, shapes[k].rank,
                                       NULL) == 0 &&
                    strata_desc_format(&src, names[j], shapes[k].dims, shapes[k].rank,
                                       NULL) == 0 &&
                    strata_desc_count(&dst) > 0)
                    check_pair(&dst, 0, &src, 0);
            }
    close_bench();
}

/* Pitches above dense, a broadcast source, and dims in any order. */
Test(cuda_reformat, strided_views_match)
{
    static const int dtypes[] = {STRATA_FP32, STRATA_FP16,  STRATA_INT8,
                                 STRATA_BF16, STRATA_INT64, STRATA_E4M3};
    open_bench(4 << 20);
    bench.state = 4;
    for (int round = 0; round < 2000; round++) {
        int64_t dims[4], strides[2][4];
        int order[4] = {0, 1, 2, 3};
        strata_desc d[2];
        for (int i = 0; i < 4; i++)
            dims[i] = 1 + below(i == 1 ? 40 : 12);
        for (int side = 0; side < 2; side++) {
            int64_t step = 1 + (below(4) == 0);
            for (int i = 3; i > 0; i--) {
                const int k = (int)below(i + 1), swap = order[i];
                order[i] = order[k];
                order[k] = swap;
            }
            for (int i = 3; i >= 0; i--) {
                strides[side][order[i]] = step;
                step *= dims[order[i]];
                step += below(3) == 0 ? below(9) : 0;
            }
        }
        if (below(5) == 0)
            strides[1][below(4)] = 0;
        for (int side = 0; side < 2; side++) {
            strata_error err = {0};
            cr_assert_eq(strata_desc_strided(&d[side],
                                             dtypes[below(ARRAY_LENGTH(dtypes))], dims,
                                             strides[side], 4, &err),
                         STRATA_OK, "%s", err.message);
        }
        check_pair(&d[0], below(3) == 0 ? below(8) : 0, &d[1],
                   below(3) == 0 ? below(8) : 0);
    }
    close_bench();
}

/* More than 2^31 elements: offsets and counts are 64-bit. */
Test(cuda_reformat, more_than_two_to_the_31_elements_match)
{
    strata_handle *h = need_cuda();
    const struct device_ops *ops = h->device->ops;
    strata_error err = {0};
    strata_desc dst, src;
    const int64_t dims[] = {3, 64, 3361, 3361}, count = 3 * 64 * 3361LL * 3361;
    const size_t bytes = (size_t)count * 2;
    cr_assert_eq(strata_desc_format(&dst, "fp16:nhwc8", dims, 4, &err), STRATA_OK);
    cr_assert_eq(strata_desc_format(&src, "fp16:nchw", dims, 4, &err), STRATA_OK);
    char *a = allocator_get(&h->allocator, bytes, "a", NULL);
    char *b = allocator_get(&h->allocator, bytes, "b", NULL);
    if (!a || !b) {
        allocator_put(&h->allocator, a, bytes);
        allocator_put(&h->allocator, b, bytes);
        strata_destroy(h);
        cr_skip_test("less than 9 GB of device memory");
    }
    /* A mark at scattered places of the source, looked up in the destination. */
    ops->fill(h->stream, a, 0, bytes, &err);
    ops->fill(h->stream, b, 0xa5, bytes, &err);
    for (int64_t k = 0; k < 200; k++) {
        const int64_t at = k < 199 ? k * (count / 199) : count - 1;
        const uint16_t mark = (uint16_t)(k + 1);
        ops->copy(h->stream, a + at * 2, &mark, 2, COPY_TO_DEVICE, &err);
        strata_stream_synchronize(h->stream, &err);
    }
    cr_assert_eq(ops->reformat(h->stream, &dst, b, &src, a, &err), STRATA_OK, "%s",
                 err.message);
    for (int64_t k = 0; k < 200; k++) {
        const int64_t at = k < 199 ? k * (count / 199) : count - 1;
        const int64_t plane = dims[2] * dims[3];
        const int64_t index[] = {at / (64 * plane), at / plane % 64, at % plane / dims[3],
                                 at % dims[3]};
        uint16_t mark = 0;
        ops->copy(h->stream, &mark, b + strata_desc_offset(&dst, index) * 2, 2,
                  COPY_FROM_DEVICE, &err);
        cr_assert_eq(strata_stream_synchronize(h->stream, &err), STRATA_OK, "%s",
                     err.message);
        cr_assert_eq(mark, k + 1, "element %lld", (long long)at);
    }
    allocator_put(&h->allocator, a, bytes);
    allocator_put(&h->allocator, b, bytes);
    strata_destroy(h);
}
