/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy .npy files: magic, version, length of the header, a Python dict, the elements.
 * The dict is read by a scanner for exactly what NumPy writes: three known keys, quoted
 * strings, True or False, a tuple of decimal integers.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/weights/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "formats/reformat/reformat.h"
#include "io/printable.h"
#include "io/weights/private.h"

#define RELEASE_STEP (16 << 20) /* bytes of a column-major file kept after use */

struct scanner {
    const char *text; /* the header */
    size_t size, at;
    size_t base; /* offset of text in the file, for messages */
    strata_error *err;
};

struct header {
    enum weight_dtype dtype;
    bool fortran;
    int rank;
    int64_t dims[STRATA_MAX_RANK];
};

static const struct {
    const char *descr; /* without the byte order */
    enum weight_dtype dtype;
} dtypes[] = {
    {"f8", WEIGHT_F64}, {"f4", WEIGHT_F32}, {"f2", WEIGHT_F16}, {"i8", WEIGHT_I64},
    {"i4", WEIGHT_I32}, {"i2", WEIGHT_I16}, {"i1", WEIGHT_I8},  {"u8", WEIGHT_U64},
    {"u4", WEIGHT_U32}, {"u2", WEIGHT_U16}, {"u1", WEIGHT_U8},  {"b1", WEIGHT_BOOL},
};

/* Kinds that are valid NumPy but not numbers we read, by the letter of the descr. */
static const struct {
    char letter;
    const char *what;
} refused[] = {
    {'O', "pickled Python objects, which can run code"},
    {'c', "complex numbers"},
    {'S', "byte strings"},
    {'a', "byte strings"},
    {'U', "text"},
    {'V', "raw or structured records"},
    {'M', "dates"},
    {'m', "time spans"},
};

#define FAIL(s, code, ...) error_set((s)->err, code, __VA_ARGS__)

static int unexpected(const struct scanner *s, const char *needed)
{
    char shown[PRINTABLE_SIZE];
    size_t left = s->size - s->at;
    if (left == 0)
        return FAIL(s, STRATA_EPARSE, "byte %zu: the header ends where %s is needed",
                    s->base + s->at, needed);
    return FAIL(s, STRATA_EPARSE, "byte %zu: found '%s' where %s is needed",
                s->base + s->at, printable(shown, s->text + s->at, left < 12 ? left : 12),
                needed);
}

