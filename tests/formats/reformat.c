/* SPDX-License-Identifier: Apache-2.0
 *
 * Every row of the reformat table against a plain copy of one element at a time, with
 * garbage in the destination, guard bands around it, and the source against a page that
 * must not be read.
 */
#include "formats/reformat/reformat.h"
#include "tests/formats/reference.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD 256 /* bytes on each side of a destination */
#define MAX_ROWS 16

static const char *const names[] = {
    "fp32:nchw",   "fp16:nchw",    "fp16:nc/2hw2",   "fp16:nhwc8",   "fp32:nhwc",
    "fp16:nhwc",   "fp32:nc/8hw8", "fp32:nc/16hw16", "int8:nc/4hw4", "int8:nc/32hw32",
    "u8:nhwc",     "i32:nchw",     "int8:nchw",      "u8:nchw",      "fp32:chwn",
    "fp16:chwn",   "int8:nhwc",    "fp32:nc/3hw3",   "fp16:nc/7hw7", "int8:nc/5hw5",
    "i32:nc/4hw4", "u8:nhwc8",     "i64:nchw",       "bool:nchw",    "bf16:nchw",
    "bf16:nhwc",   "bf16:nhwc8",   "u8:nc/4hw4",     "u8:nc/32hw32", "int8:nhwc16",
    "e4m3:nchw",   "e4m3:nhwc16",  "e5m2:nchw",      "e5m2:nhwc16",  "fp64:nchw",
    "i64:nhwc",    "fp64:nc/8hw8",
};

/* ---- random data and the reference ------------------------------------------------- */

static uint64_t state;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) * 2654435761u ^ (uint32_t)(state >> 32);
}

static int64_t below(int64_t n)
{
    return (int64_t)(draw() % (uint32_t)n);
}

static void set(char *data, int dtype, int64_t at, long double x, uint64_t nan)
{
    static const struct {
        int64_t low, high;
    } whole[STRATA_DTYPE_COUNT] = {
        [STRATA_INT8] = {INT8_MIN, INT8_MAX},
        [STRATA_UINT8] = {0, UINT8_MAX},
        [STRATA_INT32] = {INT32_MIN, INT32_MAX},
        [STRATA_INT64] = {INT64_MIN, INT64_MAX},
    };
    const size_t size = strata_dtype_size(dtype);
    const struct float_kind *k = float_kind(dtype);
    uint64_t bits;
    if (dtype == STRATA_BOOL8)
        bits = nan != 0 || x != 0;
    else if (k == NULL)
        bits = nan ? 0 : (uint64_t)nearest(x, whole[dtype].low, whole[dtype].high);
    else
        bits = signed_bits(x, nan, k, size);
    memcpy(data + at * (int64_t)size, &bits, size);
}

/* Any bits, integers and halves of integers, values around the limits of the dtypes. */
static void fill_random(char *data, int dtype, int64_t n)
{
    static const long double edges[] = {
        0,           -0.0L,          65504,      65519.99L, 65520,      6e-8L,
        2.9e-8L,     6.1e-5L,        0x1p31L,    -0x1p31L,  127.5L,     254.5L,
        255.5L,      -128.5L,        1e30L,      -1e30L,    0x1p63L,    -0x1p63L,
        0x1p53L + 1, 0x1.01p30L + 1, 0x1.03p30L, 464,       464.001L,   -480,
        61439.99L,   61440,          0x1p-10L,   0x1.8p-9L, 0x1p-17L,   0x1.8p-16L,
        1e-300L,     0x1.010001p5L,  INFINITY,   -INFINITY, 0x1.00fp5L, 0x1.001001p5L};
    enum { PERIOD = 40009 }; /* a prime: large tensors repeat it */
    const int64_t size = (int64_t)strata_dtype_size(dtype);
    for (int64_t i = 0; i < n && i < PERIOD; i++) {
        const uint64_t bits = (uint64_t)draw() << 32 | draw();
        const uint32_t kind = draw() % 4;
        const bool wide = dtype == STRATA_INT32 || dtype == STRATA_INT64;
        long double x = (long double)((int32_t)(bits % 2400) - 1200) / 4;
        uint64_t nan = 0;
        if (wide && kind < 2)
            x = (long double)((int64_t)bits >> draw() % 64);
        else if (kind == 1 && bits % 16 == 0)
            nan = bits >> 12 | UINT64_C(1) << 51;
        else if (kind == 1)
            x = edges[bits % (sizeof(edges) / sizeof(edges[0]))];
        set(data, dtype, i, x, nan);
        if (kind == 0)
            memcpy(data + i * size, &bits, (size_t)size);
    }
    for (int64_t i = PERIOD; i < n; i += PERIOD)
        memcpy(data + i * size, data, (size_t)((n - i < PERIOD ? n - i : PERIOD) * size));
}

