/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a tensor, apart from the format it is bound in: floats as FP32, integers
 * as they are, dense and in logical order.
 */
#ifndef TOOLS_VALUES_H
#define TOOLS_VALUES_H

#include "tools/tool.h"

struct values {
    int dtype; /* FP32 or an integer type */
    int rank;
    int64_t dims[STRATA_MAX_RANK], count;
    void *data; /* owned */
};

/* Room for the values of a tensor, zeros. */
int values_open(struct values *v, const strata_desc *desc, const char *what,
                strata_error *err);
/* They out of a tensor in host memory; free also after a failure. */
int values_read(struct values *v, const strata_desc *desc, const void *from,
                const char *what, strata_error *err);
/* They into a tensor in host memory, of the same dims; pads become zero. */
int values_write(const struct values *v, const strata_desc *desc, void *to,
                 strata_error *err);
/* Into a .npy file. */
int values_save(const struct values *v, const char *path, strata_error *err);
void values_free(struct values *v);

double values_at(const struct values *v, int64_t i);
/* Significant digits to print them with: `digits` of a float, all of an integer. */
int values_digits(const struct values *v, int digits);
/* Index of the first that is NaN or infinite, or -1; how many are one and the other. */
int64_t values_odd(const struct values *v, int64_t *nans, int64_t *infinities);

#endif /* TOOLS_VALUES_H */
