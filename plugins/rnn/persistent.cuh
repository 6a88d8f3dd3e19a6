/* SPDX-License-Identifier: Apache-2.0
 *
 * All steps of a layer in one kernel, FP16 and BF16. A block owns PERSISTENT_UNITS hidden
 * units of a direction, all gates of them, and holds their rows of R in registers for the
 * whole sequence, as fragments of mma.m16n8k16: each of 8 warps a part of the depth. For
 * each eight rows of the batch, in turns: take h, multiply, add the warps' parts in
 * shared memory, compute the cells, give h on. Cells stay in registers, in FP32.
 *
 * Blocks meet in global memory alone, and by the data itself: each step but the first,
 * which has the initial state, has a slot of its own, filled before the launch with a NaN
 * that no conversion gives (all bits set), and a reader asks for the words until none of
 * them is that. So a step costs one way to the L2 and back, without a flag, a fence or a
 * barrier; blocks must all be resident, which a cooperative launch sees to.
 *
 * Floor of a step: a store that reaches L2 and a load that finds it, about 0.5 us; and of
 * 64 rows of 1024 units the 17 MB that 128 blocks read of h, 3 us of the L2's bandwidth.
 * Products, sums and cells are about 0.4 us for eight rows, which the way of other rows
 * hides. Predicted for 1, 8, 16 and 64 rows: 1.1, 1.2, 1.6 and 4 us; measured for 1, 16
 * and 64: 1.4, 2.4 and 11.3, for turns hide little. Hopper takes more rows by wide.cuh.
 */
#ifndef PLUGINS_RNN_PERSISTENT_CUH
#define PLUGINS_RNN_PERSISTENT_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdint.h>

#include "plugins/rnn/persistent.h"

#define PERSISTENT_WARPS 8
#define PERSISTENT_THREADS (32 * PERSISTENT_WARPS)
#define PERSISTENT_CHUNK 32 /* of the depth: two products deep, 16 bytes of a lane */
#define PERSISTENT_GRU 3    /* gates */
#define PERSISTENT_LSTM 4

/* ---- numbers ------------------------------------------------------------------------
 */

static __device__ inline float persistent_float(__half x)
{
    return __half2float(x);
}
static __device__ inline float persistent_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ inline uint16_t persistent_bits(float x, __half)
{
    return __half_as_ushort(__float2half_rn(x));
}
static __device__ inline uint16_t persistent_bits(float x, __nv_bfloat16)
{
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

static __device__ inline float persistent_sigmoid(float x)
{
    float e, y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(-1.44269504f * x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1 + e));
    return y;
}

/* From the sigmoid of 2x; near 0 by its series, as the difference would leave no digits.
 */
static __device__ inline float persistent_tanh(float x, float sigmoid)
{
    const float z = x * x;
    return z < 0.01f ? x * fmaf(z, fmaf(z, 0.13333333f, -0.33333333f), 1)
                     : fmaf(2, sigmoid, -1);
}
static __device__ inline float persistent_tanh(float x)
{
    return persistent_tanh(x, persistent_sigmoid(2 * x));
}

template <typename T>
static __device__ inline void persistent_product(float *c, const uint4 &a, uint32_t b0,
                                                 uint32_t b1);
template <>
__device__ inline void persistent_product<__half>(float *c, const uint4 &a, uint32_t b0,
                                                  uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
template <>
__device__ inline void persistent_product<__nv_bfloat16>(float *c, const uint4 &a,
                                                         uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

/* ---- what blocks give each other ------------------------------------------------------
 */

static __device__ inline uint4 persistent_ask(const void *p)
{
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p)
                 : "memory");
    return v;
}

static __device__ inline void persistent_give(void *p, uint32_t v)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/* The same of an initial state: its NaNs are none that stand for what is missing. */
static __device__ inline uint4 persistent_given(const void *p)
{
    const uint4 v = *(const uint4 *)p;
    return make_uint4(min(v.x, UINT32_MAX - 1), min(v.y, UINT32_MAX - 1),
                      min(v.z, UINT32_MAX - 1), min(v.w, UINT32_MAX - 1));
}

static __device__ inline bool persistent_there(const uint4 &v)
{
    return v.x != UINT32_MAX && v.y != UINT32_MAX && v.z != UINT32_MAX &&
           v.w != UINT32_MAX;
}

