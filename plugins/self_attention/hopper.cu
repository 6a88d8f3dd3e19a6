/* SPDX-License-Identifier: Apache-2.0
 *
 * SelfAttention of FP16 and BF16 on Hopper's tensor cores: heads of 64 elements,
 * sequences of 128 tokens at most, each head of one in a block. `hopper` takes any number
 * of sequences; `hopper_pair` has two of them in a cluster, which share the head's
 * columns.
 */
#include "plugins/matrix_multiply/pack.h"
#include "plugins/self_attention/heads.cuh"
#include "plugins/self_attention/self_attention.h"

#include "plugins/common/product/tensor_map.cuh"

#define LEAST_HEADS 64 /* of all sequences, a block each: half of the multiprocessors */

/* Grid: clusters that go from unit to unit. */
template <class C>
static __global__ void __launch_bounds__(C::Threads, 1)
    self_attention_kernel(const __grid_constant__ self_job job)
{
    extern __shared__ uint8_t shared[];
    const self_memory<C> memory(shared);
    const uint32_t size = C::Pair ? 2 : 1, rank = blockIdx.x % size;
    const int32_t first = (int32_t)(blockIdx.x / size), by = (int32_t)(gridDim.x / size);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), group = warp / 4;
    self_producer<C> producer(job, memory, rank);
    if (threadIdx.x == SELF_GROUPS * 128) {
        prefetch_map(&job.b);
        prefetch_map(&job.a);
        memory.init();
        if (!C::Pair) /* else the other's barriers have to be there */
            producer.begin(first);
    }
    __syncthreads();
    if (C::Pair) {
        cluster_arrive();
        cluster_wait();
    }
    launch_next();
    if (group < SELF_GROUPS) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(C::Given));
        self_consumer<C>(job, memory, group, rank).run(first, by);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(C::Kept));
        if (threadIdx.x == SELF_GROUPS * 128) {
            if (C::Pair)
                producer.begin(first);
            producer.run(first, by);
        }
    }
}

struct self_launch {
    const void *kernel;
    int32_t pair, threads, bytes;
};

template <class C>
static const self_launch launch_of = {
    .kernel = (const void *)self_attention_kernel<C>,
    .pair = C::Pair,
    .threads = C::Threads,
    .bytes = C::Bytes,
};

/* Alone, pairs; of FP16, BF16. */
static const self_launch *const launches[2][2] = {
    {&launch_of<self_tile<__half, false>>, &launch_of<self_tile<__nv_bfloat16, false>>},
    {&launch_of<self_tile<__half, true>>, &launch_of<self_tile<__nv_bfloat16, true>>},
};

struct self_state {
    const void *weight; /* rows of the depth, one a column */
    int32_t multiprocessors;
};

/* ---- what it takes --------------------------------------------------------------------
 */

static const char *refusal(const strata_node *n, const struct attention_plan *p, int pair)
{
    const int64_t depth = n->in[0].dims[2];
    if (n->math != STRATA_MATH_TENSOR_OP)
        return "uses tensor cores; allow them with math = tensor_op";
    if (p->dim != SELF_DIM || p->kv_heads != p->heads)
        return "heads have 64 elements, and each has keys of its own";
    if (p->length > SELF_TOKENS || p->length < 1 || p->batch < 1)
        return "sequences have 1 to 128 tokens";
    if (p->softcap > 0 || !(p->scale > 0))
        return "scores have no soft cap, and a scale above 0";
    if (depth < 1 || depth % 8 != 0 || depth > INT32_MAX / 2 ||
        p->batch * p->heads > INT32_MAX / 4)
        return "depths are whole pieces of 16 bytes";
    if (p->batch * p->heads < LEAST_HEADS)
        return "its heads would leave most multiprocessors idle";
    return pair && p->batch < 2 ? "pairs are of two sequences" : NULL;
}

static int accept_as(const strata_node *n, int pair)
{
    struct attention_plan p;
    const int status = self_attention_plan(&p, n);
    if (status != STRATA_OK)
        return status;
    const char *why = refusal(n, &p, pair);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

static int setup_as(const strata_node *n, void *state, int pair)
{
    self_state *s = (self_state *)state;
    const self_launch &l = *launches[pair][n->out[0].dtype == STRATA_BF16];
    void *packed = NULL;
    int device = 0;
    const int status = matrix_weight_pack(n, 0, &packed);
    if (status != STRATA_OK)
        return status;
    s->weight = packed;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&s->multiprocessors, cudaDevAttrMultiProcessorCount,
                                   device);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(l.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 l.bytes);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "preparing a kernel: %s",
                                          cudaGetErrorString(e));
}

/* ---- running --------------------------------------------------------------------------
 */

