/* SPDX-License-Identifier: Apache-2.0
 *
 * NonMaxSuppression on CUDA: a block for each class of each image sorts the boxes and
 * walks down; every box it keeps strikes out all later ones that overlap it, at once. A
 * second kernel puts the classes' choices side by side.
 */
#include "kernels/layer.cuh"
#include "plugins/non_max_suppression/non_max_suppression.h"

#define THREADS 1024
#define SHARED_KEYS 4096

struct nms_job {
    const float4 *box;
    const float *score;
    uint64_t *key;   /* of every class: padded boxes; unused up to SHARED_KEYS */
    int32_t *kept;   /* of every class: most */
    int32_t *count;  /* of every class */
    uint8_t *struck; /* of every class: padded boxes, by place in the order */
    int64_t *row;    /* output */
    int32_t *total;  /* output */
    int64_t boxes, most, padded, all;
    int32_t classes, form;
    double iou, limit;
};

static __device__ inline struct nms_box box_of(const nms_job &j, int64_t image, int64_t i)
{
    const float4 v = j.box[image * j.boxes + i];
    return nms_box((double)v.x, (double)v.y, (double)v.z, (double)v.w, j.form);
}

/* Bitonic, n a power of two. */
static __device__ inline void sort(uint64_t *key, int64_t n)
{
    for (int64_t size = 2; size <= n; size *= 2)
        for (int64_t half = size / 2; half > 0; half /= 2) {
            __syncthreads();
            for (int64_t i = threadIdx.x; i < n / 2; i += THREADS) {
                const int64_t a = i / half * 2 * half + i % half, b = a + half;
                const bool rising = (a & size) == 0;
                const uint64_t x = key[a], y = key[b];
                if ((x > y) == rising) {
                    key[a] = y;
                    key[b] = x;
                }
            }
        }
    __syncthreads();
}

/* Keys of boxes above the limit, all others last; returns how many there are. */
static __device__ inline int64_t load_keys(const nms_job &j, int64_t c, uint64_t *key,
                                           int *found)
{
    if (threadIdx.x == 0)
        *found = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < j.padded; i += THREADS) {
        const float score = i < j.boxes ? j.score[c * j.boxes + i] : 0;
        const bool live = i < j.boxes && (double)score > j.limit;
        key[i] = live ? nms_key(__float_as_uint(score), i) : ~(uint64_t)0;
        j.struck[c * j.padded + i] = 0;
        if (live)
            atomicAdd(found, 1);
    }
    __syncthreads();
    return *found;
}

