/* SPDX-License-Identifier: Apache-2.0
 *
 * Trial: y = x + 1, with what a batch can meet: it takes a while, fails on a value, packs
 * weights that are the same for every batch or not.
 */
#include <strata/plugin.h>

#include <time.h>
#include <unistd.h>

struct trial {
    double poison;    /* an element of this value fails the run; 0: none does */
    int64_t wait_us;  /* that a run takes */
    int64_t gate;     /* file from which a run takes a byte before it ends; -1: none */
    int32_t packs, reserved;
    int64_t code; /* of a run that finds poison */
};
enum { PACKS_NONE, PACKS_SAME, PACKS_OWN };

struct trial_state {
    int64_t *packed; /* [0] is what setup found right */
    int64_t expected;
};

static const strata_attr attrs[] = {
    {.name = "poison", .type = STRATA_F64, .offset = offsetof(struct trial, poison),
     .doc = "fail on an element of this value"},
    {.name = "code", .type = STRATA_I64, .offset = offsetof(struct trial, code),
     .def = STRATA_EINVAL, .doc = "status of a run that fails on poison"},
    {.name = "wait_us", .type = STRATA_I64, .offset = offsetof(struct trial, wait_us),
     .doc = "microseconds that a run takes"},
    {.name = "gate", .type = STRATA_I64, .offset = offsetof(struct trial, gate),
     .def = -1, .doc = "file from which a run takes a byte before it ends"},
    {.name = "packs", .type = STRATA_ENUM, .offset = offsetof(struct trial, packs),
     .choices = "none|same|own", .doc = "whether packed weights differ by the batch"},
};

static int setup(const strata_node *n, void *state)
{
    const struct trial *p = n->params;
    struct trial_state *s = state;
    void *memory;
    if (p->packs == PACKS_NONE)
        return STRATA_OK;
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    int status = pack->alloc(n, 4096, &memory);
    if (status != STRATA_OK)
        return status;
    s->packed = memory;
    s->expected = p->packs == PACKS_SAME ? 7 : n->in[0].dims[0];
    for (int i = 0; i < 512; i++)
        s->packed[i] = s->expected;
    return STRATA_OK;
}

static int run(const strata_run *r)
{
    const struct trial *p = r->params;
    const struct trial_state *s = r->state;
    const float *x = r->in[0].data;
    float *y = r->out[0].data;
    const struct timespec pause = {p->wait_us / 1000000, p->wait_us % 1000000 * 1000};
    char byte;
    nanosleep(&pause, NULL);
    if (p->gate >= 0 && read((int)p->gate, &byte, 1) != 1)
        return STRATA_FAIL(r, STRATA_EIO, "the gate is broken");
    if (s->packed && (s->packed[0] != s->expected || s->packed[511] != s->expected))
        return STRATA_FAIL(r, STRATA_EINTERNAL, "packed weights are another's");
    for (int64_t i = 0; i < r->in[0].count; i++) {
        if (p->poison != 0 && x[i] == (float)p->poison)
            return STRATA_FAIL(r, (int)p->code, "row %lld is poison",
                               (long long)(i / (r->in[0].count / r->in[0].dims[0])));
        y[i] = x[i] + 1;
    }
    return STRATA_OK;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}}};
static const strata_impl impls[] = {
    {.id = 1, .name = "trial", .rows = STRATA_ARRAY(rows), .setup = setup, .run = run,
     .state_size = sizeof(struct trial_state)},
};
static const strata_layer trial = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "Trial", .doc = "y = x + 1",
    .min_in = 1, .max_in = 1, .n_out = 1, .params_size = sizeof(struct trial),
    .attrs = STRATA_ARRAY(attrs), .impls = STRATA_ARRAY(impls)};
static const strata_layer *const layers[] = {&trial};
STRATA_MODULE("test.batch", "1.0.0", "Trial", layers)
