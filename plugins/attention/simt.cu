/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention with ordinary multiplications: every option, every dtype of floats, any dim.
 * A block has 32 queries of a head, a warp four of them. It walks over tiles of 32 keys
 * and keeps maximum, sum and outputs of each query as it goes; a lane makes the scores of
 * a key and then the outputs of its columns. Scores that are asked for after the softmax
 * take a second walk.
 */
#include "plugins/attention/job.cuh"

enum {
    ROWS = 32,   /* queries of a block */
    MINE = 4,    /* of a warp */
    KEYS = 32,   /* of a tile */
    CHUNK = 64,  /* elements of K's or V's rows in shared memory at a time */
    PITCH = 68,  /* floats from one of these rows to the next */
    SLICE = 256, /* columns of V that a block makes */
};

template <typename T>
struct simt_block {
    const attention_job &job;
    attention_reach reach;
    int32_t batch, head, kv, row; /* kv: head of K and V; row: the warp's first query */
    int32_t begin[MINE], end[MINE];
    float *q, *tile, *weights; /* shared: 32 queries; a chunk of K or V; the warp's p */
    float largest[MINE], sum[MINE];

    /* Keys with a score: where that is asked for before the mask, also of those that the
     * lengths leave out, which are there. */
    __device__ inline int64_t scored() const
    {
        const int kind = job.plan.scores_kind;
        const bool before = kind == STRATA_SCORES_RAW || kind == STRATA_SCORES_SOFTCAP;
        return before && !job.plan.cache ? job.plan.keys : reach.keys;
    }

    /* One chunk of 32 keys from `key` on: element (i, e) to tile[i*PITCH + e]; zeros
     * from key `end` on. */
    __device__ inline void load(const void *past, const attention_view &past_view,
                                const void *fresh, const attention_view &view,
                                int32_t key, int64_t end, int32_t element, int64_t dim)
    {
        const int Step = CUDA_BLOCK / CHUNK;
        const int e = threadIdx.x % CHUNK, first = threadIdx.x / CHUNK;
        const T *old =
            (const T *)past + batch * past_view.batch + kv * past_view.head + element + e;
        const T *late =
            (const T *)fresh + batch * view.batch + kv * view.head + element + e;
        const bool real = element + e < dim;
        T x[KEYS / Step];
#pragma unroll
        for (int n = 0; n < KEYS / Step; n++) {
            const int32_t j = key + first + n * Step;
            x[n] = zero_element<T>();
            if (real && j < end)
                x[n] = j < reach.split ? old[j * past_view.row]
                                       : late[(j - reach.split) * view.row];
        }
        __syncthreads();
#pragma unroll
        for (int n = 0; n < KEYS / Step; n++)
            tile[(first + n * Step) * PITCH + e] = to_float(x[n]);
        __syncthreads();
    }

    /* s: of the lane's key. */
    __device__ inline void multiply(float (&s)[MINE], int32_t key)
    {
        const struct attention_plan &p = job.plan;
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int32_t pitch = (int32_t)((p.dim + CHUNK - 1) / CHUNK * CHUNK);
        for (int r = 0; r < MINE; r++)
            s[r] = 0;
        for (int32_t d = 0; d < p.dim; d += CHUNK) {
            load(job.past_k, p.past_k, job.k, p.k, key, scored(), d, p.dim);
#pragma unroll 2
            for (int e = 0; e < CHUNK; e += 4) {
                const float4 k = *(const float4 *)(tile + lane * PITCH + e);
#pragma unroll
                for (int r = 0; r < MINE; r++) {
                    const float4 x =
                        *(const float4 *)(q + (warp * MINE + r) * pitch + d + e);
                    s[r] = fmaf(x.x, k.x, s[r]);
                    s[r] = fmaf(x.y, k.y, s[r]);
                    s[r] = fmaf(x.z, k.z, s[r]);
                    s[r] = fmaf(x.w, k.w, s[r]);
                }
            }
        }
    }

    /* scores[i][j], if those of this kind are asked for and the block is to write them.
     */
    __device__ inline void put(int kind, int32_t i, int32_t j, float s) const
    {
        const attention_view &v = job.plan.scores;
        if (job.plan.scores_kind == kind && blockIdx.z == 0 && i < job.plan.length &&
            j < job.plan.keys)
            from_float((T *)job.scores + batch * v.batch + head * v.head + i * v.row + j,
                       s);
    }

