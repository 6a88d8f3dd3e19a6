/* SPDX-License-Identifier: Apache-2.0
 *
 * Perceptron on CUDA, in one launch: how a cluster shares the channels, pixels and
 * results, and what its shared memory holds. Weights are packed in setup.
 */
#include "plugins/perceptron/walk.cuh"

#define SHARED_MOST (200 << 10) /* bytes of a block */
#define SHARED_OURS (96 << 10)  /* of it besides weights, at most */
#define BLOCK_BYTES 4096        /* that a block of a cluster reads at least */
#define RUN_GROUPS 4            /* of channels of a pixel that a block reads, at least */
#define MOST_ROWS 8             /* with clusters of all blocks; else of half as many */

struct perceptron_state {
    perceptron_job job;
    int32_t shared; /* bytes */
    void *packed[PERCEPTRON_PRODUCTS];
};

static int refuse(const strata_node *n, const char *why)
{
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why);
}

/* ---- how a cluster shares the work ----------------------------------------------- */

static bool is_last(const strata_tensor *x)
{
    return x->format & (STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NHWC |
                        STRATA_F16_NHWC8 | STRATA_BF16_NHWC8);
}

static int size_of(const strata_tensor *x)
{
    return x->dtype == STRATA_FP32 ? 4 : 2;
}