static void next_index(const strata_desc *d, int64_t *index)
{
    for (int i = d->rank - 1; i >= 0 && ++index[i] == d->dims[i]; i--)
        index[i] = 0;
}

/* What dst must be: garbage stays outside, pads are zero, elements are converted. */
static void expect(char *dst_data, const strata_desc *dst, const char *src_data,
                   const strata_desc *src)
{
    const size_t size = strata_dtype_size(dst->dtype);
    const int64_t count = strata_desc_count(dst);
    const int v = dst->vector_dim;
    int64_t index[STRATA_MAX_RANK] = {0};
    uint64_t nan;
    for (int64_t i = 0; i < count; i++, next_index(dst, index)) {
        const int64_t to = strata_desc_offset(dst, index);
        const int64_t from = strata_desc_offset(src, index);
        if (dst->dtype == src->dtype)
            memcpy(dst_data + to * (int64_t)size, src_data + from * (int64_t)size, size);
        else {
            const long double x = reference_get(src_data, src->dtype, from, &nan);
            set(dst_data, dst->dtype, to, x, nan);
            if (nan != 0 && src->dtype == STRATA_BF16 && dst->dtype == STRATA_FP32)
                memcpy(dst_data + to * 4 + 2, src_data + from * 2, 2); /* all bits */
        }
        if (v >= 0 && index[v] == dst->dims[v] - 1)
            for (int64_t p = index[v] % dst->vector + 1; p < dst->vector; p++)
                memset(dst_data + (to - index[v] % dst->vector + p) * (int64_t)size, 0,
                       size);
    }
}

/* ---- one case ---------------------------------------------------------------------- */

static struct arena {
    char *base;
    size_t bytes; /* a page that must not be touched follows */
} arena;

