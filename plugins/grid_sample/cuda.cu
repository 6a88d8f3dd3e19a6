/* SPDX-License-Identifier: Apache-2.0
 *
 * GridSample on CUDA. A thread works out the taps of one output pixel. In channels-last
 * and blocked formats it makes a pack of at most 16 bytes of channels, and neighbouring
 * threads the pixel's other channels; in linear ones it makes several channels, and its
 * neighbours the next pixels.
 */
#include "kernels/layer.cuh"
#include "plugins/grid_sample/grid_sample.h"

#define CHANNELS 8 /* of a thread, in linear formats */

struct grid_job {
    const void *x;
    void *y;
    const float *grid;
    int64_t size[GRID_DIMS], stride[GRID_DIMS]; /* of the input; missing dims are 1 */
    int64_t image_from, image_to, group_from, group_to, pixel_to, first;
    int32_t mode, padding, align, dims;
    uint32_t channels, count;
    divisor pixels, groups; /* groups: packs, or pieces of CHANNELS channels */
    bool pixels_first;      /* the next thread has the next pixel */
};

template <typename T, int N>
static __device__ inline void add(const T *x, float weight, float *sum)
{
    if (weight == 0)
        return;
    const pack<T, N> v = *(const pack<T, N> *)x;
#pragma unroll
    for (int i = 0; i < N; i++)
        sum[i] += weight * to_float(v.v[i]);
}

/* Offsets and weights of a dim, ready to be used. */
struct grid_line {
    int64_t at[GRID_TAPS];
    float weight[GRID_TAPS];
};

static __device__ inline grid_line line_of(const grid_job &j, const float *coordinate,
                                           int d)
{
    grid_line line = {{0, 0, 0, 0}, {1, 0, 0, 0}};
    const int k = d - (GRID_DIMS - j.dims);
    if (k < 0)
        return line;
    const struct grid_taps t = grid_taps((double)coordinate[j.dims - 1 - k], j.size[d],
                                         j.mode, j.padding, j.align);
    const int taps = grid_count(j.mode);
#pragma unroll
    for (int i = 0; i < GRID_TAPS; i++)
        if (i < taps) {
            line.at[i] = t.index[i] < 0 ? 0 : t.index[i] * j.stride[d];
            line.weight[i] = t.index[i] < 0 ? 0 : (float)t.weight[i];
        }
    return line;
}

template <typename T, int N>
static __device__ inline void sample(const grid_job &j, const T *x, const grid_line *line,
                                     int taps, float *sum)
{
    const int outer = j.dims == GRID_DIMS ? taps : 1;
    for (int a = 0; a < outer; a++)
        for (int b = 0; b < taps; b++)
            for (int c = 0; c < taps; c++)
                add<T, N>(x + line[0].at[a] + line[1].at[b] + line[2].at[c],
                          line[0].weight[a] * line[1].weight[b] * line[2].weight[c], sum);
}

template <typename T, int N>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    grid_kernel(const __grid_constant__ grid_job j)
{
    uint32_t index = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (index >= j.count)
        return;
    const divisor &inner = j.pixels_first ? j.pixels : j.groups,
                  &outer = j.pixels_first ? j.groups : j.pixels;
    const uint32_t middle = divide_by(index, inner), low = index - middle * inner.d;
    const uint32_t image_local = divide_by(middle, outer),
                   high = middle - image_local * outer.d;
    const uint32_t pixel = j.pixels_first ? low : high,
                   group = j.pixels_first ? high : low;
    const int64_t image = j.first + image_local;
    const float *coordinate = j.grid + (image * j.pixels.d + pixel) * j.dims;
    const int taps = grid_count(j.mode);
    grid_line line[GRID_DIMS];
#pragma unroll
    for (int d = 0; d < GRID_DIMS; d++)
        line[d] = line_of(j, coordinate, d);
    const int pieces = j.pixels_first ? CHANNELS : 1;
    for (int k = 0; k < pieces; k++) {
        const uint32_t at = group * pieces + k, channel = at * N;
        if (j.pixels_first && channel >= j.channels)
            break;
        float sum[N] = {};
        sample<T, N>(j, (const T *)j.x + image * j.image_from + at * j.group_from, line,
                     taps, sum);
        pack<T, N> out;
#pragma unroll
        for (int i = 0; i < N; i++)
            from_float(&out.v[i], channel + i < j.channels ? sum[i] : 0.0f);
        *(pack<T, N> *)((T *)j.y + image * j.image_to + at * j.group_to +
                        pixel * j.pixel_to) = out;
    }
}

