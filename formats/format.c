/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of formats, their names, and their dense descriptors.
 */
#include "formats/format.h"

#include "core/arguments.h"
#include "core/checked.h"

#include <strata/half.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR_MAX 65536 /* of a name: keeps typing errors from asking for gigabytes */

/* Index is the bit of the ABI's masks. */
static const struct format formats[STRATA_FORMAT_COUNT] = {
    {STRATA_FP32, ORDER_LINEAR, 1},  {STRATA_FP16, ORDER_LINEAR, 1},
    {STRATA_FP16, ORDER_LINEAR, 2},  {STRATA_FP16, ORDER_LAST, 8},
    {STRATA_FP32, ORDER_LAST, 1},    {STRATA_FP16, ORDER_LAST, 1},
    {STRATA_FP32, ORDER_LINEAR, 8},  {STRATA_FP32, ORDER_LINEAR, 16},
    {STRATA_INT8, ORDER_LINEAR, 4},  {STRATA_INT8, ORDER_LINEAR, 32},
    {STRATA_UINT8, ORDER_LAST, 1},   {STRATA_INT32, ORDER_LINEAR, 1},
    {STRATA_INT8, ORDER_LINEAR, 1},  {STRATA_UINT8, ORDER_LINEAR, 1},
    {STRATA_FP32, ORDER_BATCH, 1},   {STRATA_FP16, ORDER_BATCH, 1},
    {STRATA_INT8, ORDER_LAST, 1},    {STRATA_INT64, ORDER_LINEAR, 1},
    {STRATA_BOOL8, ORDER_LINEAR, 1}, {STRATA_BF16, ORDER_LINEAR, 1},
    {STRATA_BF16, ORDER_LAST, 1},    {STRATA_BF16, ORDER_LAST, 8},
    {STRATA_UINT8, ORDER_LINEAR, 4}, {STRATA_UINT8, ORDER_LINEAR, 32},
    {STRATA_INT8, ORDER_LAST, 16},   {STRATA_E4M3, ORDER_LINEAR, 1},
    {STRATA_E4M3, ORDER_LAST, 16},   {STRATA_E5M2, ORDER_LINEAR, 1},
    {STRATA_E5M2, ORDER_LAST, 16},   {STRATA_FP64, ORDER_LINEAR, 1},
};

/* Layout names of the ranks that have their own; the first row serves all others. A
 * blocked layout writes the vector width at each '#', channels-last after the name. */
enum { RANK_4, RANK_5, RANK_3, NAMED_RANKS };
static const struct {
    const char *linear, *blocked, *last, *batch;
} rank_names[NAMED_RANKS] = {
    [RANK_4] = {"nchw", "nc/#hw#", "nhwc", "chwn"},
    [RANK_5] = {"ncdhw", "nc/#dhw#", "ndhwc", "cdhwn"},
    [RANK_3] = {"bmn", "bm/#n#", "bnm", "mnb"},
};

static int rank_row(int rank)
{
    return rank == 5 ? RANK_5 : rank == 3 ? RANK_3 : RANK_4;
}

/* ---- the table ------------------------------------------------------------------- */

const struct format *format_at(int index)
{
    return index >= 0 && index < STRATA_FORMAT_COUNT ? &formats[index] : NULL;
}

int format_index(struct format f)
{
    for (int i = 0; i < STRATA_FORMAT_COUNT; i++)
        if (formats[i].dtype == f.dtype && formats[i].order == f.order &&
            formats[i].vector == f.vector)
            return i;
    return -1;
}

uint64_t format_mask(struct format f)
{
    const int index = format_index(f);
    return index < 0 ? 0 : UINT64_C(1) << index;
}

int dtype_precision(int dtype)
{
    static const int bits[STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = 24,  [STRATA_FP16] = 11,  [STRATA_INT8] = 8,  [STRATA_UINT8] = 8,
        [STRATA_INT32] = 32, [STRATA_INT64] = 64, [STRATA_BOOL8] = 1, [STRATA_BF16] = 8,
        [STRATA_E4M3] = 4,   [STRATA_E5M2] = 3,   [STRATA_FP64] = 53,
    };
    return dtype >= 0 && dtype < STRATA_DTYPE_COUNT ? bits[dtype] : 0;
}

int dtype_range(int dtype)
{
    static const int bits[STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = 8, [STRATA_FP16] = 5, [STRATA_BF16] = 8,
        [STRATA_E4M3] = 4, [STRATA_E5M2] = 5, [STRATA_FP64] = 11,
    };
    return dtype >= 0 && dtype < STRATA_DTYPE_COUNT ? bits[dtype] : 0;
}