/* Whether `word` comes next, after spaces; it is then consumed. */
static bool consume(struct scanner *s, const char *word)
{
    size_t n = strlen(word);
    while (s->at < s->size && s->text[s->at] == ' ')
        s->at++;
    if (s->size - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

/* A quoted string without escapes; *text points into the header. */
static int read_string(struct scanner *s, const char **text, size_t *length,
                       const char *needed)
{
    char quote;
    if (consume(s, "'"))
        quote = '\'';
    else if (consume(s, "\""))
        quote = '"';
    else
        return unexpected(s, needed);
    size_t start = s->at;
    while (s->at < s->size && s->text[s->at] != quote && s->text[s->at] != '\\')
        s->at++;
    *text = s->text + start;
    *length = s->at - start;
    if (s->at >= s->size || s->text[s->at] != quote)
        return unexpected(s, "a closing quote");
    s->at++;
    return STRATA_OK;
}

static int refuse_descr(struct scanner *s, const char *descr, size_t n)
{
    char shown[PRINTABLE_SIZE];
    const char *what = "an unknown type";
    size_t letter = n > 1 && strchr("<>|=", descr[0]) ? 1 : 0;
    printable(shown, descr, n);
    if (n == 3 && descr[1] == 'V' && (descr[2] == '1' || descr[2] == '2'))
        return FAIL(
            s, STRATA_EUNSUPPORTED,
            "descr '%s' is %c raw byte%s an element, and says not which type: NumPy "
            "writes bfloat16 and FP8 so; save it with astype('<f4')",
            shown, descr[2], descr[2] == '1' ? "" : "s");
    if (n > 0 && descr[0] == '>')
        return FAIL(s, STRATA_EUNSUPPORTED,
                    "descr '%s' is big-endian; save it with astype('<...')", shown);
    for (size_t i = 0; n > letter && i < ARRAY_LENGTH(refused); i++)
        if (descr[letter] == refused[i].letter)
            what = refused[i].what;
    return FAIL(s, STRATA_EUNSUPPORTED,
                "descr '%s' is %s; allowed are <f2 <f4 <f8 <i2 <i4 <i8 <u2 <u4 <u8 |i1 "
                "|u1 |b1",
                shown, what);
}

static int read_descr(struct scanner *s, struct header *h)
{
    const char *text;
    size_t n;
    if (consume(s, "["))
        return FAIL(s, STRATA_EUNSUPPORTED,
                    "byte %zu: descr is a list of fields; structured records are not "
                    "supported, save one array a file",
                    s->base + s->at - 1);
    int status = read_string(s, &text, &n, "a quoted type such as '<f4'");
    if (status != STRATA_OK)
        return status;
    for (size_t i = 0; i < ARRAY_LENGTH(dtypes); i++) {
        bool byte = dtypes[i].descr[1] == '1';
        if (n == 3 && (text[0] == '<' || (byte && text[0] == '|')) &&
            memcmp(text + 1, dtypes[i].descr, 2) == 0) {
            h->dtype = dtypes[i].dtype;
            return STRATA_OK;
        }
    }
    return refuse_descr(s, text, n);
}

static int read_order(struct scanner *s, struct header *h)
{
    h->fortran = consume(s, "True");
    if (!h->fortran && !consume(s, "False"))
        return unexpected(s, "True or False");
    return STRATA_OK;
}

static int read_dim(struct scanner *s, int64_t *out)
{
    int64_t value = 0;
    size_t start = s->at;
    for (; s->at < s->size && s->text[s->at] >= '0' && s->text[s->at] <= '9'; s->at++)
        if (!checked_mul_add(value, 10, s->text[s->at] - '0', &value))
            return FAIL(s, STRATA_EPARSE, "byte %zu: a dim beyond 2^63 - 1",
                        s->base + start);
    *out = value;
    return s->at > start ? STRATA_OK : unexpected(s, "a dim");
}

/* () or (3,) or (3, 4), a last comma allowed from one dim on and needed for one. */
static int read_shape(struct scanner *s, struct header *h)
{
    bool comma = true;
    if (!consume(s, "("))
        return unexpected(s, "a shape such as (3, 4)");
    for (h->rank = 0; !consume(s, ")"); h->rank++) {
        if (!comma)
            return unexpected(s, "',' or ')'");
        if (h->rank == STRATA_MAX_RANK)
            return FAIL(s, STRATA_EPARSE, "byte %zu: shape has more than %d dims",
                        s->base + s->at, STRATA_MAX_RANK);
        int status = read_dim(s, &h->dims[h->rank]);
        if (status != STRATA_OK)
            return status;
        comma = consume(s, ",");
    }
    if (h->rank == 1 && !comma)
        return FAIL(s, STRATA_EPARSE, "byte %zu: one dim is written (n,)",
                    s->base + s->at);
    return STRATA_OK;
}

static const struct {
    const char *name;
    int (*read)(struct scanner *s, struct header *h);
} keys[] = {
    {"descr", read_descr},
    {"fortran_order", read_order},
    {"shape", read_shape},
};

/* One 'key': value; `seen` has a bit for each key that came before. */
static int read_item(struct scanner *s, struct header *h, unsigned *seen)
{
    char shown[PRINTABLE_SIZE];
    const char *text;
    size_t n, place = s->base + s->at;
    int status = read_string(s, &text, &n, "a quoted key");
    if (status != STRATA_OK)
        return status;
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        if (n != strlen(keys[i].name) || memcmp(text, keys[i].name, n) != 0)
            continue;
        if (*seen & 1u << i)
            return FAIL(s, STRATA_EPARSE, "byte %zu: key '%s' comes twice", place,
                        keys[i].name);
        *seen |= 1u << i;
        return consume(s, ":") ? keys[i].read(s, h) : unexpected(s, "':'");
    }
    return FAIL(s, STRATA_EPARSE,
                "byte %zu: unknown key '%s'; allowed are descr, fortran_order, shape",
                place, printable(shown, text, n));
}

static int read_dict(struct scanner *s, struct header *h)
{
    unsigned seen = 0;
    bool comma = true;
    if (!consume(s, "{"))
        return unexpected(s, "'{'");
    while (!consume(s, "}")) {
        if (!comma)
            return unexpected(s, "',' or '}'");
        int status = read_item(s, h, &seen);
        if (status != STRATA_OK)
            return status;
        comma = consume(s, ",");
    }
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
        if (!(seen & 1u << i))
            return FAIL(s, STRATA_EPARSE, "byte %zu: key '%s' is missing",
                        s->base + s->at, keys[i].name);
    consume(s, "\n");
    return s->at == s->size ? STRATA_OK
                            : unexpected(s, "spaces and one line feed, then the end");
}

/* Place and length of the dict text; checked against the file and the limit. */
static int find_dict(struct scanner *s, const unsigned char *bytes, size_t size,
                     const struct weight_limits *limits)
{
    if (size < 10 || memcmp(bytes, NPY_MAGIC, NPY_MAGIC_SIZE) != 0)
        return FAIL(s, STRATA_EPARSE,
                    "%zu bytes that do not begin as .npy does: \"\\x93NUMPY\", version, "
                    "length; the file is cut short or of another kind",
                    size);
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return FAIL(s, STRATA_EUNSUPPORTED,
                    "byte 6: version %d.%d; allowed are 1.0, 2.0 and 3.0", bytes[6],
                    bytes[7]);
    s->base = bytes[6] == 1 ? 10 : 12;
    uint64_t length = bytes[8] | (uint64_t)bytes[9] << 8;
    if (bytes[6] > 1 && size >= 12)
        length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    if (length > limits->header_bytes)
        return FAIL(s, STRATA_EPARSE,
                    "byte 8: header of %" PRIu64 " bytes, at most %" PRIu64
                    " are allowed",
                    length, limits->header_bytes);
    if (size < s->base || length > size - s->base)
        return FAIL(s, STRATA_EPARSE,
                    "byte 8: header of %" PRIu64 " bytes, but only %zu follow; the file "
                    "is cut short",
                    length, size < s->base ? 0 : size - s->base);
    s->text = (const char *)bytes + s->base;
    s->size = (size_t)length;
    return STRATA_OK;
}

int npy_parse(struct weight_view *out, size_t *data_offset, int *fortran,
              const void *bytes, size_t size, const struct weight_limits *limits,
              strata_error *err)
{
    struct scanner s = {.err = err};
    struct header h = {0};
    int64_t count, needed;
    if (!limits)
        limits = &weight_default_limits;
    int status = find_dict(&s, bytes, size, limits);
    if (status == STRATA_OK)
        status = read_dict(&s, &h);
    if (status == STRATA_OK)
        status = weight_count(&count, h.dims, h.rank, limits, "shape", err);
    if (status != STRATA_OK)
        return status;
    size_t offset = s.base + s.size;
    if (!checked_mul(count, (int64_t)weight_dtype_size(h.dtype), &needed) ||
        (uint64_t)needed != size - offset)
        return error_set(err, STRATA_EPARSE,
                         "byte %zu: %zu bytes of data, but shape and descr need %" PRId64
                         " elements of %zu bytes exactly",
                         offset, size - offset, count, weight_dtype_size(h.dtype));
    *out = (struct weight_view){
        .name = "", .dtype = h.dtype, .rank = h.rank, .bytes = (size_t)needed};
    memcpy(out->dims, h.dims, sizeof h.dims);
    *data_offset = offset;
    *fortran = h.fortran;
    return STRATA_OK;
}

/* Give pages of the private copy back once their elements have been moved, so that a
 * column-major file does not need its size twice. */
static void release_pages(char *from, const char *to)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)from + page - 1) / page * page;
    uintptr_t end = (uintptr_t)to / page * page;
    if (end > begin)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Column-major src to row-major dst. `owned`: the pages of src may be given back. */
