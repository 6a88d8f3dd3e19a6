/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights files: safetensors and .npy, read-only. A file is hostile input: every number
 * is checked against the file's size before it is used, limits are in weights_limits.
 */
#ifndef IO_WEIGHTS_WEIGHTS_H
#define IO_WEIGHTS_WEIGHTS_H

#include "core/status.h"

/* Element types of files; a superset of the core's. */
enum weight_dtype {
    WEIGHT_F64,
    WEIGHT_F32,
    WEIGHT_F16,
    WEIGHT_BF16,
    WEIGHT_F8_E4M3,
    WEIGHT_F8_E5M2, /* the last float */
    WEIGHT_I64,
    WEIGHT_I32,
    WEIGHT_I16,
    WEIGHT_I8,
    WEIGHT_U64,
    WEIGHT_U32,
    WEIGHT_U16,
    WEIGHT_U8,
    WEIGHT_BOOL,
    WEIGHT_DTYPE_COUNT
};

/* Defaults behind each. A tensor has at most STRATA_MAX_RANK dims. dim and header_bytes
 * may be lowered, but not raised above 2^31 - 1 and 2^32 - 1. */
struct weight_limits {
    uint64_t file_bytes;   /* 64 GiB */
    uint64_t header_bytes; /* 100 MB */
    uint64_t tensors;      /* 1048576 */
    int64_t dim;           /* 2^31 - 1 */
    int64_t elements;      /* 2^40 */
    size_t name_bytes;     /* 255 */
};
extern const struct weight_limits weight_default_limits;

struct weight_view {
    const char *name;
    enum weight_dtype dtype;
    int rank;
    int64_t dims[STRATA_MAX_RANK];
    const void *data; /* row-major, any alignment, inside the file's private copy */
    size_t bytes;
};

struct weights;

/* By content: safetensors, or .npy (one tensor named "" ). limits NULL: the default.
 * EPARSE messages name the file, the tensor or byte offset, what was found and what is
 * allowed. The file is read into private memory once: the peak is its size and at most
 * 64 MiB. NaN and infinities are values like others. */
int weights_open(struct weights **out, const char *path,
                 const struct weight_limits *limits, strata_error *err);
/* A name as an INI file in folder `base` gives it; see file_read_beneath. */
int weights_open_beneath(struct weights **out, const char *base, const char *name,
                         int anywhere, const struct weight_limits *limits,
                         strata_error *err);
/* Over bytes that stay the caller's; path is for messages. For tests and fuzzing. */
int weights_parse(struct weights **out, const void *bytes, size_t size, const char *path,
                  const struct weight_limits *limits, strata_error *err);
void weights_close(struct weights *w);

size_t weights_count(const struct weights *w);
struct weight_view weights_at(const struct weights *w, size_t i);
/* STRATA_OK, or ENOTFOUND with the nearest name and the number of tensors in the file. */
int weights_find(const struct weights *w, const char *name, struct weight_view *out,
                 strata_error *err);

/* A safetensors file of those tensors: written at once, or malloc'ed at *bytes. Names must
 * differ. Larger elements come first, so that each lies aligned. EINVAL names a tensor. */
int weights_save(const char *path, const struct weight_view *views, size_t n,
                 strata_error *err);
int weights_write(void **bytes, size_t *size, const struct weight_view *views, size_t n,
                  strata_error *err);

/* Convert `count` elements to a core dtype (STRATA_FP32 ...) by the rule of a reformat:
 * rounding once, to nearest even; integers saturate and NaN becomes 0; floats become
 * infinite. src may have any alignment. EINVAL for an unknown dtype. */
int weights_convert(void *dst, int dtype, const void *src, enum weight_dtype from,
                    int64_t count, strata_error *err);
/* What weights_convert does to a tensor's values beyond rounding them to floats. */
struct weight_loss {
    double low, high; /* of the numbers there are */
    int64_t beyond;   /* outside of what the dtype holds */
    int64_t rounded;  /* to whole numbers, of those inside */
    int64_t nans;     /* that become 0 */
};
/* EINVAL for an unknown dtype. */
int weights_loss(struct weight_loss *out, int dtype, const struct weight_view *view,
                 strata_error *err);
/* The least and the largest finite value of a core dtype. */
void weights_range(int dtype, double *low, double *high);
/* Index of the first NaN, -1 if there is none. */
int64_t weights_first_nan(const struct weight_view *view);
const char *weight_dtype_name(enum weight_dtype d);
size_t weight_dtype_size(enum weight_dtype d);
/* The core's dtype with the same elements, or -1; and a core dtype's element type. */
int weight_dtype_core(enum weight_dtype d);
enum weight_dtype weight_dtype_of(int dtype);

/* He-normal values for a weight of these dims (fan-in = elements per output), from a
 * seed and the weight's full name: equal on every machine, since only exact integers and
 * correctly rounded operations are used. Normal is the sum of twelve uniforms, so no
 * value is beyond 6 deviations. */
void weights_random(float *dst, int64_t count, int64_t fan_in, uint64_t seed,
                    const char *name);

#endif /* IO_WEIGHTS_WEIGHTS_H */
