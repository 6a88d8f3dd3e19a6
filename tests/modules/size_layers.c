/* SPDX-License-Identifier: Apache-2.0
 *
 * Picky: y = x + 1 by an impl that takes even sizes only, y = x + 2 by one that takes all.
 * Both pack weights, the same for every size or not, and see that they are theirs.
 */
#include <strata/plugin.h>

struct picky {
    int32_t own, reserved;
};

enum { WORDS = 16384 }; /* 128 KiB */

struct picky_state {
    int64_t *packed, *end; /* the last word */
    int64_t expected;
};

static const strata_attr attrs[] = {
    {.name = "own", .type = STRATA_BOOL, .offset = offsetof(struct picky, own),
     .doc = "packed weights hang on the size"},
};

static int accept_even(const strata_node *n)
{
    return n->in[0].dims[1] % 2 == 0
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%lld is odd",
                             (long long)n->in[0].dims[1]);
}

static int setup(const strata_node *n, void *state)
{
    const struct picky *p = n->params;
    struct picky_state *s = state;
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    void *memory;
    int status = pack->alloc(n, WORDS * sizeof(int64_t), &memory);
    if (status != STRATA_OK)
        return status;
    s->packed = memory;
    s->end = s->packed + WORDS - 1;
    s->expected = p->own ? n->in[0].dims[1] : -7;
    for (int i = 0; i < WORDS; i++)
        s->packed[i] = s->expected;
    return STRATA_OK;
}

static int add(const strata_run *r, float what)
{
    const struct picky_state *s = r->state;
    const float *x = r->in[0].data;
    float *y = r->out[0].data;
    if (*s->packed != s->expected || *s->end != s->expected)
        return STRATA_FAIL(r, STRATA_EINTERNAL, "packed weights are another's");
    for (int64_t i = 0; i < r->in[0].count; i++)
        y[i] = x[i] + what;
    return STRATA_OK;
}

static int run_even(const strata_run *r)
{
    return add(r, 1);
}

static int run_any(const strata_run *r)
{
    return add(r, 2);
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}}};
static const strata_impl impls[] = {
    {.id = 1, .name = "even", .rows = STRATA_ARRAY(rows), .accept = accept_even,
     .setup = setup, .run = run_even, .state_size = sizeof(struct picky_state),
     .bandwidth = 0.9, .efficiency = 0.9},
    {.id = 2, .name = "any", .rows = STRATA_ARRAY(rows), .setup = setup, .run = run_any,
     .state_size = sizeof(struct picky_state), .bandwidth = 0.01, .efficiency = 0.01},
};
static const strata_layer picky = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "Picky",
    .doc = "y = x + 1 or 2", .min_in = 1, .max_in = 1, .n_out = 1,
    .params_size = sizeof(struct picky), .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls)};
static const strata_layer *const layers[] = {&picky};
STRATA_MODULE("test.size", "1.0.0", "Picky", layers)