/* Where h of (row, unit) lies in a slot: chunks of the depth one after another, so that
 * what a warp asks for at once is one piece of 512 bytes. */
static __host__ __device__ inline int64_t persistent_at(int64_t batch, int64_t row,
                                                        int64_t unit)
{
    return (unit / PERSISTENT_CHUNK * batch + row) * PERSISTENT_CHUNK +
           unit % PERSISTENT_CHUNK;
}

/* Eight rows of h, a warp's part of the depth: of a lane 16 bytes of each chunk. */
template <int CHUNKS>
struct persistent_rows {
    uint4 v[CHUNKS];
    const uint4 *from; /* NULL: beyond the batch */

    static __device__ int unit_of(int chunk)
    {
        return (threadIdx.x / 32 + chunk * PERSISTENT_WARPS) * PERSISTENT_CHUNK +
               threadIdx.x % 4 * 8;
    }
    /* Of the initial state, or NULL. */
    __device__ void first(const void *h0, int row, const persistent_job &job)
    {
        const uint16_t *h = (const uint16_t *)h0 + (int64_t)row * job.hidden;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            v[c] = h0 && row < job.batch && unit_of(c) < job.hidden
                       ? persistent_given(h + unit_of(c))
                       : make_uint4(0, 0, 0, 0);
    }
    __device__ void begin(const void *slot, int row, const persistent_job &job)
    {
        const int unit = unit_of(0);
        from = row < job.batch ? (const uint4 *)((const uint16_t *)slot +
                                                 persistent_at(job.batch, row, unit))
                               : NULL;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const bool has = from && unit_of(c) < job.hidden;
            const uint32_t missing = has ? UINT32_MAX : 0;
            v[c] = make_uint4(missing, missing, missing, missing);
        }
    }
    /* What is missing. */
    __device__ void ask(const persistent_job &job)
    {
        const int64_t step =
            (int64_t)PERSISTENT_WARPS * job.batch * PERSISTENT_CHUNK * 2 / sizeof(uint4);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if (!persistent_there(v[c]))
                v[c] = persistent_ask(from + c * step);
    }
    __device__ bool there() const
    {
        bool all = true;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            all = all && persistent_there(v[c]);
        return all;
    }
    __device__ void wait(const persistent_job &job)
    {
        while (!__all_sync(~0u, there()))
            ask(job);
    }
};

/* ---- cells
 * ------------------------------------------------------------------------------
 */

/* A cell of each tile belongs to four lanes, one a gate; its state is in all of them. */
template <typename T>
struct persistent_cell {
    float h, c;
    T next; /* this gate's sum of the input at the coming step; not converted before it is
               used, which would wait for it */
    int length;
};

/* A thread's row of each tile is that of its warp; lanes are units by gates. */
template <typename T, int GATES>
struct persistent_place {
    const persistent_job &job;
    const persistent_line &line;
    int row, unit, gate; /* row: of tile 0 */
    float bias, after;   /* after: gru's, that the reset is applied to */

