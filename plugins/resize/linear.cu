/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread makes one pack of at most 16 bytes of the output: several channels of a pixel
 * where they lie side by side, else several pixels of a row. Bytes bound it: the output
 * is written once, and neighbours come from the cache after their first use.
 */
#include "kernels/layer.cuh"
#include "plugins/resize/linear.h"

/* The output as steps of a pack: spatial dims (missing ones are 1), channels in groups of
 * `lanes` that lie side by side, images. The order of steps is that of memory. */
struct resize_steps {
    resize_job job;
    divisor pixels[RESIZE_DIMS]; /* counts, the last in packs of pixels */
    divisor groups;
    int64_t group_to, group_from, image_to, image_from, to[RESIZE_DIMS];
    uint32_t channels;   /* of an image */
    bool channels_first; /* groups are outside pixels */
    uint32_t count;
    int64_t first; /* image */
};

struct resize_place {
    uint32_t pixel[RESIZE_DIMS], group, image;
};

static __device__ inline uint32_t take(uint32_t *index, const divisor &by)
{
    const uint32_t rest = divide_by(*index, by), at = *index - rest * by.d;
    *index = rest;
    return at;
}

static __device__ inline resize_place place_of(const resize_steps &s, uint32_t index)
{
    resize_place p;
    if (!s.channels_first)
        p.group = take(&index, s.groups);
    for (int d = RESIZE_DIMS - 1; d >= 0; d--)
        p.pixel[d] = take(&index, s.pixels[d]);
    if (s.channels_first)
        p.group = take(&index, s.groups);
    p.image = index;
    return p;
}

/* The last D dims of a place: its 2^D neighbours and their shares. */
template <int D>
struct resize_corners {
    uint32_t at[1 << D];
    float weight[1 << D];

    __device__ inline void begin(void)
    {
        at[0] = 0;
        weight[0] = 1;
    }

    /* Dim d, the k-th so far: the corners known till then, at the neighbours of i. */
    __device__ inline void add(const resize_entry *table, int k, uint32_t i)
    {
        const int4 word = ((const int4 *)table)[i];
        const float share = __int_as_float(word.z);
#pragma unroll
        for (int c = 0; c < 1 << k; c++) {
            at[c | 1 << k] = at[c] + (uint32_t)word.y;
            weight[c | 1 << k] = weight[c] * share;
            at[c] += (uint32_t)word.x;
            weight[c] *= 1 - share;
        }
    }
};

/* One pixel's N channels. All loads go out at once; a neighbour without a share may be
 * infinite, so it is dropped. */
template <typename T, int N, int D>
static __device__ inline void mix(const T *x, const resize_corners<D> &c, float *sum)
{
    pack<T, N> v[1 << D];
#pragma unroll
    for (int k = 0; k < 1 << D; k++)
        v[k] = *(const pack<T, N> *)(x + c.at[k]);
#pragma unroll
    for (int k = 0; k < 1 << D; k++)
#pragma unroll
        for (int i = 0; i < N; i++)
            sum[i] += c.weight[k] == 0 ? 0 : c.weight[k] * to_float(v[k].v[i]);
}

/* N channels of M pixels in D dims. */
template <typename T, int N, int M, int D>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    resize_kernel(const __grid_constant__ resize_steps s)
{
    const uint32_t index = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (index >= s.count)
        return;
    const resize_place p = place_of(s, index);
    const int64_t image = s.first + p.image;
    const T *x = (const T *)s.job.x.data + image * s.image_from + p.group * s.group_from;
    T *y = (T *)s.job.y.data + image * s.image_to + p.group * s.group_to +
           p.pixel[0] * s.to[0] + p.pixel[1] * s.to[1] +
           (int64_t)p.pixel[2] * M * s.to[2];
    pack<T, N * M> out;
    resize_corners<D> row;
    row.begin();
#pragma unroll
    for (int d = 0; d < D - 1; d++)
        row.add(s.job.table[RESIZE_DIMS - D + d], d, p.pixel[RESIZE_DIMS - D + d]);
#pragma unroll
    for (int m = 0; m < M; m++) {
        float sum[N] = {};
        resize_corners<D> c = row;
        c.add(s.job.table[RESIZE_DIMS - 1], D - 1, p.pixel[2] * M + m);
        mix<T, N, D>(x, c, sum);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const bool pad = p.group * N + i >= s.channels;
            from_float(&out.v[m * N + i], pad ? 0.0f : sum[i]);
        }
    }
    *(pack<T, N * M> *)y = out;
}

