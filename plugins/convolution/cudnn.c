/* SPDX-License-Identifier: Apache-2.0
 *
 * core::Convolution by cuDNN: impl cudnn_<n> is the n-th plan that cuDNN offers for the
 * shape, the formats and the epilogue. Channels-last tensors with padded channels count
 * as wider ones: the packed weights are zero there.
 */
#include <stdio.h>
#include <string.h>

#include "plugins/convolution/cudnn/pack.h"
#include "plugins/convolution/cudnn/session.h"
#include "plugins/common/dtype.h"
#include "plugins/common/window.h"

enum { WEIGHT, BIAS };
enum {
    TF32_CHANNELS = 32, /* of a group, and filters, at least */
    /* Bytes, at least: other batches have other plans, of which a smaller one may want
     * some where a larger one wants none. */
    LEAST_WORKSPACE = 1 << 20
};

struct convolution {
    const struct cudnn_choice *choice;
    struct cudnn_plan *plan;
    void *weight; /* packed, the core's memory */
    void *bias;   /* likewise; zeros where the layer has none but the graph does */
};

struct context {
    struct cudnn_session *session;
    cudnnBackendDescriptor_t pack; /* for the pointers below */
    void *pointers[CUDNN_OPERANDS], *workspace;
};

/* ---- the problem ------------------------------------------------------------------- */

static const struct layout {
    uint64_t format;
    cudnnDataType_t type;
    bool last;
    int vector;
} layouts[] = {
    {STRATA_F16_NHWC8, CUDNN_DATA_HALF, true, 8},
    {STRATA_F16_NHWC, CUDNN_DATA_HALF, true, 1},
    {STRATA_F16_NCHW, CUDNN_DATA_HALF, false, 1},
    {STRATA_BF16_NHWC8, CUDNN_DATA_BFLOAT16, true, 8},
    {STRATA_BF16_NHWC, CUDNN_DATA_BFLOAT16, true, 1},
    {STRATA_BF16_NCHW, CUDNN_DATA_BFLOAT16, false, 1},
    {STRATA_F32_NHWC, CUDNN_DATA_FLOAT, true, 1},
    {STRATA_F32_NCHW, CUDNN_DATA_FLOAT, false, 1},
};

static const struct layout *layout_of(uint64_t format)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].format == format)
            return &layouts[i];
    return NULL;
}

static int64_t padded(int64_t channels, const struct layout *l)
{
    return (channels + l->vector - 1) / l->vector * l->vector;
}

/* Dense strides; false where it has over 2^31 elements, which kernels do not take. */
static bool fill_shape(struct cudnn_shape *s, int rank, const struct layout *l)
{
    int64_t step = 1;
    if (l->last) {
        s->strides[1] = 1;
        step = s->dims[1];
    }
    for (int d = rank - 1; d >= 0; d--) {
        if (l->last && d == 1)
            continue;
        s->strides[d] = step;
        if (s->dims[d] < 1 || __builtin_mul_overflow(step, s->dims[d], &step))
            return false;
    }
    return step <= INT32_MAX;
}

/* A 1-D image is a 2-D one of height 1. */
static bool fill_shapes(struct cudnn_problem *p, const strata_node *n,
                        const struct window *w, const struct layout *l)
{
    const int64_t groups = ((const strata_convolution *)n->params)->groups;
    const strata_tensor *weight = &n->weight[WEIGHT];
    const int spatial = w->dims < 2 ? 2 : w->dims, first = WINDOW_DIMS - spatial;
    p->rank = spatial + 2;
    p->x.dims[0] = n->in[0].dims[0];
    p->y.dims[0] = n->out[0].dims[0];
    p->x.dims[1] = padded(n->in[0].dims[1], l);
    p->y.dims[1] = p->w.dims[0] = padded(weight->dims[0], l);
    /* Groups of padded channels are refused: what is here needs no rounding then. */
    p->w.dims[1] = groups > 1 ? weight->dims[1] : p->x.dims[1];
    for (int d = 0; d < spatial; d++) {
        p->x.dims[2 + d] = w->in[first + d];
        p->y.dims[2 + d] = w->out[first + d];
        p->w.dims[2 + d] = w->kernel[first + d];
        p->begin[d] = w->begin[first + d];
        p->end[d] = w->end[first + d];
        p->stride[d] = w->stride[first + d];
        p->dilation[d] = w->dilation[first + d];
    }
    return fill_shape(&p->x, p->rank, l) && fill_shape(&p->y, p->rank, l) &&
           fill_shape(&p->w, p->rank, l);
}