bool dtype_exact(int from, int to)
{
    enum {
        F32 = 1 << STRATA_FP32,
        F16 = 1 << STRATA_FP16,
        I8 = 1 << STRATA_INT8,
        U8 = 1 << STRATA_UINT8,
        I32 = 1 << STRATA_INT32,
        I64 = 1 << STRATA_INT64,
        BF16 = 1 << STRATA_BF16,
        F64 = 1 << STRATA_FP64
    };
    static const int keepers[STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = F32 | F64,
        [STRATA_FP16] = F16 | F32 | F64,
        [STRATA_INT8] = I8 | F16 | BF16 | F32 | F64 | I32 | I64,
        [STRATA_UINT8] = U8 | F16 | BF16 | F32 | F64 | I32 | I64,
        [STRATA_INT32] = I32 | I64 | F64,
        [STRATA_INT64] = I64,
        [STRATA_BOOL8] = (1 << STRATA_DTYPE_COUNT) - 1,
        [STRATA_BF16] = BF16 | F32 | F64,
        [STRATA_E4M3] = 1 << STRATA_E4M3 | F16 | BF16 | F32 | F64,
        [STRATA_E5M2] = 1 << STRATA_E5M2 | F16 | BF16 | F32 | F64,
        [STRATA_FP64] = F64,
    };
    return from >= 0 && from < STRATA_DTYPE_COUNT && to >= 0 && to < STRATA_DTYPE_COUNT &&
           (keepers[from] >> to & 1);
}

/* ---- names ----------------------------------------------------------------------- */

static const char *layout_pattern(struct format f, int row)
{
    if (f.order == ORDER_LAST)
        return rank_names[row].last;
    if (f.order == ORDER_BATCH)
        return rank_names[row].batch;
    return f.vector > 1 ? rank_names[row].blocked : rank_names[row].linear;
}

void format_name(char name[FORMAT_NAME_SIZE], struct format f, int rank)
{
    const char *dtype = strata_dtype_name(f.dtype);
    int n = snprintf(name, FORMAT_NAME_SIZE, "%s:", dtype != NULL ? dtype : "?");
    for (const char *p = layout_pattern(f, rank_row(rank)); *p != '\0'; p++)
        n += *p == '#' ? snprintf(name + n, FORMAT_NAME_SIZE - (size_t)n, "%d", f.vector)
                       : snprintf(name + n, FORMAT_NAME_SIZE - (size_t)n, "%c", *p);
    if (f.order != ORDER_LINEAR && f.vector > 1)
        snprintf(name + n, FORMAT_NAME_SIZE - (size_t)n, "%d", f.vector);
}

static char mask_names[NAMED_RANKS][STRATA_FORMAT_COUNT][FORMAT_NAME_SIZE];
static pthread_once_t mask_names_once = PTHREAD_ONCE_INIT;

static void fill_mask_names(void)
{
    static const int ranks[NAMED_RANKS] = {[RANK_4] = 4, [RANK_5] = 5, [RANK_3] = 3};
    for (int r = 0; r < NAMED_RANKS; r++)
        for (int i = 0; i < STRATA_FORMAT_COUNT; i++)
            format_name(mask_names[r][i], formats[i], ranks[r]);
}

const char *format_mask_name(uint64_t mask, int rank)
{
    if (mask == 0 || (mask & (mask - 1)) != 0 || mask >> STRATA_FORMAT_COUNT != 0)
        return "?";
    pthread_once(&mask_names_once, fill_mask_names);
    return mask_names[rank_row(rank)][__builtin_ctzll(mask)];
}

/* ---- parsing --------------------------------------------------------------------- */

/* Digits of a vector width at *text, moved past; 0 if there is none. */
static int32_t parse_width(const char **text)
{
    int32_t width = 0;
    const char *p = *text;
    if (*p == '0')
        return 0;
    for (; *p >= '0' && *p <= '9' && width <= VECTOR_MAX; p++)
        width = width * 10 + (*p - '0');
    *text = p;
    return width;
}

/* Match text with a pattern whose '#' are equal widths; the width, or 0. */
static int32_t match_blocked(const char *text, const char *pattern)
{
    int32_t width = 0;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != '#') {
            if (*text++ != *pattern)
                return 0;
            continue;
        }
        const int32_t found = parse_width(&text);
        if (found == 0 || (width != 0 && found != width))
            return 0;
        width = found;
    }
    return *text == '\0' ? width : 0;
}

