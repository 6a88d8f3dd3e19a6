/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN in FP16 and BF16 on CUDA: the input products of all steps by cuBLASLt, the steps by
 * one persistent kernel a layer, of one of two kinds.
 */
#include "plugins/common/cublaslt/module.h"
#include "plugins/rnn/persistent.h"
#include "plugins/rnn/rnn.h"

struct state {
    const struct persistent_kind *kind;
    struct persistent_shape shape;
    struct cublaslt_plan first, upper; /* products of layer 0 and of those above */
    int64_t batch;                     /* sequences that it was set up for */
    size_t product;                    /* bytes of the products' workspace */
    char *w, *u, *r; /* w and u narrowed; r: fragments, line after line */
    size_t line;     /* bytes of r's */
};

/* Bytes from the workspace's begin; the products' own comes first. */
struct room {
    size_t sums, slots[2], between[2], total;
};

/* ---- what is taken
 * --------------------------------------------------------------------- */

static int check_options(const strata_node *n, const struct rnn_plan *p)
{
    if (n->math != STRATA_MATH_TENSOR_OP)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "FP16 and BF16 use tensor cores, which math = tensor_op "
                           "allows");
    if (n->weight[RNN_P].rank > 0 || p->rule[0].coupled || p->rule[0].clips ||
        p->rule[0].custom || p->rule[p->directions - 1].custom ||
        (p->op == STRATA_RNN_GRU && !p->reset_after))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "peepholes, coupled gates, a clip, activations of one's own "
                           "and a reset before the product are for others");
    if (p->hidden % PERSISTENT_UNITS || p->hidden > PERSISTENT_HIDDEN)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld hidden units; a multiple of %d is taken, up to %d",
                           (long long)p->hidden, PERSISTENT_UNITS, PERSISTENT_HIDDEN);
    if (p->steps > INT32_MAX - 1 || p->batch > INT32_MAX - 64)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "too long for 32-bit counters");
    return STRATA_OK;
}

/* Sums are rows of D*G*H for each row of the input. */
static int describe(const strata_node *n, const struct rnn_plan *p, int layer,
                    struct cublaslt_problem *out)
{
    const int64_t rows = p->steps * p->batch;
    *out = (struct cublaslt_problem){
        .dtype = n->in[RNN_X].dtype,
        .b_dtype = n->in[RNN_X].dtype,
        .result = n->in[RNN_X].dtype,
        .a_transposed = 1,
        .m = p->directions * p->gates * p->hidden,
        .n = rows,
        .k = rnn_depth(p, layer),
        .lda = rnn_depth(p, layer),
        .ldb = rnn_depth(p, layer),
        .ldd = p->directions * p->gates * p->hidden,
        .batch = 1,
        .alpha = 1,
    };
    return rows > INT32_MAX || out->m > INT32_MAX || out->k > INT32_MAX
               ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "a side of over 2^31 - 1")
               : STRATA_OK;
}

static int plan_products(const strata_node *n, const struct rnn_plan *p, struct state *s)
{
    struct cublaslt_problem problem;
    int status = STRATA_OK;
    if (rnn_multiplies(p, 0) &&
        ((status = describe(n, p, 0, &problem)) ||
         (status = cublaslt_plan(n, &problem, 0, NULL, &s->first))))
        return status;
    if (p->layers > 1 && ((status = describe(n, p, 1, &problem)) ||
                          (status = cublaslt_plan(n, &problem, 0, NULL, &s->upper))))
        return status;
    s->product =
        s->first.workspace > s->upper.workspace ? s->first.workspace : s->upper.workspace;
    return STRATA_OK;
}

static int plan_all(const strata_node *n, const struct persistent_kind *kind,
                    struct state *s)
{
    const struct rnn_plan p = rnn_plan_of(n->params, n->in, n->weight);
    int status;
    memset(s, 0, sizeof *s);
    s->kind = kind;
    if ((status = check_options(n, &p)) ||
        (status = kind->plan(n, p.gates, p.hidden, p.directions, p.batch, &s->shape)))
        return status;
    s->batch = p.batch;
    return plan_products(n, &p, s);
}

static int accept(const strata_node *n)
{
    struct state s;
    return plan_all(n, &persistent_warps, &s);
}

static int accept_wide(const strata_node *n)
{
    struct state s;
    return plan_all(n, &persistent_wide, &s);
}

/* ---- workspace
 * ------------------------------------------------------------------------- */

