/* SPDX-License-Identifier: Apache-2.0
 *
 * A network's outputs as a table of the largest values, or as .npy.
 */
#include "tools/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/weights/npy.h"

int run_values(float **out, int64_t *count, strata_context *c,
               const strata_engine *e, int index, strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    strata_desc linear;
    int status = strata_engine_binding(e, index, &b, err);
    if (status == STRATA_OK)
        status = format_desc(&linear, (struct format){STRATA_FP32, ORDER_LINEAR, 1},
                             b.desc.dims, b.desc.rank, err);
    if (status != STRATA_OK)
        return status;
    *count = strata_desc_count(&b.desc);
    void *data = zalloc(1, (size_t)b.bytes, "an output", err);
    *out = zalloc((size_t)*count, sizeof **out, "an output", err);
    status = data && *out ? strata_copy_out(c, index, data, err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = strata_reformat(&linear, *out, &b.desc, data, err);
    free(data);
    if (status != STRATA_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* A NaN is above every number: what went wrong is to be seen. */
static bool above(float a, float b)
{
    return a > b || (isnan(a) && !isnan(b));
}

/* Indices of the `top` largest of n values, ties by index. */
static int select_top(int64_t *indices, int top, const float *values, int64_t n)
{
    int found = 0;
    for (int64_t i = 0; i < n; i++) {
        int at = found < top ? found : top;
        while (at > 0 && above(values[i], values[indices[at - 1]]))
            at--;
        if (at >= top)
            continue;
        found = found < top ? found + 1 : top;
        for (int k = found - 1; k > at; k--)
            indices[k] = indices[k - 1];
        indices[at] = i;
    }
    return found;
}

static const char *label(const strata_network *net, int64_t index)
{
    return (uint64_t)index < net->n_labels ? net->labels[index] : "";
}

int run_add_top(struct table *t, strata_context *c, const strata_engine *e,
                int index, int top, strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    float *values = NULL;
    int64_t count = 0, *indices = NULL;
    int status = strata_engine_binding(e, index, &b, err);
    if (status == STRATA_OK)
        status = run_values(&values, &count, c, e, index, err);
    if (status != STRATA_OK)
        goto done;
    int64_t images = b.desc.rank > 1 ? b.desc.dims[0] : 1;
    int64_t n = images ? count / images : 0;
    top = n < top ? (int)n : top;
    indices = zalloc((size_t)top, sizeof *indices, "a table", err);
    if (!indices)
        status = STRATA_ENOMEM;
    for (int64_t image = 0; image < images && status == STRATA_OK; image++) {
        int found = select_top(indices, top, values + image * n, n);
        for (int k = 0; k < found; k++) {
            table_cell(t, "%s", b.name);
            table_cell(t, "%lld", (long long)image);
            table_cell(t, "%d", k + 1);
            table_cell(t, "%lld", (long long)indices[k]);
            table_cell(t, "%.6g", (double)values[image * n + indices[k]]);
            table_cell(t, "%s", label(e->network, indices[k]));
        }
    }
done:
    free(values);
    free(indices);
    return status;
}

int run_write_output(strata_context *c, const strata_engine *e, int index,
                     const char *path, strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    float *values = NULL;
    int64_t count;
    int status = strata_engine_binding(e, index, &b, err);
    if (status == STRATA_OK)
        status = run_values(&values, &count, c, e, index, err);
    if (status == STRATA_OK)
        status = npy_write(path, STRATA_FP32, b.desc.dims, b.desc.rank, values, err);
    free(values);
    return status;
}
