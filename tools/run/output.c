/* SPDX-License-Identifier: Apache-2.0
 *
 * A network's outputs as a table of the largest values, or as .npy.
 */
#include "tools/run/run.h"

#include <strata/sizes.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool uses_half(const struct execution *x)
{
    for (size_t i = 0; i < x->n_values; i++)
        if (x->values[i].desc.dtype == STRATA_FP16)
            return true;
    return false;
}

/* Infinities of FP32 may be meant (a mask, the logarithm of 0), those of FP16 are most
 * likely what was above 65504. */
static void warn_of_odd(const strata_engine *e, const char *name, const struct values *v)
{
    const bool half = uses_half(e->execution);
    int64_t nans, infinities, first = values_odd(v, &nans, &infinities);
    if (nans || (infinities && half))
        log_line(STRATA_LOG_WARNING,
                 "output '%s': %" PRId64 " of %" PRId64 " values are NaN, %" PRId64
                 " infinite, the first at index %" PRId64 "; %s",
                 name, nans, v->count, infinities, first,
                 half ? "FP16 ends at 65504: see what precision = fp32 in [build] gives"
                      : "see whether an input or a weight holds one");
}

int run_values(struct values *v, strata_context *c, const strata_engine *e, int index,
               strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    *v = (struct values){0};
    int status = strata_context_binding(c, index, &b, err);
    if (status != STRATA_OK)
        return status;
    void *data = zalloc(1, (size_t)b.bytes, "an output", err);
    status = data ? strata_copy_out(c, index, data, err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = values_read(v, &b.desc, data, "an output", err);
    if (status == STRATA_OK)
        warn_of_odd(e, b.name, v);
    free(data);
    return status;
}

/* A NaN is above every number: what went wrong is to be seen. */
static bool above(const struct values *v, int64_t i, int64_t k)
{
    if (!values_whole(v) && isnan(values_at(v, i)))
        return !isnan(values_at(v, k));
    return !isnan(values_at(v, k)) && values_apart(v, i, v, k) > 0;
}

/* Indices of the `top` largest of n values from `begin` on, ties by index. */
static int select_top(int64_t *indices, int top, const struct values *v, int64_t begin,
                      int64_t n)
{
    int found = 0;
    for (int64_t i = 0; i < n; i++) {
        int at = found < top ? found : top;
        while (at > 0 && above(v, begin + i, begin + indices[at - 1]))
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

int run_add_top(struct table *t, strata_context *c, const strata_engine *e, int index,
                int top, strata_error *err)
{
    const char *name = e->execution->bindings[index].name;
    char text[VALUES_TEXT];
    struct values v;
    int64_t *indices = NULL;
    int status = run_values(&v, c, e, index, err);
    if (status != STRATA_OK)
        goto done;
    int64_t images = v.rank > 1 ? v.dims[0] : 1;
    int64_t n = images ? v.count / images : 0;
    top = n < top ? (int)n : top;
    indices = zalloc((size_t)top, sizeof *indices, "a table", err);
    if (!indices)
        status = STRATA_ENOMEM;
    for (int64_t image = 0; image < images && status == STRATA_OK; image++) {
        int found = select_top(indices, top, &v, image * n, n);
        for (int k = 0; k < found; k++) {
            table_cell(t, "%s", name);
            table_cell(t, "%lld", (long long)image);
            table_cell(t, "%d", k + 1);
            table_cell(t, "%lld", (long long)indices[k]);
            table_cell(t, "%s", values_text(text, &v, image * n + indices[k], 6));
            table_cell(t, "%s", label(e->network, indices[k]));
        }
    }
done:
    values_free(&v);
    free(indices);
    return status;
}

int run_write_output(strata_context *c, const strata_engine *e, int index,
                     const char *path, strata_error *err)
{
    struct values v;
    int status = run_values(&v, c, e, index, err);
    if (status == STRATA_OK)
        status = values_save(&v, path, err);
    values_free(&v);
    return status;
}
