/* SPDX-License-Identifier: Apache-2.0
 *
 * Select: y = condition ? a : b, with broadcasting; nothing is computed, so NaN and the
 * low bits of integers pass as they are.
 */
#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"

static int select_shape(const strata_node *n)
{
    if (n->in[0].dtype != STRATA_BOOL8)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input 0, the condition, must be bool; put a Cast or Compare "
                           "before it");
    if (n->in[1].dtype != n->in[2].dtype)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "inputs 1 and 2 have two dtypes; put a Cast before one of "
                           "them");
    n->out[0].dtype = n->in[1].dtype;
    return pointwise_shape(n);
}

static int select_run(const strata_run *r)
{
    const struct pointwise_constants k = {0};
    pointwise_run_one(r, POINTWISE_SELECT, &k, &r->in[1]);
    return STRATA_OK;
}

static int select_reference(const strata_node *n, const void *const *in,
                            const void *const *weight, void *const *out)
{
    const struct pointwise_constants k = {0};
    return pointwise_reference(n, in, weight, out, POINTWISE_SELECT, &k);
}

static const void *select_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     select_reference};
    return dense_extension_typed(id, &reference);
}

#define ROW(format)                                                                      \
    {                                                                                    \
        {STRATA_BOOL_NCHW, format, format},                                              \
        {                                                                                \
            format                                                                       \
        }                                                                                \
    }
static const strata_row rows[] = {
    ROW(STRATA_F32_NCHW), ROW(STRATA_F16_NCHW), ROW(STRATA_BF16_NCHW),
    ROW(STRATA_F64_NCHW), ROW(STRATA_I32_NCHW), ROW(STRATA_I64_NCHW),
    ROW(STRATA_U8_NCHW),  ROW(STRATA_I8_NCHW),  ROW(STRATA_BOOL_NCHW),
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.16,
     .bandwidth = 0.65,
     .run = select_run},
};

static const strata_layer select_layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Select",
    .doc = "Elements of one tensor or another by a third, with broadcasting",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .impls = STRATA_ARRAY(impls),
    .shape = select_shape,
    .extension = select_extension,
};

static const strata_layer *const layers[] = {&select_layer};
STRATA_MODULE("core", "1.0.0", "Select", layers)