template <typename T, int N>
static int launch(const strata_run *r, grid_job *j)
{
    const int64_t images = r->out[0].dims[0];
    const int64_t each = (int64_t)j->pixels.d * j->groups.d;
    if (each > 0x7fffffff)
        return STRATA_FAIL(r, STRATA_EUNSUPPORTED, "an image of %lld threads",
                           (long long)each);
    const int64_t most = 0x7fffffff / each;
    int status = STRATA_OK;
    for (j->first = 0; j->first < images && status == STRATA_OK; j->first += most) {
        const int64_t n = images - j->first < most ? images - j->first : most;
        j->count = (uint32_t)(n * each);
        grid_kernel<T, N>
            <<<layer_blocks(j->count, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(*j);
        status = layer_launched(r, "grid_sample");
    }
    return status;
}

static grid_job job_of(const strata_run *r, int lanes)
{
    const strata_grid_sample *p = (const strata_grid_sample *)r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const bool vectored = y->vector_dim == 1 && y->vector > 1;
    grid_job j = {};
    j.x = x->data;
    j.y = y->data;
    j.grid = (const float *)r->in[1].data;
    j.mode = p->mode;
    j.padding = p->padding;
    j.align = p->align_corners;
    j.dims = x->rank - 2;
    for (int d = 0; d < GRID_DIMS; d++) {
        const int dim = x->rank - GRID_DIMS + d;
        j.size[d] = dim < 2 ? 1 : x->dims[dim];
        j.stride[d] = dim < 2 ? 0 : x->strides[dim];
    }
    j.image_from = x->strides[0];
    j.image_to = y->strides[0];
    j.group_from = vectored ? x->strides[1] : lanes * x->strides[1];
    j.group_to = vectored ? y->strides[1] : lanes * y->strides[1];
    j.pixel_to = y->strides[y->rank - 1];
    j.channels = (uint32_t)y->dims[1];
    j.pixels = divisor_of(index_count(y, 2, y->rank));
    j.pixels_first = j.group_to > j.pixel_to || y->dims[1] == 1;
    const int64_t packs = (y->dims[1] + lanes - 1) / lanes;
    j.groups = divisor_of(j.pixels_first ? (packs + CHANNELS - 1) / CHANNELS : packs);
    return j;
}

/* Channels that a pack can hold. */
static int lanes_of(const strata_tensor *x, const strata_tensor *y)
{
    int lanes = x->strides[1] == 1 && y->strides[1] == 1
                    ? (y->dtype == STRATA_FP32 ? 4 : 8)
                    : 1;
    if (y->vector_dim == 1 && y->vector > 1)
        return y->vector;
    while (y->dims[1] % lanes)
        lanes /= 2;
    return lanes;
}

template <typename T>
static int run_typed(const strata_run *r)
{
    const int lanes = lanes_of(&r->in[0], &r->out[0]);
    grid_job j = job_of(r, lanes);
    switch (lanes) {
    case 1:
        return launch<T, 1>(r, &j);
    case 2:
        return launch<T, 2>(r, &j);
    case 4:
        return launch<T, 4>(r, &j);
    default:
        return launch<T, 16 / sizeof(T)>(r, &j);
    }
}

static int grid_run(const strata_run *r)
{
    switch (r->out[0].dtype) {
    case STRATA_FP16:
        return run_typed<__half>(r);
    case STRATA_BF16:
        return run_typed<__nv_bfloat16>(r);
    default:
        return run_typed<float>(r);
    }
}

static int grid_accept(const strata_node *n)
{
    const int64_t pixels = index_count(&n->out[0], 2, n->out[0].rank);
    return pixels <= 0x7fffffff
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "an image has %lld pixels; this impl takes less than 2^31",
                             (long long)pixels);
}

static const strata_row rows[] = {
    {{STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NCHW |
          STRATA_BF16_NHWC | STRATA_BF16_NHWC8,
      STRATA_F32_NCHW},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = grid_accept,
     .run = grid_run,
     .bandwidth = 0.5},
};

static const strata_extends grid_sample = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::GridSample",
    .params_size = sizeof(strata_grid_sample),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&grid_sample};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::GridSample", extends)
