/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a tensor, apart from the format it is bound in: FP64, integers and BOOL8
 * as they are, other floats as FP32; dense and in logical order.
 */
#ifndef TOOLS_VALUES_H
#define TOOLS_VALUES_H

#include "tools/tool.h"

struct values {
    int dtype; /* FP32, FP64, BOOL8 or an integer type */
    int rank;
    int64_t dims[STRATA_MAX_RANK], count;
    void *data; /* owned */
};

/* Room for the values of a tensor, zeros. */
int values_open(struct values *v, const strata_desc *desc, const char *what,
                strata_error *err);
/* Values out of a tensor in host memory; free also after a failure. */
int values_read(struct values *v, const strata_desc *desc, const void *from,
                const char *what, strata_error *err);
/* Values into a tensor in host memory, of the same dims; pads become zero. */
int values_write(const struct values *v, const strata_desc *desc, void *to,
                 strata_error *err);
/* Into a .npy file. */
int values_save(const struct values *v, const char *path, strata_error *err);
void values_free(struct values *v);

/* Near enough to calculate with: an INT64 beyond 2^53 is rounded. */
double values_at(const struct values *v, int64_t i);
/* Whole numbers, BOOL8 among them. */
bool values_whole(const struct values *v);
/* The i-th less the k-th, or 0 where they are alike: never 0 for integers that differ,
 * however large. Two NaN are alike; a NaN apart from anything else is infinite. */
double values_apart(const struct values *v, int64_t i, const struct values *w, int64_t k);
/* The i-th with so many significant digits, an integer with all. */
#define VALUES_TEXT 32
const char *values_text(char text[VALUES_TEXT], const struct values *v, int64_t i,
                        int digits);
/* Index of the first that is NaN or infinite, or -1; how many are one and the other. */
int64_t values_odd(const struct values *v, int64_t *nans, int64_t *infinities);

#endif /* TOOLS_VALUES_H */