static int64_t rounded(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Channels that are beside each other, and elements that are read at once. */
static int lanes_of(const strata_tensor *x)
{
    return is_last(x) ? 16 / size_of(x) : x->vector;
}

static int width_of(const strata_tensor *x)
{
    const int whole = 16 / size_of(x);
    return is_last(x) || perceptron_pixels(x) * x->vector % whole == 0 ? whole
                                                                       : x->vector;
}

/* The exponent of the largest power of two up to `most` with n / it >= least. */
static int32_t share(int64_t n, int64_t least, int32_t most)
{
    int32_t by = 0;
    while (2 << by <= most && n / (2 << by) >= least)
        by++;
    return by;
}

static int32_t part_of(int64_t n, int32_t shift)
{
    return (int32_t)((n + (1 << shift) - 1) >> shift);
}

static int32_t blocks_of(const strata_node *n, const perceptron_shape &s)
{
    const strata_perceptron *p = (const strata_perceptron *)n->params;
    int64_t elements = s.depth[0] * (p->mean ? perceptron_pixels(&n->in[0]) : 1);
    for (int i = 0; i < s.products; i++)
        elements += s.depth[i] * s.units[i];
    return share(elements * size_of(&n->in[0]), BLOCK_BYTES,
                 s.rows > MOST_ROWS ? PERCEPTRON_CLUSTER / 2 : PERCEPTRON_CLUSTER);
}

static void share_planes(perceptron_job *j, const strata_tensor *x)
{
    const int V = lanes_of(x), W = width_of(x);
    const int64_t pixels = perceptron_pixels(x);
    const bool last = is_last(x);
    j->channels = (int32_t)x->dims[1];
    j->groups = (int32_t)((x->dims[1] + V - 1) / V);
    j->row = x->strides[0];
    j->accesses = (int32_t)(last ? pixels : pixels * V / W);
    j->group_step = last ? V : pixels * V;
    j->access_step = !last ? W : pixels > 1 ? x->strides[x->rank - 1] : 0;
    const int32_t slices = share(j->groups, last ? RUN_GROUPS : 1, 1 << j->blocks);
    j->parts = j->blocks - slices;
    j->slice = part_of(j->groups, slices);
    j->part = part_of(j->accesses, j->parts);
    j->lanes = last ? min(j->slice, PERCEPTRON_THREADS)
                    : 1 << share(j->slice, 1, PERCEPTRON_THREADS / 32);
    j->helpers = PERCEPTRON_THREADS / j->lanes;
    j->factor = (float)(1.0 / (double)pixels);
}

static void share_product(perceptron_job *j, int i, const strata_node *n,
                          const perceptron_shape &s)
{
    const strata_perceptron_product *from =
        &((const strata_perceptron *)n->params)->product[i];
    const int E = 16 / size_of(&n->in[0]);
    const strata_activation f = {from->activation - 1, 0, from->alpha, from->beta};
    perceptron_product *p = &j->product[i];
    p->f.kind = f.kind;
    p->f.alpha = (float)strata_activation_alpha(&f);
    p->f.beta = (float)strata_activation_beta(&f);
    p->units = (int32_t)s.units[i];
    p->padded = (int32_t)rounded(s.depth[i], E);
    p->each = part_of(p->units, j->blocks);
    if (j->end == STRATA_PERCEPTRON_FACTORS && i + 1 == j->products) {
        p->each = j->slice * lanes_of(&n->in[0]);
        p->sharing = j->parts;
    }
    while (1 << p->team < 32 && E << p->team < p->padded)
        p->team++;
}

/* Places in shared memory, weights last, as far as there is room. Bytes; -1: a row does
 * not fit. */
static int64_t lay_out(perceptron_job *j, const strata_tensor *x)
{
    const int64_t width = (int64_t)j->slice * lanes_of(x);
    const int64_t rows = !j->mean ? 0 : is_last(x) ? j->helpers : j->helpers / 32;
    int64_t floats = 0, sums = rows * width;
    for (int i = 0; i < j->products; i++) {
        perceptron_product *p = &j->product[i];
        p->input = (int32_t)floats;
        floats += (int64_t)p->padded << (i == 0 ? j->parts : 0);
        p->biases = (int32_t)floats;
        floats += rounded(p->each, 4);
        sums = sums > p->each ? sums : p->each;
    }
    j->sums = (int32_t)floats;
    floats += rounded(sums, 4);
    j->result = (int32_t)floats;
    floats += rounded(j->product[j->products - 1].each, 4);
    j->tallies = (int32_t)floats;
    floats += 2 * PERCEPTRON_CLUSTER;
    int64_t bytes = floats * (int64_t)sizeof(float);
    if (bytes > SHARED_OURS)
        return -1;
    for (int i = 0; i < j->products; i++) {
        perceptron_product *p = &j->product[i];
        const int64_t needed = (int64_t)p->each * p->padded * size_of(x);
        p->staged = bytes + needed <= SHARED_MOST ? (int32_t)bytes : -1;
        bytes += p->staged >= 0 ? needed : 0;
    }
    return bytes;
}

/* Bytes of shared memory; -1: a row does not fit. */
static int64_t job_of(perceptron_job *j, const strata_node *n)
{
    const strata_perceptron *p = (const strata_perceptron *)n->params;
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    perceptron_shape s;
    *j = {};
    perceptron_shape_of(&s, p, x, n->weight);
    j->products = s.products;
    j->end = p->end;
    j->mean = p->mean;
    j->blocks = blocks_of(n, s);
    j->depth = (int32_t)s.depth[0];
    j->row = s.depth[0];
    if (p->mean)
        share_planes(j, x);
    j->y_padded = (int32_t)rounded(perceptron_units(&s), p->mean ? y->vector : 1);
    j->row_of_y = j->end == STRATA_PERCEPTRON_FACTORS ? j->row : j->y_padded;
    for (int i = 0; i < j->products; i++)
        share_product(j, i, n, s);
    return lay_out(j, x);
}

/* ---- kernels --------------------------------------------------------------------- */

typedef void (*perceptron_function)(perceptron_job);

template <typename T>
static perceptron_function function_of(const strata_perceptron *p, const strata_tensor *x)
{
    const int E = 16 / (int)sizeof(T);
    if (!p->mean)
        return perceptron_kernel<T, 1, 1>;
    const bool wide = width_of(x) == E;
    if (is_last(x))
        return perceptron_kernel<T, E, E>;
    if constexpr (sizeof(T) == 2)
        if (x->vector == 2)
            return wide ? perceptron_kernel<T, E, 2> : perceptron_kernel<T, 2, 2>;
    return wide ? perceptron_kernel<T, E, 1> : perceptron_kernel<T, 1, 1>;
}

static perceptron_function function(const void *params, const strata_tensor *x)
{
    perceptron_function f = NULL;
    layer_float(x->dtype, [&](auto t) {
        f = function_of<decltype(t)>((const strata_perceptron *)params, x);
    });
    return f;
}

static cudaLaunchConfig_t launch_of(cudaLaunchAttribute (&attributes)[2],
                                    const perceptron_job &j, int64_t rows, int32_t shared)
{
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {1u << j.blocks, 1, 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3((unsigned)(rows << j.blocks));
    config.blockDim = dim3(PERCEPTRON_THREADS);
    config.dynamicSmemBytes = (size_t)shared;
    config.attrs = attributes;
    config.numAttrs = 2;
    return config;
}

static int64_t rows_of(const void *params, const strata_tensor *x)
{
    const int64_t depth = x->dims[x->rank - 1];
    return ((const strata_perceptron *)params)->mean ? x->dims[0]
           : depth > 0                               ? x->count / depth
                                                     : 0;
}

/* ---- weights --------------------------------------------------------------------- */

/* As rows of T, a unit each, with zeros to whole pieces. */
template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    pack_kernel(T *to, const float *w, int64_t units, int64_t depth, int64_t padded,
                int turned)
{
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < units * padded;
         i += (int64_t)gridDim.x * CUDA_BLOCK) {
        const int64_t u = i / padded, k = i % padded;
        from_float(to + i, k >= depth ? 0 : turned ? w[k * units + u] : w[u * depth + k]);
    }
}

static int pack_weight(const strata_node *n, perceptron_state *s, int i)
{
    const strata_perceptron *p = (const strata_perceptron *)n->params;
    const strata_pack *host =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    const perceptron_product &product = s->job.product[i];
    const strata_tensor *w = &n->weight[perceptron_weight(i)];
    const int64_t count = (int64_t)product.units * product.padded;
    if (!host)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which this impl needs for its packed weights");
    const int status =
        host->alloc(n, (size_t)(count * size_of(&n->in[0])), &s->packed[i]);
    if (status != STRATA_OK)
        return status;
    layer_float(n->in[0].dtype, [&](auto t) {
        pack_kernel<<<layer_blocks(min(count, (int64_t)1 << 20), CUDA_BLOCK), CUDA_BLOCK,
                      0, (cudaStream_t)n->stream>>>(
            (decltype(t) *)s->packed[i], (const float *)w->data, product.units,
            w->count / product.units, product.padded, p->product[i].transposed);
    });
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing the weights: %s",
                                          cudaGetErrorString(e));
}