/* n rows of `width` elements of 16 bits behind *used; 0: overflow. */
static int take(size_t *used, int64_t n, int64_t width, size_t *at)
{
    int64_t bytes;
    *at = *used;
    return !__builtin_mul_overflow(n, width, &bytes) &&
           !__builtin_mul_overflow(bytes, (int64_t)2, &bytes) &&
           !__builtin_add_overflow(bytes, (int64_t)255, &bytes) &&
           !__builtin_add_overflow(*used, (size_t)bytes & ~(size_t)255, used);
}

static int furnish(const struct rnn_plan *p, size_t product, struct room *room)
{
    const int64_t rows = p->steps * p->batch, wide = p->directions * p->hidden;
    size_t used = (product + 255) & ~(size_t)255;
    int fits = take(&used, rows, wide * p->gates, &room->sums);
    for (int i = 0; i < 2; i++)
        fits = fits &&
               take(&used, i < p->directions ? p->steps : 0,
                    persistent_slot(p->batch, p->hidden), &room->slots[i]) &&
               take(&used, p->layers > 1 + i ? rows : 0, wide, &room->between[i]);
    room->total = used;
    return fits;
}

static size_t workspace_of(const strata_node *n, const struct persistent_kind *kind)
{
    const struct rnn_plan p = rnn_plan_of(n->params, n->in, n->weight);
    struct state s;
    struct room room;
    return plan_all(n, kind, &s) == STRATA_OK && furnish(&p, s.product, &room)
               ? room.total
               : SIZE_MAX;
}

static size_t workspace(const strata_node *n)
{
    return workspace_of(n, &persistent_warps);
}

static size_t workspace_wide(const strata_node *n)
{
    return workspace_of(n, &persistent_wide);
}

/* ---- setup
 * ----------------------------------------------------------------------------- */

static int narrow(const strata_node *n, const strata_pack *pack, int i,
                  const struct persistent_shape *shape, char **out)
{
    const strata_tensor *w = &n->weight[i];
    void *memory = NULL;
    int status = STRATA_OK;
    if (w->rank == 0 || w->count == 0)
        return STRATA_OK;
    if ((status = pack->alloc(n, (size_t)w->count * 2, &memory)))
        return status;
    *out = memory;
    return persistent_narrow(n, shape, w->data, w->count, memory);
}

static int setup_as(const strata_node *n, const struct persistent_kind *kind,
                    struct state *s)
{
    const struct rnn_plan p = rnn_plan_of(n->params, n->in, n->weight);
    const strata_pack *pack =
        n->host->extension ? n->host->extension(STRATA_PACK_V1) : NULL;
    const int lines = p.layers * p.directions;
    void *memory;
    int status;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1 ", for packed weights");
    if ((status = plan_all(n, kind, s)))
        return status;
    s->line = kind->pack_size(&s->shape, p.hidden);
    if ((status = narrow(n, pack, RNN_W, &s->shape, &s->w)) ||
        (status = narrow(n, pack, RNN_U, &s->shape, &s->u)) ||
        (status = pack->alloc(n, s->line * (size_t)lines, &memory)))
        return status;
    s->r = memory;
    for (int i = 0; i < lines && status == STRATA_OK; i++)
        status = kind->pack(n, &s->shape,
                            (const float *)n->weight[RNN_R].data +
                                i * p.gates * p.hidden * p.hidden,
                            p.hidden, s->r + (size_t)i * s->line);
    return status;
}

static int setup(const strata_node *n, void *state)
{
    return setup_as(n, &persistent_warps, state);
}

static int setup_wide(const strata_node *n, void *state)
{
    return setup_as(n, &persistent_wide, state);
}

/* ---- run
 * ------------------------------------------------------------------------------- */

/* The input product of a layer, in the workspace's first part. */
static int multiply(const strata_run *r, const struct rnn_plan *p, int layer,
                    const void *x, void *sums)
{
    const struct state *s = r->state;
    strata_run own = *r;
    const int64_t each =
        p->directions * p->gates * p->hidden * rnn_depth(p, layer) * (layer - 1) * 2;
    own.workspace_size = s->product;
    return cublaslt_run(&own, layer ? &s->upper : &s->first, layer ? s->u + each : s->w,
                        x, NULL, sums);
}

static void *at_state(const void *base, const struct rnn_plan *p, int line)
{
    return base ? (char *)base + 2 * line * p->batch * p->hidden : NULL;
}