    __device__ persistent_place(const persistent_job &j, const persistent_line &l,
                                int first)
        : job(j), line(l), row(first + (int)threadIdx.x / 32),
          unit((int)blockIdx.x * PERSISTENT_UNITS + (int)threadIdx.x % 32 / 4),
          gate((int)threadIdx.x % 4), bias(0), after(0)
    {
        const float *b = l.bias;
        if (!b || gate >= GATES)
            return;
        const float second = b[(GATES + gate) * j.hidden + unit];
        const bool apart = GATES == PERSISTENT_GRU && gate == GATES - 1;
        bias = b[gate * j.hidden + unit] + (apart ? 0 : second);
        after = apart ? second : 0;
    }
    __device__ bool has(int tile) const
    {
        return row + tile * 8 < job.batch;
    }
    __device__ int64_t state(int tile) const
    {
        return (int64_t)(row + tile * 8) * job.hidden + unit;
    }
    __device__ void begin(persistent_cell<T> &x, int tile) const
    {
        x.h = x.c = 0;
        x.next = T();
        x.length = job.steps;
        if (!has(tile))
            return;
        if (job.lengths)
            x.length = max(0, min(job.lengths[row + tile * 8], job.steps));
        if (line.h0)
            x.h = persistent_float(((const T *)line.h0)[state(tile)]);
        if (GATES == PERSISTENT_LSTM && line.c0)
            x.c = persistent_float(((const T *)line.c0)[state(tile)]);
    }
    /* The row's own time of step i. */
    __device__ int64_t time(const persistent_cell<T> &x, int i) const
    {
        return line.backward && i < x.length ? x.length - 1 - i : i;
    }
    __device__ void prefetch(persistent_cell<T> &x, int tile, int i) const
    {
        if (has(tile) && i < x.length && gate < GATES)
            x.next =
                ((const T *)
                     line.sums)[time(x, i) * job.sums_step +
                                (row + tile * 8) * job.sums_row + gate * job.gate + unit];
    }
    /* Of two units, in the first lane of the even one. */
    __device__ uint32_t pair(float h) const
    {
        const uint32_t mine = persistent_bits(h, T());
        return mine | __shfl_down_sync(~0u, mine, 4) << 16;
    }
    __device__ bool stores(int tile) const
    {
        return has(tile) && threadIdx.x % 8 == 0;
    }
    /* h, for all blocks' step i. */
    __device__ void give(int tile, int i, uint32_t both) const
    {
        if (stores(tile))
            persistent_give((T *)line.slots + i * job.slot +
                                persistent_at(job.batch, row + tile * 8, unit),
                            both);
    }
    __device__ void put(int tile, int64_t t, uint32_t both) const
    {
        if (stores(tile))
            *(uint32_t *)((T *)line.y + t * job.y_step + (row + tile * 8) * job.y_row +
                          unit) = both;
    }
    /* r: this gate's recurrent sum. */
    __device__ void move(persistent_cell<T> &x, float r, float s, bool live) const
    {
        const int lane = threadIdx.x % 32 & ~3;
        float h, c = x.c;
        if (GATES == PERSISTENT_LSTM) {
            const bool candidate = gate == 3;
            const float sum = s + bias + r;
            const float near = persistent_sigmoid(candidate ? 2 * sum : sum);
            const float g = candidate ? persistent_tanh(sum, near) : near;
            c = __shfl_sync(~0u, g, lane + 2) * x.c +
                __shfl_sync(~0u, g, lane) * __shfl_sync(~0u, g, lane + 3);
            h = __shfl_sync(~0u, g, lane + 1) * persistent_tanh(c);
        } else if (GATES == PERSISTENT_GRU) {
            const float g = persistent_sigmoid(s + bias + r);
            const float z = __shfl_sync(~0u, g, lane);
            const float reset = __shfl_sync(~0u, g, lane + 1);
            const float n = __shfl_sync(
                ~0u, persistent_tanh(s + bias + reset * (r + after)), lane + 2);
            h = n + z * (x.h - n);
        } else {
            h = __shfl_sync(~0u, s + bias + r, lane);
            h = !job.relu ? persistent_tanh(h) : h < 0 ? 0 : h;
        }
        x.h = live ? h : x.h;
        x.c = live ? c : x.c;
    }
    __device__ void end(const persistent_cell<T> &x, int tile, int longest) const
    {
        const uint32_t h = pair(x.h), c = pair(x.c);
        if (!stores(tile))
            return;
        *(uint32_t *)((T *)line.hn + state(tile)) = h;
        if (line.cn)
            *(uint32_t *)((T *)line.cn + state(tile)) = c;
        for (int t = longest; t < job.steps; t++)
            put(tile, t, 0);
    }
};

static __device__ inline int persistent_longest(const persistent_job &job)
{
    int longest = job.lengths ? 0 : job.steps;
    for (int i = 0; i < job.batch && job.lengths; i++)
        longest = max(longest, min(__ldg(job.lengths + i), job.steps));
    return longest;
}

/* ---- the kernel
 * ------------------------------------------------------------------------
 */

#define PERSISTENT_ROW 36 /* floats: 8 units by 4 gates, so that no banks meet */
#define PERSISTENT_PART (8 * PERSISTENT_ROW)