template <typename T, int N, int M, int D>
static int launch_dims(resize_steps *s, cudaStream_t stream)
{
    const int64_t each =
        (int64_t)s->groups.d * s->pixels[0].d * s->pixels[1].d * s->pixels[2].d;
    const int64_t images = s->job.y.dims[0], most = 0x7fffffff / each;
    if (most == 0)
        return cudaErrorInvalidValue;
    for (s->first = 0; s->first < images; s->first += most) {
        const int64_t n = images - s->first < most ? images - s->first : most;
        s->count = (uint32_t)(n * each);
        resize_kernel<T, N, M, D>
            <<<layer_blocks(s->count, CUDA_BLOCK), CUDA_BLOCK, 0, stream>>>(*s);
        const cudaError_t e = cudaGetLastError();
        if (e != cudaSuccess)
            return e;
    }
    return cudaSuccess;
}

template <typename T, int N, int M>
static int launch(resize_steps *s, cudaStream_t stream)
{
    switch (s->job.y.rank - 2) {
    case 1:
        return launch_dims<T, N, M, 1>(s, stream);
    case 2:
        return launch_dims<T, N, M, 2>(s, stream);
    default:
        return launch_dims<T, N, M, 3>(s, stream);
    }
}

/* Channels that lie side by side on both sides and that a pack can hold. */
static int lanes_of(const strata_tensor *x, const strata_tensor *y)
{
    const int most = y->dtype == STRATA_FP32 ? 4 : 8;
    if (y->vector_dim == 1 && y->vector > 1)
        return y->vector;
    int lanes = x->strides[1] == 1 && y->strides[1] == 1 ? most : 1;
    while (y->dims[1] % lanes)
        lanes /= 2;
    return lanes;
}

static resize_steps steps_of(const resize_job *job, int lanes, int row)
{
    const strata_tensor *x = &job->x, *y = &job->y;
    resize_steps s = {};
    s.job = *job;
    s.channels = (uint32_t)y->dims[1];
    s.image_to = y->strides[0];
    s.image_from = x->strides[0];
    for (int d = 0; d < RESIZE_DIMS; d++) {
        const int dim = y->rank - RESIZE_DIMS + d;
        s.pixels[d] = divisor_of(dim < 2 ? 1 : y->dims[dim] / (d == 2 ? row : 1));
        s.to[d] = dim < 2 ? 0 : y->strides[dim];
    }
    const int v = y->vector_dim == 1 ? y->vector : 1;
    s.groups = divisor_of((y->dims[1] + lanes - 1) / lanes);
    s.group_to = v > 1 ? y->strides[1] : lanes * y->strides[1];
    s.group_from = v > 1 ? x->strides[1] : lanes * x->strides[1];
    s.channels_first = s.group_to > s.to[2];
    return s;
}

template <typename T>
static int start(const resize_job *job, cudaStream_t stream)
{
    const strata_tensor *y = &job->y;
    const int lanes = lanes_of(&job->x, y), whole = 16 / (int)sizeof(T);
    const int64_t width = y->dims[y->rank - 1];
    const bool rows = y->strides[y->rank - 1] == lanes && lanes < whole;
    const int row = rows && width % (whole / lanes) == 0 ? whole / lanes
                    : rows && width % 2 == 0             ? 2
                                                         : 1;
    resize_steps s = steps_of(job, lanes, row);
    static const struct {
        int lanes, row;
        int (*launch)(resize_steps *, cudaStream_t);
    } instances[] = {
        {1, 1, launch<T, 1, 1>},         {1, 2, launch<T, 1, 2>},
        {1, whole, launch<T, 1, whole>}, {2, 1, launch<T, 2, 1>},
        {2, 2, launch<T, 2, 2>},         {2, whole / 2, launch<T, 2, whole / 2>},
        {4, 1, launch<T, 4, 1>},         {4, whole / 4, launch<T, 4, whole / 4>},
        {whole, 1, launch<T, whole, 1>},
    };
    for (const auto &i : instances)
        if (i.lanes == lanes && i.row == row)
            return i.launch(&s, stream);
    return cudaErrorInvalidValue;
}

extern "C" int resize_linear_start(const resize_job *job, void *stream)
{
    switch (job->y.dtype) {
    case STRATA_FP16:
        return start<__half>(job, (cudaStream_t)stream);
    case STRATA_BF16:
        return start<__nv_bfloat16>(job, (cudaStream_t)stream);
    default:
        return start<float>(job, (cudaStream_t)stream);
    }
}
