/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of integers that keeps the contract: y = x + mask + shift in INT64, mask (BOOL)
 * and shift may each be absent, and whether y is above 0, in BOOL; and the places in it
 * where -D puts a fault.
 */
#include <strata/plugin.h>

#include <string.h>

#ifndef ELEMENT
#define ELEMENT(x) (x)
#endif
#ifndef POSITIVE
#define POSITIVE(y) ((y) > 0)
#endif
#ifndef MASK
#define MASK(m, i) ((m) ? (m)[i] : 0)
#endif
#ifndef SHIFT
#define SHIFT(s, i) ((s) ? (s)[i] : 0)
#endif
#ifndef EMPTY
#define EMPTY
#endif

enum { X, MASK_IN, SHIFT_IN };

/* Wraps around, as integers do. */
static int64_t add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int shape(const strata_node *n)
{
    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i].rank > 0 &&
            (n->in[i].rank != n->in[0].rank ||
             memcmp(n->in[i].dims, n->in[0].dims, sizeof n->in[0].dims) != 0))
            return STRATA_FAIL(n, STRATA_EINVAL, "input %d has other dims", (int)i);
    if (n->in[0].dtype != STRATA_INT64)
        return STRATA_FAIL(n, STRATA_EINVAL, "input 0 is not of i64");
    for (int32_t o = 0; o < 2; o++) {
        n->out[o].rank = n->in[0].rank;
        memcpy(n->out[o].dims, n->in[0].dims, sizeof n->in[0].dims);
    }
    n->out[1].dtype = STRATA_BOOL8;
    return STRATA_OK;
}

static const void *input(const strata_run *r, int32_t i)
{
    return i < r->n_in && r->in[i].rank > 0 ? r->in[i].data : NULL;
}

static int accept(const strata_node *n)
{
    EMPTY;
    (void)n;
    return STRATA_OK;
}

static int run(const strata_run *r)
{
    const int64_t *x = r->in[0].data, *shift = input(r, SHIFT_IN);
    const uint8_t *mask = input(r, MASK_IN);
    int64_t *y = r->out[0].data;
    uint8_t *positive = r->out[1].data;
    (void)mask;
    (void)shift;
    for (int64_t i = 0; i < r->out[0].count; i++) {
        y[i] = ELEMENT(add(add(x[i], MASK(mask, i)), SHIFT(shift, i)));
        positive[i] = POSITIVE(y[i]);
    }
    return STRATA_OK;
}

static int define(const strata_node *n, const void *const *in, const void *const *weight,
                  void *const *out)
{
    const int64_t *x = in[0], *mask = n->n_in > MASK_IN ? in[MASK_IN] : NULL;
    const int64_t *shift = n->n_in > SHIFT_IN ? in[SHIFT_IN] : NULL;
    int64_t *y = out[0], *positive = out[1];
    (void)weight;
    for (int64_t i = 0; i < n->out[0].count; i++) {
        y[i] = add(add(x[i], mask ? mask[i] : 0), shift ? shift[i] : 0);
        positive[i] = y[i] > 0;
    }
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference_typed table = {sizeof table, 0, define};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &table : NULL;
}

static const strata_row rows[] = {
    {.in = {STRATA_I64_NCHW, STRATA_BOOL_NCHW, STRATA_I64_NCHW},
     .out = {STRATA_I64_NCHW, STRATA_BOOL_NCHW}}};
static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .accept = accept,
     .run = run},
};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Typed",
    .doc = "y = x + mask + shift, and whether it is above 0",
    .min_in = 1,
    .max_in = 3,
    .n_out = 2,
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .extension = extension,
    .optional_in = 1 << MASK_IN | 1 << SHIFT_IN,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("org.faulty", "1.0.0", "Typed", layers)