/* Products of eight rows of h, into a warp's part: rows of units by gates. */
template <typename T, int CHUNKS, int HALVES>
static __device__ inline void
persistent_multiply(const uint4 (&weight)[CHUNKS][2][HALVES],
                    const persistent_rows<CHUNKS> &rows, float *part)
{
    const int lane = threadIdx.x % 32;
    float c[2][2][4] = {}; /* two sums each: products wait for those before them */
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; chunk++)
#pragma unroll
        for (int half = 0; half < HALVES; half++) {
            const uint4 &v = rows.v[chunk];
            persistent_product<T>(c[0][half], weight[chunk][0][half], v.x, v.y);
            persistent_product<T>(c[1][half], weight[chunk][1][half], v.z, v.w);
        }
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float4 gates;
        gates.x = c[0][0][e] + c[1][0][e];
        gates.y = c[0][0][e + 2] + c[1][0][e + 2];
        gates.z = c[0][1][e] + c[1][1][e];
        gates.w = c[0][1][e + 2] + c[1][1][e + 2];
        *(float4 *)(part + (lane % 4 * 2 + e) * PERSISTENT_ROW + lane / 4 * 4) = gates;
    }
}

template <typename T, int GATES, int CHUNKS, int TILES>
static __global__ void __launch_bounds__(PERSISTENT_THREADS, 1)
    persistent_kernel(const __grid_constant__ persistent_job job)
{
    constexpr int HALVES = GATES > 2 ? 2 : 1; /* tiles of 16 rows of R */
    __shared__ __align__(16) float parts[2][PERSISTENT_WARPS][PERSISTENT_PART];
    const persistent_line &line = job.line[blockIdx.y % job.directions];
    const int group = job.first + (int)blockIdx.y / job.directions * TILES * 8;
    const persistent_place<T, GATES> place(job, line, group);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int longest = persistent_longest(job);
    uint4 weight[CHUNKS][2][HALVES];
    persistent_cell<T> cell[TILES];
    persistent_rows<CHUNKS> rows[2];

    /* [block][warp][chunk][product][half][lane] */
    const uint4 *from =
        (const uint4 *)line.weight + lane +
        ((int64_t)blockIdx.x * PERSISTENT_WARPS + warp) * CHUNKS * 2 * HALVES * 32;
#pragma unroll
    for (int i = 0; i < CHUNKS * 2 * HALVES; i++)
        weight[i / (2 * HALVES)][i / HALVES % 2][i % HALVES] = from[i * 32];
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        place.begin(cell[tile], tile);
        place.prefetch(cell[tile], tile, 0);
    }
    rows[0].first(line.h0, group + lane / 4, job);

    for (int i = 0; i < longest; i++) {
        const T *h = (const T *)line.slots + i * job.slot;
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            /* Tiles take turns: while one is on its way the others are computed. */
            persistent_rows<CHUNKS> &at = rows[TILES > 1 ? tile % 2 : 0];
            persistent_rows<CHUNKS> &ahead = rows[TILES > 1 ? (tile + 1) % 2 : 0];
            persistent_cell<T> &x = cell[tile];
            const T input = x.next;
            place.prefetch(x, tile, i + 1);
            at.wait(job);
            if (TILES > 1 && tile + 1 < TILES && i == 0) {
                ahead.first(line.h0, group + (tile + 1) * 8 + lane / 4, job);
            } else if (TILES > 1 && (tile + 1 < TILES || i + 1 < longest)) {
                ahead.begin(tile + 1 < TILES ? h : h + job.slot,
                            group + (tile + 1) % TILES * 8 + lane / 4, job);
                ahead.ask(job);
            }
            /* Who writes a part has passed the barrier behind its last readers'. */
            auto &part = parts[TILES > 1 ? tile % 2 : i % 2];
            persistent_multiply<T, CHUNKS, HALVES>(weight, at, part[warp]);
            __syncthreads();
            float r = 0;
#pragma unroll
            for (int w = 0; w < PERSISTENT_WARPS; w++)
                r += part[w][warp * PERSISTENT_ROW + lane];
            const bool live = i < x.length;
            place.move(x, r, persistent_float(input), live);
            const uint32_t both = place.pair(x.h);
            if (i + 1 < longest)
                place.give(tile, i + 1, both);
            place.put(tile, place.time(x, i), live ? both : 0);
            if (TILES == 1)
                at.begin(h + job.slot, group + lane / 4, job);
        }
    }
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
        place.end(cell[tile], tile, longest);
}

#endif /* PLUGINS_RNN_PERSISTENT_CUH */