/* A bias of zeros costs nothing and makes the graph one that cuDNN has kernels for. */
static void fill_epilogue(struct cudnn_problem *p, const strata_node *n)
{
    const int32_t flags = n->epilogue ? n->epilogue->flags : 0;
    p->activation = -1;
    if (flags || n->weight[BIAS].rank > 0)
        p->operands |= 1 << CUDNN_BIAS;
    if (flags & STRATA_EPILOGUE_RESIDUAL)
        p->operands |= 1 << CUDNN_RESIDUAL;
    if (flags & STRATA_EPILOGUE_ACTIVATION) {
        p->activation = n->epilogue->activation;
        p->alpha = p->activation == STRATA_LEAKY_RELU || p->activation == STRATA_ELU ||
                           p->activation == STRATA_SWISH
                       ? n->epilogue->alpha
                       : 0;
    }
}

static bool has_pads(const struct cudnn_problem *p, const strata_node *n)
{
    return p->x.dims[1] != n->in[0].dims[1] || p->y.dims[1] != n->out[0].dims[1];
}

/* Of one pixel: its strides are those of planes and of channels last alike. */
static bool is_pixel(const struct cudnn_problem *p, const struct cudnn_shape *s)
{
    int64_t pixels = 1;
    for (int d = 2; d < p->rank; d++)
        pixels *= s->dims[d];
    return pixels == 1;
}

/* cuDNN then takes all three for channels last, and gives wrong sums. */
static bool is_ambiguous(const struct cudnn_problem *p, const struct layout *l)
{
    return !l->last && !is_pixel(p, &p->w) && (is_pixel(p, &p->x) || is_pixel(p, &p->y));
}

static int describe(const strata_node *n, struct cudnn_problem *p)
{
    const strata_convolution *params = n->params;
    const struct layout *l = layout_of(n->in[0].format);
    const int64_t *dims = n->weight[WEIGHT].dims;
    struct window w;
    int status =
        window_of_convolution(&w, params, &n->in[0], &n->weight[WEIGHT], n->host, n->err);
    if (status != STRATA_OK)
        return status;
    memset(p, 0, sizeof *p);
    if (!l || !fill_shapes(p, n, &w, l))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "a tensor is empty or has over %d elements, which cuDNN's "
                           "kernels do not take",
                           INT32_MAX);
    if (is_ambiguous(p, l))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "an image of one pixel in planes, which cuDNN mistakes for "
                           "channels last");
    p->type = l->type;
    /* Its TF32 kernels for fewer lose a product's last bits, 2^-11 of 1: seen of 4, 8 and
     * 17 channels, once in a hundred thousand runs. */
    p->tensor_cores = l->type == CUDNN_DATA_FLOAT
                          ? strata_may_use_tf32(n) && dims[0] >= TF32_CHANNELS &&
                                dims[1] >= TF32_CHANNELS
                          : n->math == STRATA_MATH_TENSOR_OP;
    fill_epilogue(p, n);
    if (has_pads(p, n) && params->groups > 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld groups of padded channels; needed are channels and "
                           "filters in multiples of %d",
                           (long long)params->groups, l->vector);
    if (has_pads(p, n) &&
        (p->activation == STRATA_SIGMOID || p->activation == STRATA_SOFTPLUS))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "an activation that is not 0 at 0 would write to the pads");
    return STRATA_OK;
}

/* ---- choosing ---------------------------------------------------------------------- */