    /* Scores of the lane's key as they go into the softmax. */
    __device__ inline void finish(float (&s)[MINE], int32_t key, bool write) const
    {
        const struct attention_plan &p = job.plan;
        const int32_t j = key + (int32_t)threadIdx.x % 32;
#pragma unroll
        for (int r = 0; r < MINE; r++) {
            float x = s[r] * (float)p.scale;
            if (write)
                put(STRATA_SCORES_RAW, row + r, j, x);
            if (p.softcap > 0)
                x = (float)p.softcap * tanhf(x / (float)p.softcap);
            if (write)
                put(STRATA_SCORES_SOFTCAP, row + r, j, x);
            x = row + r < p.length && j >= begin[r] && j < end[r]
                    ? attention_masked(job, x, batch, head, row + r, j)
                    : -INFINITY;
            if (write)
                put(STRATA_SCORES_MASKED, row + r, j, x);
            s[r] = x;
        }
    }

    /* Takes a tile's scores into maximum and sum; they become exponentials. */
    __device__ inline void count(float (&s)[MINE], float (&shrink)[MINE])
    {
#pragma unroll
        for (int r = 0; r < MINE; r++) {
            float most = s[r], part;
            for (int d = 16; d > 0; d /= 2)
                most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
            most = fmaxf(most, largest[r]);
            const float base = most == -INFINITY ? 0 : most;
            shrink[r] = exp2_near(LOG2_E * (largest[r] - base));
            largest[r] = most;
            part = s[r] = exp2_near(LOG2_E * (s[r] - base));
            for (int d = 16; d > 0; d /= 2)
                part += __shfl_xor_sync(0xffffffffu, part, d);
            sum[r] = fmaf(sum[r], shrink[r], part);
        }
    }

    /* o += p*V of a tile; a lane has columns 2*lane and on of each chunk. */
    template <int N>
    __device__ inline void weigh(float (&o)[MINE][N][2], const float (&s)[MINE],
                                 int32_t key, int32_t column)
    {
        const struct attention_plan &p = job.plan;
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int r = 0; r < MINE; r++)
            weights[r * KEYS + lane] = s[r];
        __syncwarp();
#pragma unroll
        for (int c = 0; c < N; c++) {
            load(job.past_v, p.past_v, job.v, p.v, key, reach.keys, column + c * CHUNK,
                 p.v_dim);
#pragma unroll 2
            for (int j = 0; j < KEYS; j += 4) {
                float4 w[MINE];
#pragma unroll
                for (int r = 0; r < MINE; r++)
                    w[r] = *(const float4 *)(weights + r * KEYS + j);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float2 v = *(const float2 *)(tile + (j + i) * PITCH + lane * 2);
#pragma unroll
                    for (int r = 0; r < MINE; r++) {
                        const float by = i == 0   ? w[r].x
                                         : i == 1 ? w[r].y
                                         : i == 2 ? w[r].z
                                                  : w[r].w;
                        o[r][c][0] = fmaf(by, v.x, o[r][c][0]);
                        o[r][c][1] = fmaf(by, v.y, o[r][c][1]);
                    }
                }
            }
        }
        __syncwarp();
    }

    /* What is there of the lane's columns, times its row's factor. */
    template <int N>
    __device__ inline void store(const float (&o)[MINE][N][2], const float (&by)[MINE],
                                 int32_t column) const
    {
        const struct attention_plan &p = job.plan;
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int r = 0; r < MINE; r++)
#pragma unroll
            for (int c = 0; c < N; c++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int32_t d = column + c * CHUNK + lane * 2 + e;
                    if (row + r < p.length && d < p.v_dim)
                        from_float((T *)job.y + batch * p.y.batch + head * p.y.head +
                                       (row + r) * p.y.row + d,
                                   o[r][c][e] * by[r]);
                }
    }
};