static void transpose(char *dst, const char *src, const struct weight_view *v, bool owned)
{
    size_t element = weight_dtype_size(v->dtype), stride[STRATA_MAX_RANK], at = 0;
    int64_t index[STRATA_MAX_RANK] = {0};
    const char *end = src + v->bytes, *kept = src;
    size_t step = element;
    for (int d = v->rank - 1; d >= 0; d--) {
        stride[d] = step;
        step *= (size_t)v->dims[d];
    }
    for (; src < end; src += element) {
        memcpy(dst + at, src, element);
        for (int d = 0; d < v->rank; d++) {
            at += stride[d];
            if (++index[d] < v->dims[d])
                break;
            at -= stride[d] * (size_t)v->dims[d];
            index[d] = 0;
        }
        if (owned && src - kept >= RELEASE_STEP) {
            release_pages((char *)(uintptr_t)kept, src);
            kept = src;
        }
    }
}

static int load_row_major(struct weights *w, const char *src, const struct weight_view *v,
                          strata_error *err)
{
    w->extra = malloc(v->bytes ? v->bytes : 1);
    if (!w->extra)
        return error_no_memory(err, v->bytes, "row-major elements");
    transpose(w->extra, src, v, w->file.data != NULL);
    file_free(&w->file);
    w->data = w->extra;
    return STRATA_OK;
}