static struct persistent_line line_of(const strata_run *r, const struct rnn_plan *p,
                                      int layer, int direction)
{
    const struct state *s = r->state;
    const int i = layer * p->directions + direction;
    const int lstm = p->op == STRATA_RNN_LSTM;
    return (struct persistent_line){
        .weight = s->r + (size_t)i * s->line,
        .bias = r->weight[RNN_B].rank > 0
                    ? (const float *)r->weight[RNN_B].data + i * 2 * p->gates * p->hidden
                    : NULL,
        .h0 = at_state(rnn_input(r->n_in, r->in, RNN_H0), p, i),
        .c0 = lstm ? at_state(rnn_input(r->n_in, r->in, RNN_C0), p, i) : NULL,
        .hn = at_state(r->out[RNN_HN].data, p, i),
        .cn = lstm ? at_state(r->out[RNN_CN].data, p, i) : NULL,
        .backward = p->backward || direction == 1,
    };
}

static int run_layer(const strata_run *r, const struct rnn_plan *p,
                     const struct room *room, int layer)
{
    const struct state *s = r->state;
    char *memory = r->workspace;
    const int last = layer + 1 == p->layers, inside = layer > 0;
    const int64_t wide = p->directions * p->hidden, all = wide * p->gates;
    const int batch_first = p->x_row > p->x_step && p->batch > 1;
    const uint16_t *x =
        inside ? (void *)(memory + room->between[(layer - 1) % 2]) : r->in[RNN_X].data;
    uint16_t *y = last ? r->out[RNN_Y].data : (void *)(memory + room->between[layer % 2]);
    const int multiplies = rnn_multiplies(p, layer);
    const int64_t width = multiplies ? all : p->inputs;
    struct persistent_job job = {
        .lengths = rnn_input(r->n_in, r->in, RNN_LENGTHS),
        .y_step = last ? p->y_step : p->batch * wide,
        .y_row = last ? p->y_row : wide,
        .sums_step = inside || !batch_first ? p->batch * width : width,
        .sums_row = inside || !batch_first ? width : p->steps * width,
        .gate = multiplies ? p->hidden : 0,
        .steps = (int32_t)p->steps,
        .batch = (int32_t)p->batch,
        .hidden = (int32_t)p->hidden,
        .directions = p->directions,
        .relu = p->op == STRATA_RNN_RELU,
    };
    const uint16_t *sums = multiplies ? (void *)(memory + room->sums) : x;
    int status = multiplies ? multiply(r, p, layer, x, memory + room->sums) : STRATA_OK;
    for (int d = 0; d < p->directions; d++) {
        job.line[d] = line_of(r, p, layer, d);
        job.line[d].sums = sums + (multiplies ? d * p->gates * p->hidden : 0);
        job.line[d].slots = memory + room->slots[d];
        job.line[d].y = y + d * (last ? p->y_direction : p->hidden);
    }
    return status ? status : s->kind->launch(r, &s->shape, &job);
}

static int run(const strata_run *r)
{
    const struct rnn_plan p = rnn_plan_of(r->params, r->in, r->weight);
    const struct state *s = r->state;
    struct room room;
    int status = STRATA_OK;
    if (p.batch != s->batch || !furnish(&p, s->product, &room))
        return STRATA_FAIL(r, STRATA_EUNSUPPORTED,
                           "set up for %lld sequences, found %lld; build for this batch",
                           (long long)s->batch, (long long)p.batch);
    for (int layer = 0; layer < p.layers && status == STRATA_OK; layer++)
        status = run_layer(r, &p, &room, layer);
    return status;
}

static const strata_row rows[] = {
    {{STRATA_F16_NCHW | STRATA_BF16_NCHW, STRATA_I32_NCHW, STRATA_SAME, STRATA_SAME},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .min_sm = 80,
     .name = "persistent",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.1,
     .state_size = sizeof(struct state),
     .accept = accept,
     .workspace = workspace,
     .setup = setup,
     .run = run},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .min_sm = 90,
     .max_sm = 90,
     .name = "persistent_wide",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.2,
     .state_size = sizeof(struct state),
     .accept = accept_wide,
     .workspace = workspace_wide,
     .setup = setup_wide,
     .run = run},
};

const strata_extends cublaslt_rnn = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::RNN",
    .params_size = sizeof(strata_rnn),
    .impls = STRATA_ARRAY(impls),
};
