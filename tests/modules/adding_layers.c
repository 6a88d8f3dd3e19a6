/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding: the identity, and a residual wherever it lies. With DENSE its accept refuses
 * one that lies inside a larger tensor, which it says it adds.
 */
#include <strata/plugin.h>

#ifndef DENSE
#define DENSE 0
#endif

static int accept(const strata_node *n)
{
    const strata_tensor *x =
        n->epilogue->flags & STRATA_EPILOGUE_RESIDUAL ? n->epilogue->residual : NULL;
    return DENSE && x && x->strides[0] > x->dims[1] * x->strides[1]
               ? STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "a residual of %lld elements an image",
                             (long long)x->strides[0])
               : STRATA_OK;
}

static int run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0], *residual = r->epilogue->residual;
    const float *in = r->in[0].data, *add = residual ? residual->data : NULL;
    const int64_t image = y->dims[0] ? y->size / y->dims[0] : 0;
    for (int64_t i = 0; i < y->size; i++)
        ((float *)y->data)[i] =
            in[i] + (add ? add[i / image * residual->strides[0] + i % image] : 0);
    return STRATA_OK;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}}};
static const strata_impl impls[] = {
    {.id = 1,
     .name = "adding",
     .flags = STRATA_PITCHED_RESIDUAL,
     .epilogues = STRATA_EPILOGUE_RESIDUAL,
     .rows = STRATA_ARRAY(rows),
     .accept = accept,
     .run = run},
};
static const strata_layer adding = {.struct_size = sizeof(strata_layer),
                                    .version = 1,
                                    .name = "Adding",
                                    .doc = "The identity.",
                                    .min_in = 1,
                                    .max_in = 1,
                                    .n_out = 1,
                                    .impls = STRATA_ARRAY(impls)};
static const strata_layer *const layers[] = {&adding};
STRATA_MODULE("test.adding", "1.0.0", "Adding", layers)
