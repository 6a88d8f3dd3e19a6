/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedAttention on Hopper's tensor cores: heads of multiples of 16 elements up to
 * 128, with any of what Attention has but a past. A first kernel turns V.
 */
#include "plugins/quantized_attention/float8.cuh"

#include "plugins/attention/launch.cuh"
#include "plugins/quantized_attention/float8.h"

/* ---- V turned -------------------------------------------------------------------------
 */

/* Of each head rows of `pitch` keys: those of the head's elements, ones, zeros. */
struct turn_job {
    struct attention_plan plan;
    const uint8_t *v;
    const void *lengths;
    uint8_t *to;
    int64_t pitch;
};

enum { TURN_THREADS = 256, ONE = 0x38 /* 1 in E4M3 */ };

/* The byte that stands for key `key`, or what is there where no key is: nothing that
 * a weight of 0 would not hide. */
static __device__ inline uint32_t turned_bytes(const uint32_t (&x)[4], int byte)
{
    const uint32_t select = (uint32_t)(byte | (4 + byte) << 4);
    return __byte_perm(x[0], x[1], select) & 0xffff | __byte_perm(x[2], x[3], select)
                                                          << 16;
}

/* A block turns FLOAT8_KEYS keys of a head. */
template <int Dim>
static __global__ void __launch_bounds__(TURN_THREADS)
    turn_kernel(const __grid_constant__ turn_job job)
{
    /* 16 bytes more behind each 16 keys: a warp reads 8 of these at once. */
    enum { ROW = Dim + 4, SIXTEEN = 16 * ROW + 16, Rows = Dim + FLOAT8_MORE };
    __shared__ __align__(16) uint32_t shared[FLOAT8_KEYS / 16 * SIXTEEN / 4];
    const struct attention_plan &p = job.plan;
    uint8_t *tile = (uint8_t *)shared;
    const int64_t head = blockIdx.y;
    const int64_t batch = head / p.kv_heads, key0 = (int64_t)blockIdx.x * FLOAT8_KEYS;
    wait_for_previous();
    launch_next();
    const int64_t there = attention_reach_at(&p, job.lengths, batch).keys;
    const uint8_t *from =
        job.v + batch * p.v.batch + head % p.kv_heads * p.v.head + key0 * p.v.row;
    for (int i = threadIdx.x; i < FLOAT8_KEYS * Dim / 4; i += TURN_THREADS) {
        const int key = i / (Dim / 4), d = i % (Dim / 4) * 4;
        *(uint32_t *)(tile + key / 16 * SIXTEEN + key % 16 * ROW + d) =
            key0 + key < there && d < p.v_dim
                ? *(const uint32_t *)(from + key * p.v.row + d)
                : 0;
    }
    __syncthreads();
    uint8_t *to = job.to + head * Rows * job.pitch + key0;
    for (int i = threadIdx.x; i < 8 * Dim / 4; i += TURN_THREADS) {
        const int sixteen = i % 8, d = i / 8 * 4;
        const uint8_t *at = tile + sixteen * SIXTEEN + d;
        uint32_t words[4][4]; /* of element d + e: keys of lane t of four */
#pragma unroll
        for (int t = 0; t < 4; t++) {
            uint32_t x[4];
#pragma unroll
            for (int b = 0; b < 4; b++)
                x[b] = *(const uint32_t *)(at + (b / 2 * 8 + 2 * t + b % 2) * ROW);
#pragma unroll
            for (int e = 0; e < 4; e++)
                words[e][t] = turned_bytes(x, e);
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
            *(uint4 *)(to + (d + e) * job.pitch + sixteen * 16) =
                make_uint4(words[e][0], words[e][1], words[e][2], words[e][3]);
    }
    const uint32_t ones = ONE * 0x01010101u;
    for (int i = threadIdx.x; i < FLOAT8_MORE * 8; i += TURN_THREADS) {
        const uint32_t x = i / 8 == 0 ? ones : 0;
        *(uint4 *)(to + (Dim + i / 8) * job.pitch + i % 8 * 16) = make_uint4(x, x, x, x);
    }
}

static int64_t turned_pitch(const struct attention_plan *p)
{
    return (p->keys + FLOAT8_KEYS - 1) / FLOAT8_KEYS * FLOAT8_KEYS;
}

static int tile_dim(const struct attention_plan *p)
{
    return p->dim > 64 || p->v_dim > 64 ? 128 : 64;
}

size_t quantized_attention_float8_workspace(const struct attention_plan *p)
{
    const int64_t rows = tile_dim(p) + FLOAT8_MORE, heads = p->batch * p->kv_heads;
    int64_t bytes;
    return __builtin_mul_overflow(turned_pitch(p), rows, &bytes) ||
                   __builtin_mul_overflow(bytes, heads, &bytes)
               ? SIZE_MAX
               : (size_t)bytes;
}

static cudaError_t turn(const attention_job *a, void *to, cudaStream_t stream)
{
    const struct attention_plan &p = a->plan;
    turn_job job = {};
    job.plan = p;
    job.v = (const uint8_t *)a->v;
    job.lengths = a->lengths;
    job.to = (uint8_t *)to;
    job.pitch = turned_pitch(&p);
    const dim3 grid((unsigned)(job.pitch / FLOAT8_KEYS),
                    (unsigned)(p.batch * p.kv_heads));
    launch_overlapped(tile_dim(&p) == 64 ? turn_kernel<64> : turn_kernel<128>, grid,
                      dim3(TURN_THREADS), 0, stream, job);
    return cudaGetLastError();
}

/* ---- attention ------------------------------------------------------------------------
 */

template <class C>
static __global__ void __launch_bounds__(C::Threads, 1)
    float8_kernel(const __grid_constant__ float8_job job)
{
    extern __shared__ uint8_t shared[];
    const hopper_memory<C> memory(shared);
    const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        prefetch_map(&job.q);
        prefetch_map(&job.k);
        prefetch_map(&job.v);
        memory.init();
    }
    __syncthreads();
    wait_for_previous();
    launch_next();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(C::Producer));
        if (threadIdx.x == 0)
            hopper_producer<C>(job, memory).run();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(C::Consumer));
        float8_consumer<C> consumer(job, memory, group - 1);
        if (group == C::Groups && C::Beside)
            consumer.pass_turn();
        while (consumer.run())
            ;
    }
}