static bool map_operands(self_job *job, const strata_run *r, const void *weight)
{
    const strata_tensor *x = &r->in[0];
    const int64_t depth = x->dims[2], heads = job->heads;
    const uint64_t rows[3] = {(uint64_t)depth, (uint64_t)job->tokens,
                              (uint64_t)job->sequences};
    const uint64_t columns[4] = {(uint64_t)depth, SELF_DIM, (uint64_t)heads, SELF_PARTS};
    const int64_t to_rows[2] = {depth, depth * job->tokens};
    const int64_t to_columns[3] = {depth, depth * SELF_DIM, depth * SELF_DIM * heads};
    const uint32_t a_box[3] = {SELF_DEPTH, SELF_TOKENS, 1};
    const uint32_t b_box[4] = {SELF_DEPTH, SELF_BOX, 1, SELF_PARTS};
    return tensor_map_boxes(&job->a, x->data, x->dtype, 3, rows, to_rows, a_box,
                            job->sequences * job->tokens * depth * 2) &&
           tensor_map_boxes(&job->b, weight, x->dtype, 4, columns, to_columns, b_box,
                            SELF_PARTS * SELF_DIM * heads * depth * 2);
}

/* Sides of the keys that a query sees, within what tokens are apart. */
static int32_t side_of(int64_t side)
{
    return side < 0 || side > SELF_TOKENS ? SELF_TOKENS : (int32_t)side;
}

static void fill(self_job *job, const strata_run *r, const struct attention_plan *p,
                 const self_launch &l)
{
    const strata_tensor *bias = &r->weight[STRATA_SELF_ATTENTION_BIAS];
    const int64_t across = l.pair ? (p->batch + 1) / 2 : p->batch;
    job->bias = bias->rank > 0 ? (const float *)bias->data : NULL;
    job->y = r->out[0].data;
    job->y_row = p->heads * SELF_DIM;
    job->y_batch = job->y_row * p->length;
    job->steps = (int32_t)((r->in[0].dims[2] + SELF_DEPTH - 1) / SELF_DEPTH);
    job->tokens = (int32_t)p->length;
    job->sequences = (int32_t)p->batch;
    job->heads = (int32_t)p->heads;
    job->units = (int32_t)(across * p->heads);
    job->across = divisor_of(across);
    job->left = side_of(p->window_left);
    job->right = p->causal ? 0 : side_of(p->window_right);
    job->open = p->length == SELF_TOKENS && job->left >= SELF_TOKENS - 1 &&
                job->right >= SELF_TOKENS - 1;
    job->scale = (float)(p->scale * 1.4426950408889634);
}

static cudaError_t launch(const self_job &job, const self_launch &l,
                          int32_t multiprocessors, cudaStream_t stream)
{
    const int32_t size = l.pair ? 2 : 1, room = multiprocessors / size;
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = (unsigned)size;
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)((job.units < room ? job.units : room) * size));
    config.blockDim = dim3((unsigned)l.threads);
    config.dynamicSmemBytes = (size_t)l.bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = size > 1 ? 2 : 1;
    void *arguments[] = {(void *)&job};
    return cudaLaunchKernelExC(&config, l.kernel, arguments);
}

static int run_as(const strata_run *r, int pair)
{
    const self_state *s = (const self_state *)r->state;
    const self_launch &l = *launches[pair][r->out[0].dtype == STRATA_BF16];
    struct attention_plan p;
    self_job job = {};
    const int status = self_attention_plan_run(&p, r);
    if (status != STRATA_OK || p.batch == 0)
        return status;
    fill(&job, r, &p, l);
    if (!map_operands(&job, r, s->weight))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these operands");
    const cudaError_t e = launch(job, l, s->multiprocessors, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel self_attention: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- the layer ------------------------------------------------------------------------
 */

#define SELF_CALLBACKS(name, pair)                                                       \
    static int name##_accept(const strata_node *n)                                       \
    {                                                                                    \
        return accept_as(n, pair);                                                       \
    }                                                                                    \
    static int name##_setup(const strata_node *n, void *state)                           \
    {                                                                                    \
        return setup_as(n, state, pair);                                                 \
    }                                                                                    \
    static int name##_run(const strata_run *r)                                           \
    {                                                                                    \
        return run_as(r, pair);                                                          \
    }
SELF_CALLBACKS(alone, 0)
SELF_CALLBACKS(paired, 1)

static const strata_row rows[] = {{{STRATA_F16_NCHW | STRATA_BF16_NCHW}, {STRATA_SAME}}};

#define SELF_IMPL(number, text, callbacks)                                               \
    {                                                                                    \
        .id = number, .device = STRATA_CUDA, .flags = STRATA_WEIGHT_PACKED,              \
        .min_sm = 90, .max_sm = 90, .name = text, .rows = STRATA_ARRAY(rows),            \
        .efficiency = 0.6, .state_size = sizeof(self_state),                             \
        .accept = callbacks##_accept, .setup = callbacks##_setup, .run = callbacks##_run \
    }
static const strata_impl impls[] = {
    SELF_IMPL(1, "hopper", alone),
    SELF_IMPL(2, "hopper_pair", paired),
};

static const strata_extends self_attention = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::SelfAttention",
    .params_size = sizeof(strata_self_attention),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&self_attention};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::SelfAttention", extends)