static int check(const strata_node *n, cudnnStatus_t status, const char *what)
{
    char text[128] = "";
    if (status == CUDNN_STATUS_SUCCESS)
        return STRATA_OK;
    cudnnGetLastErrorString(text, sizeof text);
    return STRATA_FAIL(n, STRATA_EDEVICE, "%s: cuDNN says %s %s", what,
                       cudnnGetErrorString(status), text);
}

static int choose(const strata_node *n, int index, struct cudnn_choice **choice,
                  struct cudnn_plan **plan)
{
    struct cudnn_problem problem;
    struct cudnn_target target;
    int status = describe(n, &problem);
    if (status != STRATA_OK)
        return status;
    const bool clean = cudaPeekAtLastError() == cudaSuccess;
    status = check(n, cudnn_current_target(&target), "opening the library");
    if (status == STRATA_OK && !(*choice = cudnn_choose(&target, &problem)))
        status = STRATA_FAIL(n, STRATA_ENOMEM, "no memory for cuDNN's plans");
    if (clean) /* what cuDNN tried and gave up may leave an error behind */
        (void)cudaGetLastError();
    if (status != STRATA_OK)
        return status;
    if ((*choice)->n == 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", (*choice)->reason);
    if (index >= (*choice)->n)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "cuDNN offers only %d plans here",
                           (*choice)->n);
    *plan = &(*choice)->plans[index];
    return STRATA_OK;
}

static size_t workspace_of(const strata_node *n, int index)
{
    struct cudnn_choice *choice;
    struct cudnn_plan *plan;
    if (choose(n, index, &choice, &plan) != STRATA_OK)
        return SIZE_MAX;
    return plan->workspace > LEAST_WORKSPACE ? plan->workspace : LEAST_WORKSPACE;
}

/* ---- setup ------------------------------------------------------------------------- */