template <class C>
static const hopper_launch launch_of = {
    .kernel = (const void *)float8_kernel<C>,
    .dim = C::Dim,
    .rows = C::Rows,
    .keys = C::Keys,
    .threads = C::Threads,
    .fixed = C::Fixed,
    .stage = C::StageBytes,
    .stages = C::Stages,
    .odd = C::Odd,
};

static const hopper_launch *const launches[] = {
    &launch_of<float8_tile<64, 2, 6>>,
    &launch_of<float8_tile<128, 2, 5>>,
    &launch_of<float8_tile<64, 2, 6, true>>,
    &launch_of<float8_tile<128, 2, 5, true>>,
};

static bool map_turned(CUtensorMap *map, const attention_job *a, const void *turned)
{
    const struct attention_plan &p = a->plan;
    const int64_t rows = tile_dim(&p) + FLOAT8_MORE, pitch = turned_pitch(&p);
    attention_view view = {};
    view.row = pitch;
    view.head = rows * pitch;
    view.batch = p.kv_heads * view.head;
    return map_heads(map, turned, &view, STRATA_E4M3, pitch, rows, p.kv_heads, p.batch,
                     (int32_t)rows, FLOAT8_KEYS);
}

cudaError_t quantized_attention_float8(const struct quantized_attention_job *a,
                                       void *turned, void *counters, cudaStream_t stream)
{
    const struct attention_plan &p = a->job.plan;
    const bool odd = p.mask.port >= 0 || p.softcap > 0;
    const hopper_launch *l = launches[odd * 2 + (tile_dim(&p) == 128)];
    float8_job job = {};
    fill_job(&job, &a->job, l, (uint32_t *)counters);
    job.q_scale = a->q_scale;
    job.k_scale = a->k_scale;
    job.v_scale = a->v_scale;
    job.to_scale = a->to_scale;
    job.to = p.y.dtype;
    if (!map_heads(&job.q, a->job.q, &p.q, STRATA_E4M3, p.dim, p.length, p.heads, p.batch,
                   l->rows, l->dim) ||
        !map_heads(&job.k, a->job.k, &p.k, STRATA_E4M3, p.dim, p.keys, p.kv_heads,
                   p.batch, l->keys, l->dim) ||
        !map_turned(&job.v, &a->job, turned))
        return cudaErrorNotSupported;
    const cudaError_t e = turn(&a->job, turned, stream);
    return e == cudaSuccess ? launch_job(l, &job, stream) : e;
}