int npy_load(struct weights *w, const void *bytes, size_t size,
             const struct weight_limits *limits, strata_error *err)
{
    struct weight_view v;
    size_t offset;
    int fortran;
    int status = npy_parse(&v, &offset, &fortran, bytes, size, limits, err);
    if (status != STRATA_OK)
        return status;
    w->records = zalloc(1, sizeof *w->records, "tensor records", err);
    w->order = zalloc(1, sizeof *w->order, "order of tensors", err);
    if (!w->records || !w->order)
        return STRATA_ENOMEM;
    w->count = 1;
    w->names = "";
    w->data = (const char *)bytes + offset;
    w->records->dtype = (uint8_t)v.dtype;
    w->records->rank = (uint8_t)v.rank;
    for (int d = 0; d < v.rank; d++)
        w->records->dims[d] = (uint32_t)v.dims[d];
    return fortran && v.rank > 1 ? load_row_major(w, w->data, &v, err) : STRATA_OK;
}

/* NumPy's types; BF16 and FP8, of which it has none, are written as FP32. */
static const char *const descrs[STRATA_DTYPE_COUNT] = {
    [STRATA_FP64] = "<f8",  [STRATA_FP32] = "<f4",  [STRATA_FP16] = "<f2",
    [STRATA_INT64] = "<i8", [STRATA_INT32] = "<i4", [STRATA_INT8] = "|i1",
    [STRATA_UINT8] = "|u1", [STRATA_BOOL8] = "|b1",
};

/* The bytes before the elements, which start at a multiple of 64; their number. */
static size_t write_head(char head[320], const char *descr, const int64_t *dims, int rank)
{
    int n = snprintf(head + 10, 310, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     descr);
    for (int d = 0; d < rank; d++)
        n += snprintf(head + 10 + n, 310 - (size_t)n, "%s%" PRId64, d ? ", " : "",
                      dims[d]);
    n += snprintf(head + 10 + n, 310 - (size_t)n, "%s), }", rank == 1 ? "," : "");
    const size_t total = ((size_t)n + 11 + 63) / 64 * 64;
    memset(head + 10 + n, ' ', total - 10 - (size_t)n);
    head[total - 1] = '\n';
    memcpy(head, NPY_MAGIC "\1", 8); /* version 1.0: the literal's NUL is the minor */
    head[8] = (char)((total - 10) & 0xff);
    head[9] = (char)((total - 10) >> 8);
    return total;
}

int npy_write(const char *path, int dtype, const int64_t *dims, int rank,
              const void *data, strata_error *err)
{
    char head[320]; /* 8 dims of 19 digits and the rest fit */
    int64_t count, bytes;
    float *wider = NULL;
    if (dtype < 0 || dtype >= STRATA_DTYPE_COUNT || rank < 0 || rank > STRATA_MAX_RANK)
        return error_set(err, STRATA_EINVAL,
                         "%s: dtype %d with %d dims cannot be written", path, dtype,
                         rank);
    const int written = descrs[dtype] ? dtype : STRATA_FP32;
    if (!checked_product(dims, rank, &count) ||
        !checked_mul(count, (int64_t)strata_dtype_size(written), &bytes))
        return error_set(err, STRATA_EOVERFLOW, "%s: the tensor's size does not fit",
                         path);
    if (written != dtype) {
        if (!(wider = malloc(bytes ? (size_t)bytes : 1)))
            return error_no_memory(err, (size_t)bytes, path);
        reformat_elements(wider, written, data, dtype, (size_t)count);
        data = wider;
    }
    const struct file_piece pieces[] = {
        {head, write_head(head, descrs[written], dims, rank)}, {data, (size_t)bytes}};
    int status = STRATA_OK;
    if (strcmp(path, "-") != 0)
        status = file_write_pieces(path, pieces, ARRAY_LENGTH(pieces), err);
    else
        for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++)
            fwrite(pieces[i].data, 1, pieces[i].size, stdout);
    free(wider);
    return status;
}