static char *arena_end(size_t bytes)
{
    if (bytes > arena.bytes) {
        if (arena.base != NULL)
            munmap(arena.base, arena.bytes + 4096);
        arena.bytes = (bytes + 4095) / 4096 * 4096;
        arena.base = mmap(NULL, arena.bytes + 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        cr_assert_neq(arena.base, MAP_FAILED);
        cr_assert_eq(mprotect(arena.base + arena.bytes, 4096, PROT_NONE), 0);
    }
    return arena.base + arena.bytes - bytes;
}

static int row_uses[MAX_ROWS];

static void describe(char *text, size_t size, const strata_desc *d)
{
    int n = snprintf(text, size, "%s v%d@%d ", strata_dtype_name(d->dtype), d->vector,
                     d->vector_dim);
    for (int i = 0; i < d->rank; i++)
        n += snprintf(text + n, size - (size_t)n, "%lld/%lld ", (long long)d->dims[i],
                      (long long)d->strides[i]);
}

static void check_row(size_t row, const strata_desc *dst, char *data, size_t bytes,
                      const strata_desc *src, const char *src_data, const char *wanted,
                      uint64_t seed)
{
    strata_error err = {0};
    char to[256], from[256];
    memset(data, 0xa5, bytes);
    const int status = row < reformat_rows()
                           ? reformat_row(row, dst, data + GUARD, src, src_data, &err)
                           : reformat(dst, data + GUARD, src, src_data, &err);
    if (status == STRATA_EUNSUPPORTED && row < reformat_rows())
        return;
    if (row < reformat_rows())
        row_uses[row]++;
    describe(to, sizeof(to), dst);
    describe(from, sizeof(from), src);
    cr_assert_eq(status, STRATA_OK, "%s", err.message);
    if (memcmp(data, wanted, bytes) == 0)
        return;
    size_t at = 0;
    while (data[at] == wanted[at])
        at++;
    cr_assert(0, "row %s, %s from %s, seed %llu: byte %zd of %zu is %02x, not %02x",
              row < reformat_rows() ? reformat_row_name(row) : "chosen", to, from,
              (unsigned long long)seed, (ssize_t)at - GUARD, bytes - 2 * GUARD,
              data[at] & 0xff, wanted[at] & 0xff);
}

/* All rows from `first` on, and the chosen one. */
static void check_pair(const strata_desc *dst, const strata_desc *src, size_t first)
{
    const uint64_t seed = state;
    const size_t src_bytes = (size_t)strata_desc_bytes(src);
    const size_t bytes = (size_t)strata_desc_bytes(dst) + 2 * GUARD;
    char *src_data = arena_end(src_bytes);
    char *data = malloc(bytes), *wanted = malloc(bytes);
    cr_assert(data != NULL && wanted != NULL);
    fill_random(src_data, src->dtype, strata_desc_size(src));
    memset(wanted, 0xa5, bytes);
    expect(wanted + GUARD, dst, src_data, src);
    for (size_t row = first; row <= reformat_rows(); row++)
        check_row(row, dst, data, bytes, src, src_data, wanted, seed);
    free(data);
    free(wanted);
}

static void check_format_pair(const char *to, const char *from, const int64_t *dims,
                              int rank, size_t first)
{
    strata_error err = {0};
    strata_desc dst, src;
    cr_assert_eq(strata_desc_format(&dst, to, dims, rank, &err), 0, "%s", err.message);
    cr_assert_eq(strata_desc_format(&src, from, dims, rank, &err), 0, "%s", err.message);
    check_pair(&dst, &src, first);
}

TestSuite(reformat, .timeout = 600);

/* ---- every pair of formats ----------------------------------------------------------
 */

static bool row_supported(const char *name)
{
#if defined(__x86_64__)
    if (strstr(name, "avx512") != NULL)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl");
    if (strstr(name, "avx2") != NULL)
        return __builtin_cpu_supports("avx2");
#endif
    return strstr(name, "avx") == NULL;
}

Test(reformat, every_pair_in_every_row_matches_the_reference)
{
    static const int64_t channels[] = {1,  2,  3,  4,  7,  8,  9,  15,
                                       16, 17, 31, 32, 33, 63, 64, 65};
    static const int64_t sides[] = {1, 2, 3, 5, 7};
    state = 1;
    cr_assert_leq(reformat_rows(), MAX_ROWS);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(names); j++)
            for (size_t c = (i + j) % 2; c < ARRAY_LENGTH(channels); c += 2) {
                const int64_t dims[] = {1 + below(3), channels[c], sides[below(5)],
                                        sides[below(5)]};
                check_format_pair(names[i], names[j], dims, 4, 0);
            }
    for (size_t row = 0; row < reformat_rows(); row++)
        if (row_supported(reformat_row_name(row)))
            cr_expect_gt(row_uses[row], 0, "row %s took no case", reformat_row_name(row));
}

Test(reformat, every_rank_matches_the_reference)
{
    state = 2;
    for (int rank = 2; rank <= STRATA_MAX_RANK; rank++)
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
            for (size_t j = (i + (size_t)rank) % 3; j < ARRAY_LENGTH(names); j += 3) {
                int64_t dims[STRATA_MAX_RANK] = {1 + below(4), 1 + below(40)};
                for (int d = 2; d < rank; d++)
                    dims[d] = 1 + below(rank > 5 ? 2 : 5);
                check_format_pair(names[i], names[j], dims, rank, 0);
            }
}

/* Several tiles, channel groups and threads, and stores past the caches. */
Test(reformat, large_tensors_match_the_reference)
{
    static const int64_t shapes[][4] = {
        {1, 3, 701, 1103},
        {2, 67, 127, 129},
        {1, 520, 64, 65},
        {37, 9, 80, 83},
    };
    static const char *const large[] = {"fp32:nchw",  "fp16:nchw",      "fp16:nc/2hw2",
                                        "fp16:nhwc8", "fp32:nc/16hw16", "fp32:nhwc",
                                        "fp32:chwn",  "bf16:nhwc8",     "i64:nhwc"};
    state = 3;
    for (size_t i = 0; i < ARRAY_LENGTH(large); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(large); j++)
            check_format_pair(large[i], large[j], shapes[(i + 2 * j) % 4], 4,
                              i + j < 3 ? 0 : reformat_rows());
}