static int32_t match_last(const char *text, const char *pattern)
{
    const size_t length = strlen(pattern);
    if (strncmp(text, pattern, length) != 0)
        return 0;
    text += length;
    if (*text == '\0')
        return 1;
    const int32_t width = parse_width(&text);
    return *text == '\0' ? width : 0;
}

static bool match_layout(struct format *out, const char *text)
{
    for (int r = 0; r < NAMED_RANKS; r++) {
        if (strcmp(text, rank_names[r].linear) == 0)
            out->vector = 1, out->order = ORDER_LINEAR;
        else if (strcmp(text, rank_names[r].batch) == 0)
            out->vector = 1, out->order = ORDER_BATCH;
        else if ((out->vector = match_last(text, rank_names[r].last)) > 0)
            out->order = ORDER_LAST;
        else if ((out->vector = match_blocked(text, rank_names[r].blocked)) > 0)
            out->order = ORDER_LINEAR;
        if (out->vector > 0)
            return true;
    }
    return false;
}

static int unknown_dtype(const char *text, const char *dtype, strata_error *err)
{
    const char *names[STRATA_DTYPE_COUNT];
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++)
        names[i] = strata_dtype_name(i);
    const char *near = suggest(dtype, names, STRATA_DTYPE_COUNT);
    return error_set(err, STRATA_EPARSE,
                     "format '%.64s': dtype '%s' is unknown%s%s%s; known: fp32, fp16, "
                     "bf16, fp64, e4m3, e5m2, int8, u8, i32, i64, bool",
                     text, dtype, near ? "; did you mean '" : "", near ? near : "",
                     near ? "'?" : "");
}

static int unknown_layout(const char *text, const char *layout, strata_error *err)
{
    static const char *const names[] = {
        "nchw",  "nhwc",  "chwn",   "nc/2hw2",  "nc/4hw4",  "nc/8hw8", "nc/16hw16",
        "nhwc8", "ncdhw", "ndhwc",  "ndhwc8",   "cdhwn",    "bmn",     "nc/32hw32",
        "bnm",   "mnb",   "bm/2n2", "nc/2dhw2", "nc/8dhw8",
    };
    const char *near = suggest(layout, names, ARRAY_LENGTH(names));
    return error_set(
        err, STRATA_EPARSE,
        "format '%.64s': layout '%.48s' is unknown%s%s%s; known: nchw, nhwc, "
        "nhwc8, chwn, nc/xHWx for x of 2 to %d (nc/2hw2, nc/16hw16), and of "
        "rank 5 ncdhw, ndhwc, ndhwc8, cdhwn, nc/2dhw2, of rank 3 bmn, bnm, "
        "mnb, bm/2n2",
        text, layout, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
        VECTOR_MAX);
}

int format_parse(struct format *out, const char *text, strata_error *err)
{
    char dtype[16] = "";
    struct format f = {.dtype = -1};
    const char *colon = strchr(text, ':');
    if (colon == NULL)
        return error_set(err, STRATA_EPARSE,
                         "format '%.64s': found no ':'; write DTYPE:LAYOUT, like "
                         "fp32:nchw or fp16:nhwc8",
                         text);
    snprintf(dtype, sizeof(dtype), "%.*s", (int)(colon - text < 15 ? colon - text : 15),
             text);
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++)
        if (strcmp(dtype, strata_dtype_name(i)) == 0)
            f.dtype = i;
    if (f.dtype < 0)
        return unknown_dtype(text, dtype, err);
    if (!match_layout(&f, colon + 1) || f.vector > VECTOR_MAX)
        return unknown_layout(text, colon + 1, err);
    *out = f;
    return STRATA_OK;
}