static int pack(const strata_node *n, const struct cudnn_packing *p, const float *source,
                void **copy)
{
    const strata_pack *memory =
        n->host->extension ? n->host->extension(STRATA_PACK_V1) : NULL;
    const size_t elements = (size_t)(p->padded_filters * p->padded_channels * p->taps);
    cudaError_t e;
    int status;
    if (!memory)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which is needed for packed weights");
    if ((status = memory->alloc(n, elements * dtype_size(p->dtype), copy)) != STRATA_OK)
        return status;
    e = cudnn_pack(*copy, source, p, n->stream);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing weights: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

static int pack_weight(const strata_node *n, struct convolution *c)
{
    const struct cudnn_problem *q = &c->choice->problem;
    const strata_tensor *weight = &n->weight[WEIGHT];
    struct cudnn_packing p = {.filters = weight->dims[0],
                              .channels = weight->dims[1],
                              .taps = 1,
                              .padded_filters = q->w.dims[0],
                              .padded_channels = q->w.dims[1],
                              .dtype = n->in[0].dtype,
                              .last = q->w.strides[1] == 1};
    for (int d = 2; d < q->rank; d++)
        p.taps *= q->w.dims[d];
    return pack(n, &p, weight->data, &c->weight);
}

static int pack_bias(const strata_node *n, struct convolution *c)
{
    const struct cudnn_problem *q = &c->choice->problem;
    const strata_tensor *bias = &n->weight[BIAS];
    const struct cudnn_packing p = {.filters = n->out[0].dims[1],
                                    .channels = 1,
                                    .taps = 1,
                                    .padded_filters = q->y.dims[1],
                                    .padded_channels = 1,
                                    .dtype = n->in[0].dtype};
    const bool given = bias->rank > 0;
    if (!(q->operands & 1 << CUDNN_BIAS) || (given && p.dtype == STRATA_FP32))
        return STRATA_OK;
    return pack(n, &p, given ? bias->data : NULL, &c->bias);
}

static int setup_of(const strata_node *n, int index, void *state)
{
    struct convolution *c = state;
    struct cudnn_choice *choice;
    int status = choose(n, index, &choice, &c->plan);
    if (status != STRATA_OK)
        return status;
    c->choice = choice;
    if ((status = pack_weight(n, c)) != STRATA_OK)
        return status;
    return pack_bias(n, c);
}

/* ---- running ----------------------------------------------------------------------- */

static int convolution_ctx_open(const strata_node *n, const void *state, void *ctx)
{
    struct context *c = ctx;
    (void)state;
    return check(n, cudnn_session_open(n->stream, &c->session), "opening the library");
}

static void convolution_ctx_close(void *ctx)
{
    struct context *c = ctx;
    if (!c)
        return;
    if (c->pack)
        cudnnBackendDestroyDescriptor(c->pack);
    cudnn_session_close(c->session);
    *c = (struct context){0};
}

/* The ids and pointers of what the problem has, in order. */
static int64_t operands(const struct convolution *s, void *const *pointers, int64_t *ids,
                        void **list)
{
    const int32_t mask =
        s->choice->problem.operands | 1 << CUDNN_X | 1 << CUDNN_W | 1 << CUDNN_Y;
    int64_t n = 0;
    for (int id = 0; id < CUDNN_OPERANDS; id++)
        if (mask & 1 << id) {
            ids[n] = id;
            list[n++] = pointers[id];
        }
    return n;
}

/* cuDNN wants a new descriptor for other pointers: made when they change alone. */
static cudnnStatus_t bind(const struct convolution *s, struct context *c,
                          void *const *pointers, void *workspace)
{
    struct cudnn_builder b = {0};
    int64_t ids[CUDNN_OPERANDS];
    void *list[CUDNN_OPERANDS];
    const int64_t n = operands(s, pointers, ids, list);
    cudnnBackendDescriptor_t d =
        cudnn_make(&b, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "tensors");
    cudnn_set(&b, d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    cudnn_set(&b, d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, list);
    cudnn_set(&b, d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
              &workspace);
    cudnn_finalize(&b, d);
    if (b.status != CUDNN_STATUS_SUCCESS) {
        cudnn_builder_clear(&b);
        return b.status;
    }
    if (c->pack)
        cudnnBackendDestroyDescriptor(c->pack);
    c->pack = d;
    c->workspace = workspace;
    memcpy(c->pointers, pointers, sizeof c->pointers);
    return CUDNN_STATUS_SUCCESS;
}

static int convolution_run(const strata_run *r)
{
    const struct convolution *s = r->state;
    struct context *c = r->ctx;
    const bool residual = r->epilogue->flags & STRATA_EPILOGUE_RESIDUAL;
    void *const pointers[CUDNN_OPERANDS] = {
        [CUDNN_X] = r->in[0].data,
        [CUDNN_W] = s->weight,
        [CUDNN_Y] = r->out[0].data,
        [CUDNN_RESIDUAL] = residual ? r->epilogue->residual->data : NULL,
        [CUDNN_BIAS] = s->bias                    ? s->bias
                       : r->weight[BIAS].rank > 0 ? r->weight[BIAS].data
                                                  : NULL,
    };
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (r->in[0].dims[0] != s->choice->problem.x.dims[0])
        return STRATA_FAIL(r, STRATA_EUNSUPPORTED,
                           "cuDNN was set up for a batch of %lld, found %lld; build for "
                           "this batch",
                           (long long)s->choice->problem.x.dims[0],
                           (long long)r->in[0].dims[0]);
    if (r->workspace_size < s->plan->workspace)
        return STRATA_FAIL(r, STRATA_EINTERNAL, "workspace has %zu bytes, needed are %zu",
                           r->workspace_size, s->plan->workspace);
    if (!c->pack || c->workspace != r->workspace ||
        memcmp(c->pointers, pointers, sizeof pointers) != 0)
        status = bind(s, c, pointers, r->workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_session_run(c->session, r->stream, s->plan, c->pack);
    return status == CUDNN_STATUS_SUCCESS
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "engine %lld (%s): cuDNN says %s",
                             (long long)s->plan->engine, s->plan->knobs,
                             cudnnGetErrorString(status));
}

/* ---- tables ------------------------------------------------------------------------ */

#define TACTIC(n_)                                                                       \
    static int accept_##n_(const strata_node *n)                                         \
    {                                                                                    \
        struct cudnn_choice *choice;                                                     \
        struct cudnn_plan *plan;                                                         \
        return choose(n, n_, &choice, &plan);                                            \
    }                                                                                    \
    static size_t workspace_##n_(const strata_node *n)                                   \
    {                                                                                    \
        return workspace_of(n, n_);                                                      \
    }                                                                                    \
    static int setup_##n_(const strata_node *n, void *state)                             \
    {                                                                                    \
        return setup_of(n, n_, state);                                                   \
    }

TACTIC(0)
TACTIC(1)
TACTIC(2)
TACTIC(3)
TACTIC(4)
TACTIC(5)
TACTIC(6)
TACTIC(7)

/* Not tanh, nor gelu_tanh that is made of it: some engines give NaN for large arguments,
 * where it is 1. */
#define KIND(kind_) (UINT64_C(1) << (kind_))
#define ACTIVATIONS                                                                      \
    (KIND(STRATA_RELU) | KIND(STRATA_LEAKY_RELU) | KIND(STRATA_RELU6) |                  \
     KIND(STRATA_SIGMOID) | KIND(STRATA_ELU) | KIND(STRATA_SOFTPLUS) |                   \
     KIND(STRATA_GELU) | KIND(STRATA_SILU) | KIND(STRATA_SWISH))

/* Every tactic is timed in every format it takes: further ones only where it pays. */
static const strata_row all_rows[] = {
    {{STRATA_F16_NHWC8 | STRATA_F16_NHWC | STRATA_F16_NCHW | STRATA_BF16_NHWC8 |
      STRATA_BF16_NHWC | STRATA_BF16_NCHW | STRATA_F32_NHWC | STRATA_F32_NCHW},
     {STRATA_SAME}},
};
static const strata_row main_rows[] = {
    {{STRATA_F16_NHWC8 | STRATA_BF16_NHWC8 | STRATA_F32_NCHW}, {STRATA_SAME}},
};

/* By its relu; its FP16 kernels give 0 where a sum is out of range. */
#define FLAGS (STRATA_WEIGHT_PACKED | STRATA_NAN_DROPPED | STRATA_OVERFLOW_DROPPED)

#define IMPL(n_, rows_, efficiency_)                                                     \
    {                                                                                    \
        .id = (n_) + 1, .device = STRATA_CUDA, .min_sm = 80, .flags = FLAGS,             \
        .epilogues = STRATA_EPILOGUE_RESIDUAL | STRATA_EPILOGUE_ACTIVATION,              \
        .name = "cudnn_" #n_, .rows = STRATA_ARRAY(rows_), .activations = ACTIVATIONS,   \
        .efficiency = (efficiency_), .state_size = sizeof(struct convolution),           \
        .ctx_size = sizeof(struct context), .accept = accept_##n_,                       \
        .workspace = workspace_##n_, .setup = setup_##n_,                                \
        .ctx_open = convolution_ctx_open, .ctx_close = convolution_ctx_close,            \
        .run = convolution_run                                                           \
    }

static const strata_impl impls[] = {
    IMPL(0, all_rows, 0.6),   IMPL(1, all_rows, 0.59),  IMPL(2, all_rows, 0.58),
    IMPL(3, all_rows, 0.57),  IMPL(4, main_rows, 0.56), IMPL(5, main_rows, 0.55),
    IMPL(6, main_rows, 0.54), IMPL(7, main_rows, 0.53),
};

static const strata_extends convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Convolution",
    .params_size = sizeof(strata_convolution),
    .impls = STRATA_ARRAY(impls),
};
static const strata_extends *const extends[] = {&convolution};
STRATA_MODULE_EXTENDS("core.cudnn", "1.0.0", "+core::Convolution", extends)