static __global__ void __launch_bounds__(THREADS)
    keep_kernel(const __grid_constant__ nms_job j)
{
    __shared__ uint64_t shared_key[SHARED_KEYS];
    __shared__ int found;
    const int64_t c = blockIdx.x, image = c / j.classes;
    uint64_t *key = j.padded <= SHARED_KEYS ? shared_key : j.key + c * j.padded;
    volatile uint8_t *struck = j.struck + c * j.padded;
    const int64_t n = load_keys(j, c, key, &found);
    int64_t kept = 0;
    sort(key, j.padded);
    for (int64_t i = 0; i < n && kept < j.most; i++) {
        if (struck[i])
            continue;
        const int64_t index = (int64_t)(key[i] & 0xffffffffu);
        const struct nms_box box = box_of(j, image, index);
        if (threadIdx.x == 0)
            j.kept[c * j.most + kept] = (int32_t)index;
        kept++;
        for (int64_t k = i + 1 + threadIdx.x; k < n; k += THREADS) {
            if (struck[k])
                continue;
            const struct nms_box other =
                box_of(j, image, (int64_t)(key[k] & 0xffffffffu));
            if (nms_overlap(&box, &other, j.iou))
                struck[k] = 1;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        j.count[c] = (int32_t)kept;
}

/* The rows of a class follow those of all classes before it. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    write_kernel(const __grid_constant__ nms_job j)
{
    __shared__ unsigned long long before;
    const int64_t c = blockIdx.x;
    if (threadIdx.x == 0)
        before = 0;
    __syncthreads();
    unsigned long long sum = 0;
    for (int64_t i = threadIdx.x; i < c; i += CUDA_BLOCK)
        sum += (unsigned long long)j.count[i];
    atomicAdd(&before, sum);
    __syncthreads();
    for (int64_t k = threadIdx.x; k < j.count[c]; k += CUDA_BLOCK) {
        int64_t *row = j.row + ((int64_t)before + k) * 3;
        row[0] = c / j.classes;
        row[1] = c % j.classes;
        row[2] = j.kept[c * j.most + k];
    }
    if (c == j.all - 1 && threadIdx.x == 0)
        *j.total = (int32_t)before + j.count[c];
}

static int64_t padded_of(int64_t boxes)
{
    int64_t n = 2;
    while (n < boxes)
        n *= 2;
    return n;
}

/* Keys, boxes kept, counts, marks: of every class. */
static size_t nms_workspace(const strata_node *n)
{
    const strata_non_max_suppression *p = (const strata_non_max_suppression *)n->params;
    const int64_t boxes = n->in[0].dims[1], all = n->in[1].dims[0] * n->in[1].dims[1];
    const int64_t padded = padded_of(boxes);
    size_t bytes;
    return __builtin_mul_overflow((size_t)all,
                                  (size_t)padded * (sizeof(uint64_t) + 1) +
                                      (size_t)nms_most(p, boxes) * sizeof(int32_t) +
                                      sizeof(int32_t),
                                  &bytes)
               ? SIZE_MAX
               : bytes;
}

static nms_job job_of(const strata_run *r)
{
    const strata_non_max_suppression *p = (const strata_non_max_suppression *)r->params;
    nms_job j = {};
    j.box = (const float4 *)r->in[0].data;
    j.score = (const float *)r->in[1].data;
    j.row = (int64_t *)r->out[0].data;
    j.total = (int32_t *)r->out[1].data;
    j.boxes = r->in[0].dims[1];
    j.most = nms_most(p, j.boxes);
    j.padded = padded_of(j.boxes);
    j.classes = (int32_t)r->in[1].dims[1];
    j.all = r->in[1].dims[0] * j.classes;
    j.form = p->box;
    j.iou = p->iou;
    j.limit = p->score;
    j.key = (uint64_t *)r->workspace;
    j.kept = (int32_t *)(j.key + j.all * j.padded);
    j.count = j.kept + j.all * j.most;
    j.struck = (uint8_t *)(j.count + j.all);
    return j;
}

static int nms_run(const strata_run *r)
{
    const nms_job j = job_of(r);
    const cudaError_t e = cudaMemsetAsync(
        j.row, 0xff, (size_t)r->out[0].count * sizeof(int64_t), layer_stream(r)); /* -1 */
    if (e != cudaSuccess)
        return STRATA_FAIL(r, STRATA_EDEVICE, "clearing rows: %s", cudaGetErrorString(e));
    keep_kernel<<<(unsigned)j.all, THREADS, 0, layer_stream(r)>>>(j);
    const int status = layer_launched(r, "nms_keep");
    if (status != STRATA_OK)
        return status;
    write_kernel<<<(unsigned)j.all, CUDA_BLOCK, 0, layer_stream(r)>>>(j);
    return layer_launched(r, "nms_write");
}

static int nms_accept(const strata_node *n)
{
    const int64_t all = n->in[1].dims[0] * n->in[1].dims[1];
    return all <= 0x7fffffff
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "%lld classes of images; this impl takes less than 2^31",
                             (long long)all);
}

static const strata_row rows[] = {
    {{STRATA_F32_NCHW, STRATA_F32_NCHW}, {STRATA_I64_NCHW, STRATA_I32_NCHW}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.01,
     .accept = nms_accept,
     .workspace = nms_workspace,
     .run = nms_run},
};

static const strata_extends non_max_suppression = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::NonMaxSuppression",
    .params_size = sizeof(strata_non_max_suppression),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&non_max_suppression};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::NonMaxSuppression", extends)