static int not_in_table(const char *text, strata_error *err)
{
    pthread_once(&mask_names_once, fill_mask_names);
    const char *names[NAMED_RANKS * STRATA_FORMAT_COUNT];
    for (int i = 0; i < NAMED_RANKS * STRATA_FORMAT_COUNT; i++)
        names[i] = mask_names[i / STRATA_FORMAT_COUNT][i % STRATA_FORMAT_COUNT];
    const char *near = suggest(text, names, ARRAY_LENGTH(names));
    error_set(err, STRATA_EPARSE, "no tensor of a network can have format '%.64s'%s%s%s",
              text, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    for (int i = 0; i < STRATA_FORMAT_COUNT; i++)
        error_append(err, "%s%s", i ? ", " : "; there are ", names[i]);
    return STRATA_EPARSE;
}

int format_lookup(struct format *out, const char *text, strata_error *err)
{
    struct format f;
    const int status = format_parse(&f, text, err);
    if (status != STRATA_OK)
        return status;
    if (format_index(f) < 0)
        return not_in_table(text, err);
    *out = f;
    return STRATA_OK;
}

/* ---- descriptors ----------------------------------------------------------------- */

/* The dims from the outermost in memory to the innermost. */
static void dim_order(int order[STRATA_MAX_RANK], struct format f, int rank)
{
    int n = 0;
    if (f.order != ORDER_BATCH)
        order[n++] = 0;
    if (f.order != ORDER_LAST && rank > 1)
        order[n++] = 1;
    for (int d = 2; d < rank; d++)
        order[n++] = d;
    if (f.order == ORDER_BATCH)
        order[n] = 0;
    else if (f.order == ORDER_LAST)
        order[n] = 1;
}

static int overflow(struct format f, const int64_t *dims, int rank, strata_error *err)
{
    char name[FORMAT_NAME_SIZE];
    format_name(name, f, rank);
    return error_set(err, STRATA_EOVERFLOW,
                     "%s: the size of %d dims, dim 0 of %lld, does not fit 63 bits; use "
                     "smaller dims",
                     name, rank, (long long)dims[0]);
}

int format_desc(strata_desc *out, struct format f, const int64_t *dims, int rank,
                strata_error *err)
{
    char name[FORMAT_NAME_SIZE];
    int order[STRATA_MAX_RANK];
    const bool linear = f.order == ORDER_LINEAR && f.vector == 1;
    format_name(name, f, rank);
    if (rank < (linear ? 1 : 2) || rank > STRATA_MAX_RANK)
        return error_set(err, STRATA_EINVAL,
                         "%s: found rank %d; this layout has %d to %d dims, batch first "
                         "and channels second",
                         name, rank, linear ? 1 : 2, STRATA_MAX_RANK);
    *out = (strata_desc){.dtype = f.dtype, .rank = rank, .vector_dim = -1, .vector = 1};
    if (f.vector > 1) {
        out->vector_dim = 1;
        out->vector = f.vector;
    }
    dim_order(order, f, rank);
    int64_t stride = f.order == ORDER_LINEAR ? f.vector : 1;
    for (int i = rank - 1; i >= 0; i--) {
        const int d = order[i];
        int64_t extent = out->dims[d] = dims[d];
        out->strides[d] = stride;
        if (d == 1 && f.vector > 1 && extent >= 0) {
            if (!checked_round_up(extent, f.vector, &extent))
                return overflow(f, dims, rank, err);
            if (f.order == ORDER_LINEAR)
                extent /= f.vector;
            else
                out->strides[d] = f.vector;
        }
        if (!checked_mul(stride, extent > 0 ? extent : 1, &stride))
            return overflow(f, dims, rank, err);
    }
    const int status = strata_desc_check(out, 0, err);
    if (status != STRATA_OK)
        error_prefix(err, "%s", name);
    return status;
}

int strata_desc_format(strata_desc *out, const char *format, const int64_t *dims,
                       int rank, strata_error *err)
{
    struct format f;
    int status = ARGUMENTS(err, {"out", out}, {"format", format}, {"dims", dims});
    if (status == STRATA_OK)
        status = format_parse(&f, format, err);
    return status == STRATA_OK ? format_desc(out, f, dims, rank, err) : status;
}

bool format_has_pads(struct format f, int64_t channels)
{
    return channels % f.vector != 0;
}

void tensor_view(strata_tensor *out, const strata_desc *d, uint64_t format, int pad,
                 void *data)
{
    *out = (strata_tensor){.data = data,
                           .count = strata_desc_count(d),
                           .size = strata_desc_size(d),
                           .format = format,
                           .rank = d->rank,
                           .dtype = d->dtype,
                           .vector_dim = d->vector_dim,
                           .vector = d->vector,
                           .pad = pad};
    memcpy(out->dims, d->dims, sizeof(out->dims));
    memcpy(out->strides, d->strides, sizeof(out->strides));
}

/* ---- binary16 -------------------------------------------------------------------- */

uint16_t half_from_float(float x)
{
    return strata_half_of_float(x);
}

float half_to_float(uint16_t h)
{
    return strata_float_of_half(h);
}
