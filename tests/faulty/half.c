/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer that keeps the contract, y = 1.5*x in FP16 on the host, and the places in it
 * where -D puts a fault.
 */
#include <strata/half.h>
#include <strata/plugin.h>

#include <string.h>

#ifndef READ
#define READ(h) strata_float_of_half(h)
#endif
#ifndef WRITE
#define WRITE(x) strata_half_of_float(x)
#endif
#ifndef ELEMENT
#define ELEMENT(x) (1.5f * (x))
#endif
#ifndef DEFINED
#define DEFINED(x, most) (1.5 * (x))
#endif
#ifndef REFERENCE_FLAGS
#define REFERENCE_FLAGS 0
#endif

/* For faults: what lies between, held to a range; a NaN stays one. */
static inline double hold(double x, double most)
{
    return x > most ? most : x < -most ? -most : x;
}

static int run(const strata_run *r)
{
    const uint16_t *x = r->in[0].data;
    uint16_t *y = r->out[0].data;
    for (int64_t i = 0; i < r->out[0].count; i++)
        y[i] = WRITE(ELEMENT(READ(x[i])));
    return STRATA_OK;
}

static int define(const strata_node *n, const double *const *in,
                  const double *const *weight, double *const *out)
{
    (void)weight;
    const double most = n->in[0].dtype == STRATA_FP16 ? 65504 : __builtin_inf();
    (void)most;
    for (int64_t i = 0; i < n->out[0].count; i++)
        out[0][i] = DEFINED(in[0][i], most);
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference table = {sizeof table, REFERENCE_FLAGS, define};
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &table : NULL;
}

static const strata_row rows[] = {{{STRATA_F16_NCHW}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .run = run},
};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Half",
    .doc = "y = 1.5*x",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .impls = STRATA_ARRAY(impls),
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("org.faulty", "1.0.0", "Half", layers)