/* Channel groups that begin and end inside vectors of either side. */
Test(reformat, vectors_across_channel_groups_match_the_reference)
{
    static const char *const wide[] = {
        "fp32:nc/300hw300", "fp16:nc/300hw300", "fp32:nc/48hw48", "int8:nc/7hw7",
        "fp16:nhwc8",       "fp32:nhwc",        "u8:nhwc",        "fp16:nc/250hw250"};
    state = 8;
    for (size_t i = 0; i < ARRAY_LENGTH(wide); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(wide); j++)
            for (int64_t c = 257; c < 1300; c += 347) {
                const int64_t dims[] = {2, c, 1 + below(5), 1 + below(23)};
                check_format_pair(wide[i], wide[j], dims, 4, 0);
            }
}

/* ---- strided descriptors -------------------------------------------------------------
 */

/* Dims in a random order in memory, with gaps; sometimes one dim in vectors. */
static void random_desc(strata_desc *d, int dtype, const int64_t *dims, int rank)
{
    int order[STRATA_MAX_RANK] = {0};
    *d = (strata_desc){.dtype = dtype, .rank = rank, .vector_dim = -1, .vector = 1};
    for (int i = 0; i < rank; i++) {
        const int64_t j = below(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    if (below(3) == 0) {
        d->vector_dim = (int32_t)below(rank);
        d->vector = 2 + (int32_t)below(7);
    }
    int64_t stride = d->vector * (below(3) == 0 ? 1 + below(3) : 1);
    for (int i = 0; i < rank; i++) {
        const int dim = order[i];
        d->dims[dim] = dims[dim];
        d->strides[dim] = stride;
        stride *=
            dim == d->vector_dim ? (dims[dim] + d->vector - 1) / d->vector : dims[dim];
        stride += below(3) == 0 ? below(9) : 0;
    }
}

Test(reformat, strided_views_match_the_reference)
{
    state = 4;
    for (int n = 0; n < 1500; n++) {
        strata_desc dst, src;
        int64_t dims[STRATA_MAX_RANK];
        const int rank = 1 + (int)below(6);
        for (int i = 0; i < rank; i++)
            dims[i] = 1 + below(i == n % rank ? (rank < 4 ? 300 : 40) : 5);
        random_desc(&dst, (int)below(STRATA_DTYPE_COUNT), dims, rank);
        random_desc(&src, (int)below(STRATA_DTYPE_COUNT), dims, rank);
        if (below(8) == 0) /* broadcast and sliding windows: allowed on an input */
            src.strides[below(rank)] = below(3);
        check_pair(&dst, &src, 0);
    }
}

/* A channel slice of NHWC8 and of NC/8HW8: the rest of the tensor stays as it was. */
Test(reformat, slices_leave_their_neighbours_alone)
{
    const int64_t dims[] = {2, 11, 5, 6}, part[] = {2, 3, 5, 6};
    strata_desc whole, slice, src;
    state = 5;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(names); j++) {
            cr_assert_eq(strata_desc_format(&whole, names[i], dims, 4, NULL), 0);
            cr_assert_eq(strata_desc_format(&src, names[j], part, 4, NULL), 0);
            slice = whole;
            slice.dims[1] = part[1];
            check_pair(&slice, &src, 0);
        }
}

/* ---- choice and refusals
 * --------------------------------------------------------------- */

/* Each test is a process of its own, so the variable is read afresh. */
static void check_level(const char *level)
{
    const int64_t dims[] = {2, 19, 5, 7};
    strata_desc a, b;
    setenv("STRATA_CPU", level, 1);
    cr_assert_eq(strata_desc_format(&a, "fp16:nhwc8", dims, 4, NULL), 0);
    cr_assert_eq(strata_desc_format(&b, "fp32:nchw", dims, 4, NULL), 0);
    const char *name = reformat_row_name(reformat_choose(&a, &b));
    for (size_t row = 0; row < reformat_rows(); row++) /* the best supported up to it */
        if (strstr(reformat_row_name(row), level) != NULL &&
            row_supported(reformat_row_name(row)))
            cr_expect_not_null(strstr(name, level), "STRATA_CPU=%s chose %s", level,
                               name);
    state = 7;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(names); j++)
            check_format_pair(names[i], names[j], dims, 4, reformat_rows());
}

Test(reformat, strata_cpu_caps_the_choice_at_plain)
{
    check_level("plain");
}
Test(reformat, strata_cpu_caps_the_choice_at_avx2)
{
    check_level("avx2");
}
Test(reformat, strata_cpu_caps_the_choice_at_avx512)
{
    check_level("avx512");
}
