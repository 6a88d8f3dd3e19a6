/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer that keeps the contract, y = x + bias, and the places in it where -D puts a
 * fault. Impl "blocked" has pad lanes.
 */
#include <strata/plugin.h>

#include <fenv.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef CONSTRUCTOR
#define CONSTRUCTOR
#endif
#ifndef ENTRY
#define ENTRY
#endif
#ifndef EXTENSION
#define EXTENSION
#endif
#ifndef SHAPE
#define SHAPE
#endif
#ifndef ACCEPT
#define ACCEPT
#endif
#ifndef WORKSPACE
#define WORKSPACE
#endif
#ifndef SETUP
#define SETUP
#endif
#ifndef OPEN
#define OPEN
#endif
#ifndef RUN_BEGIN
#define RUN_BEGIN
#endif
#ifndef RUN_END
#define RUN_END
#endif
#ifndef BLOCKED_END
#define BLOCKED_END
#endif
#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef FLAGS_BLOCKED
#define FLAGS_BLOCKED 0
#endif
#ifndef FUSED_BLOCKED
#define FUSED_BLOCKED 0
#endif
#ifndef ADDED
#define ADDED 0
#endif
#ifndef CLOSE
#define CLOSE
#endif
#ifndef TEARDOWN
#define TEARDOWN
#endif
#ifndef ELEMENT
#define ELEMENT(x, bias) ((x) + (bias))
#endif
#ifndef DEFINED
#define DEFINED(x, bias) ((x) + (bias))
#endif
#ifndef WRITTEN
#define WRITTEN n
#endif
#ifndef NO_TABLE
#define NO_TABLE(n) STRATA_FAIL(n, STRATA_ENOMEM, "no memory for the table")
#endif
#ifndef EXPORTED
#define EXPORTED
#endif
#ifndef LEAST
#define LEAST 1
#endif

#define CRASH (*(volatile int *)(intptr_t)nowhere = 1)
#define HANG                                                                             \
    while (nowhere == 0)                                                                 \
    pause()

struct params {
    double bias;
    int64_t parts;
};
struct state {
    float *table; /* of the bias, once */
};

static volatile intptr_t nowhere;
static float shared[1 << 16];
static volatile int counter;
EXPORTED

__attribute__((constructor)) static void construct(void)
{
    (void)shared;
    (void)counter;
    CONSTRUCTOR;
}

static int shape(const strata_node *n)
{
    const struct params *p = n->params;
    (void)p;
#ifndef NO_SHAPE
    n->out[0].rank = n->in[0].rank;
    memcpy(n->out[0].dims, n->in[0].dims, sizeof n->out[0].dims);
#endif
    SHAPE;
    return STRATA_OK;
}

static int accept(const strata_node *n)
{
    (void)n;
    ACCEPT;
    return STRATA_OK;
}

static size_t workspace(const strata_node *n)
{
    WORKSPACE;
    return (size_t)n->out[0].count * sizeof(float);
}

static int setup(const strata_node *n, void *memory)
{
    const struct params *p = n->params;
    struct state *s = memory;
    SETUP;
    s->table = malloc(sizeof(float));
    if (!s->table)
        return NO_TABLE(n);
    *s->table = (float)p->bias;
    return STRATA_OK;
}

static void teardown(void *memory)
{
    struct state *s = memory;
    TEARDOWN;
    free(s->table);
}

static int ctx_open(const strata_node *n, const void *state, void *ctx)
{
    (void)n;
    (void)state;
    (void)ctx;
    OPEN;
    return STRATA_OK;
}

static void ctx_close(void *ctx)
{
    (void)ctx;
    CLOSE;
}

static int run(const strata_run *r)
{
    const struct state *s = r->state;
    const float *x = r->in[0].data;
    float *y = r->out[0].data, *work = r->workspace;
    const int64_t n = r->out[0].count, size = r->out[0].size;
    (void)size;
    RUN_BEGIN;
    for (int64_t i = 0; i < n; i++)
        work[i] = ELEMENT(x[i], *s->table);
    memcpy(y, work, (size_t)(WRITTEN) * sizeof *y);
    RUN_END;
    return STRATA_OK;
}

/* Channels in vectors of 8: pad lanes are written, and left as zero. */
static int run_blocked(const strata_run *r)
{
    const struct state *s = r->state;
    const strata_tensor *t = &r->out[0];
    const float *x = r->in[0].data;
    float *y = t->data;
#ifndef PADS
    memset(y, 0, (size_t)t->size * sizeof *y);
#endif
    for (int64_t n = 0; n < t->dims[0]; n++)
        for (int64_t c = 0; c < t->dims[1]; c++)
            for (int64_t h = 0; h < t->dims[2]; h++)
                for (int64_t w = 0; w < t->dims[3]; w++) {
                    const int64_t at = strata_offset4(t, n, c, h, w);
                    y[at] = x[at] + *s->table + ADDED;
                }
    BLOCKED_END;
    return STRATA_OK;
}

static int accept_blocked(const strata_node *n)
{
    return n->out[0].rank == 4
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "rank %d", n->out[0].rank);
}

static int reference(const strata_node *n, const double *const *in,
                     const double *const *weight, double *const *out)
{
    const struct params *p = n->params;
    int64_t count = 1;
    (void)weight;
    for (int d = 0; d < n->out[0].rank; d++)
        count *= n->out[0].dims[d];
    for (int64_t i = 0; i < count; i++)
        out[0][i] = DEFINED(in[0][i], (double)(float)p->bias);
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference table = {sizeof table, 0, reference};
    EXTENSION;
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &table : NULL;
}

static const strata_attr attrs[] = {
    {.name = "bias",
     .type = STRATA_F64,
     .offset = offsetof(struct params, bias),
     .def = 0.5,
     .min = -4,
     .max = 4,
     .doc = "addend"},
    {.name = "parts",
     .type = STRATA_I64,
     .offset = offsetof(struct params, parts),
     .def = 2,
     .min = LEAST,
     .max = 8,
     .doc = "nothing; an integer to have"},
};
static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_row blocked[] = {{{STRATA_F32_NC8HW8}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = FLAGS,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .state_size = sizeof(struct state),
     .ctx_size = 64,
     .accept = accept,
     .workspace = workspace,
     .setup = setup,
     .teardown = teardown,
     .ctx_open = ctx_open,
     .ctx_close = ctx_close,
     .run = run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = FLAGS_BLOCKED,
     .epilogues = FUSED_BLOCKED,
     .name = "blocked",
     .rows = STRATA_ARRAY(blocked),
     .state_size = sizeof(struct state),
     .accept = accept_blocked,
     .setup = setup,
     .teardown = teardown,
     .run = run_blocked},
};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Shifted",
    .doc = "y = x + bias",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(struct params),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};

/* STRATA_MODULE's own entry, behind one that has a place for faults. */
#undef STRATA_ENTRY
#define STRATA_ENTRY static
#define strata_module_v1 tables
STRATA_MODULE("org.faulty", "1.0.0", "Shifted", layers)
#undef strata_module_v1

STRATA_EXPORT const strata_module *strata_module_v1(const strata_host *host);
STRATA_EXPORT const strata_module *strata_module_v1(const strata_host *host)
{
    ENTRY;
    return tables(host);
}