/* ---- the impl -------------------------------------------------------------------- */

static int check_weights(const strata_node *n, const perceptron_shape &s)
{
    int64_t count;
    for (int i = 0; i < s.products; i++) {
        if (n->weight[perceptron_weight(i)].rank != 2)
            return STRATA_FAIL(n, STRATA_EINVAL, "product %d has no weight%d", i + 1,
                               i + 1);
        if (__builtin_mul_overflow(s.depth[i], s.units[i], &count) ||
            count > INT32_MAX / 8)
            return refuse(n, "a weight has more than 2^28 elements");
    }
    return STRATA_OK;
}

/* Whether x lies inside a larger tensor. */
static bool is_inside(const strata_tensor *x)
{
    return x->strides[0] != rounded(x->dims[1], x->vector) * perceptron_pixels(x);
}

static int perceptron_accept(const strata_node *n)
{
    const strata_perceptron *p = (const strata_perceptron *)n->params;
    const strata_tensor *x = &n->in[0];
    perceptron_shape s;
    perceptron_job job;
    perceptron_shape_of(&s, p, x, n->weight);
    const int status = check_weights(n, s);
    if (status != STRATA_OK)
        return status;
    if (n->sm < 90)
        return refuse(n, "it needs clusters of blocks: compute capability 9.0");
    if (s.rows > INT32_MAX / PERCEPTRON_CLUSTER)
        return refuse(n, "it is for up to 2^27 rows");
    if (x->count > INT32_MAX)
        return refuse(n, "its input has less than 2^31 elements");
    if (p->mean && is_last(x) && x->vector == 1 && x->dims[1] % lanes_of(x) != 0)
        return refuse(n, "the channels of a pixel are whole pieces of 16 bytes");
    if (is_inside(x) && (!p->mean || p->end == STRATA_PERCEPTRON_FACTORS))
        return refuse(n, "rows, and planes that are multiplied, are dense");
    const char *why = perceptron_refuse(p, x, &n->out[0]);
    if (why)
        return refuse(n, why);
    if (job_of(&job, n) < 0)
        return refuse(n, "a row does not fit into shared memory");
    return STRATA_OK;
}