/* N: chunks of V's columns. */
template <typename T, int N>
static __global__ void __launch_bounds__(CUDA_BLOCK, N == 1 ? 2 : 1)
    simt_kernel(const __grid_constant__ attention_job job)
{
    extern __shared__ float shared[];
    const struct attention_plan &p = job.plan;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int32_t pitch = (int32_t)((p.dim + CHUNK - 1) / CHUNK * CHUNK);
    const uint32_t tiles = (uint32_t)((p.length + ROWS - 1) / ROWS);
    const int32_t place = (int32_t)(blockIdx.x / tiles),
                  first = (int32_t)(blockIdx.x % tiles * ROWS);
    const int32_t column = (int32_t)blockIdx.z * SLICE;
    simt_block<T> b = {job, {}};
    b.batch = place / (int32_t)p.heads;
    b.head = place % (int32_t)p.heads;
    b.kv = b.head / (int32_t)p.group;
    b.row = first + warp * MINE;
    b.reach = attention_reach_at(&p, job.lengths, b.batch);
    b.tile = shared;
    b.weights = b.tile + KEYS * PITCH + warp * MINE * KEYS;
    b.q = b.tile + KEYS * PITCH + ROWS * KEYS;
    float o[MINE][N][2] = {}, s[MINE], shrink[MINE];
    for (int32_t i = threadIdx.x; i < ROWS * pitch; i += CUDA_BLOCK) {
        const int32_t row = first + i / pitch, e = i % pitch;
        b.q[i] = row < p.length && e < p.dim
                     ? to_float(((const T *)job.q)[b.batch * p.q.batch +
                                                   b.head * p.q.head + row * p.q.row + e])
                     : 0;
    }
    for (int r = 0; r < MINE; r++) {
        int64_t begin, end;
        attention_bounds(&p, &b.reach, b.row + r, &begin, &end);
        b.begin[r] = (int32_t)begin;
        b.end[r] = (int32_t)end;
        b.largest[r] = -INFINITY;
        b.sum[r] = 0;
    }
    int64_t from = 0, to = p.keys, ignored;
    if (p.scores_kind == STRATA_SCORES_NONE) {
        attention_bounds(&p, &b.reach, first, &from, &ignored);
        attention_bounds(&p, &b.reach, min((int64_t)first + ROWS, p.length) - 1, &ignored,
                         &to);
        from = min(from, b.reach.keys) / KEYS * KEYS;
        to = min(to, b.reach.keys);
    }
    const bool twice = p.scores_kind == STRATA_SCORES_SOFTMAX;
    for (int32_t key = (int32_t)from; key < to; key += KEYS) {
        b.multiply(s, key);
        b.finish(s, key, true);
        b.count(s, shrink);
        if (twice)
            continue;
        for (int r = 0; r < MINE; r++)
#pragma unroll
            for (int c = 0; c < N; c++) {
                o[r][c][0] *= shrink[r];
                o[r][c][1] *= shrink[r];
            }
        b.template weigh<N>(o, s, key, column);
    }
    float by[MINE];
    for (int r = 0; r < MINE; r++)
        by[r] = b.sum[r] == 0 ? 0 : 1 / b.sum[r]; /* 0: all keys are masked */
    for (int32_t key = (int32_t)from; twice && key < to; key += KEYS) {
        b.multiply(s, key);
        b.finish(s, key, false);
        for (int r = 0; r < MINE; r++) {
            s[r] = by[r] == 0 ? 0 : exp2_near(LOG2_E * (s[r] - b.largest[r]));
            b.put(STRATA_SCORES_SOFTMAX, b.row + r, key + lane, s[r] * by[r]);
        }
        b.template weigh<N>(o, s, key, column);
    }
    b.template store<N>(o, by, column);
}

template <typename T, int N>
static void simt_launch(const attention_job &job, cudaStream_t stream)
{
    const struct attention_plan &p = job.plan;
    const int64_t tiles = (p.length + ROWS - 1) / ROWS;
    const int64_t pitch = (p.dim + CHUNK - 1) / CHUNK * CHUNK;
    const size_t bytes = (KEYS * PITCH + ROWS * KEYS + ROWS * (size_t)pitch) * 4;
    const dim3 grid((unsigned)(tiles * p.batch * p.heads), 1,
                    (unsigned)((p.v_dim + SLICE - 1) / SLICE));
    shared_allow((const void *)simt_kernel<T, N>, bytes);
    simt_kernel<T, N><<<grid, CUDA_BLOCK, bytes, stream>>>(job);
}

void attention_simt(const attention_job *job, cudaStream_t stream)
{
    layer_float(job->plan.q.dtype, [&](auto t) {
        typedef decltype(t) T;
        if (job->plan.v_dim <= CHUNK)
            simt_launch<T, 1>(*job, stream);
        else if (job->plan.v_dim <= 2 * CHUNK)
            simt_launch<T, 2>(*job, stream);
        else
            simt_launch<T, SLICE / CHUNK>(*job, stream);
    });
}