/* Clusters of as many blocks as the device can have at once. */
static int choose_cluster(const strata_node *n, perceptron_state *s)
{
    cudaLaunchAttribute attributes[2] = {};
    const void *f = (const void *)function(n->params, &n->in[0]);
    const cudaLaunchConfig_t config = launch_of(attributes, s->job, 1, s->shared);
    int clusters = 0;
    cudaError_t e =
        cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_MOST);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(f, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (e == cudaSuccess)
        e = cudaOccupancyMaxActiveClusters(&clusters, f, &config);
    if (e != cudaSuccess) {
        (void)cudaGetLastError(); /* it is told here */
        return STRATA_FAIL(n, STRATA_EDEVICE, "asking for clusters: %s",
                           cudaGetErrorString(e));
    }
    return clusters > 0 ? STRATA_OK
                        : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                                      "the device has no room for a cluster of %d blocks",
                                      1 << s->job.blocks);
}

static int perceptron_setup(const strata_node *n, void *state)
{
    perceptron_state *s = (perceptron_state *)state;
    s->shared = (int32_t)job_of(&s->job, n);
    int status = choose_cluster(n, s);
    for (int i = 0; i < s->job.products && status == STRATA_OK; i++)
        status = pack_weight(n, s, i);
    return status;
}

static int perceptron_run(const strata_run *r)
{
    const perceptron_state *s = (const perceptron_state *)r->state;
    perceptron_job job = s->job;
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config =
        launch_of(attributes, job, rows_of(r->params, &r->in[0]), s->shared);
    config.stream = layer_stream(r);
    job.x = r->in[0].data;
    job.y = r->out[0].data;
    for (int i = 0; i < job.products; i++) {
        job.product[i].weight = s->packed[i];
        job.product[i].bias = (const float *)r->weight[perceptron_bias(i)].data;
    }
    void *arguments[] = {&job};
    if (config.gridDim.x == 0)
        return STRATA_OK;
    const cudaError_t e = cudaLaunchKernelExC(
        &config, (const void *)function(r->params, &r->in[0]), arguments);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(r, STRATA_EDEVICE, "kernel perceptron: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

/* Results of one pixel may lie as a row, too. */
static const strata_row rows[] = {
    {{CUDA_FLOATS}, {STRATA_SAME}},
    {{STRATA_F16_NC2HW2 | STRATA_F16_NHWC8 | STRATA_F16_NHWC}, {STRATA_F16_NCHW}},
    {{STRATA_BF16_NHWC | STRATA_BF16_NHWC8}, {STRATA_BF16_NCHW}},
    {{STRATA_F32_NHWC}, {STRATA_F32_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED | STRATA_PITCHED_IN,
     .name = "cluster",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.01,
     .state_size = sizeof(perceptron_state),
     .accept = perceptron_accept,
     .setup = perceptron_setup,
     .run = perceptron_run,
     .bandwidth = 0.4},
};

static const strata_extends perceptron = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Perceptron",
    .params_size = sizeof(strata_perceptron),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&perceptron};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Perceptron", extends)
