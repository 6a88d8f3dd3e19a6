/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few queries over many keys, what a warp does: 16 rows of queries, 16 keys
 * at a time.
 *
 * K and V go from memory to registers as they lie, 16 bytes an access: elements of a
 * product's depth may stand in any order if they do so in both factors, and so may
 * columns of outputs until they are stored.
 */
#ifndef PLUGINS_ATTENTION_DECODE_CUH
#define PLUGINS_ATTENTION_DECODE_CUH

#include "plugins/attention/job.cuh"
#include "plugins/common/product/pair.cuh"

enum {
    WARPS = 8,
    STEP = 16, /* keys a warp takes at a time */
    TILE = 16, /* rows: queries times heads that share K and V */
};

struct decode_job {
    attention_job a;
    float *found;      /* of each tile and split: decode_part */
    uint32_t *arrived; /* blocks of each tile; 0 between launches */
    float scale;       /* times log2(e), without mask and soft cap */
    int32_t rows, row_tiles, dim, v_dim;
    int32_t left, right; /* keys that a query sees before and behind its place */
    int32_t k_row, v_row, past_k_row, past_v_row; /* distances, in elements */
    bool append;
};

enum { DECODE_FAR = 1 << 29 }; /* as good as no bound: places are below it */

/* ---- instructions ---------------------------------------------------------------------
 */

static __device__ inline void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                       uint32_t b1, __half)
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, "
        "%5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ inline void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                       uint32_t b1, __nv_bfloat16)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ inline uint4 load_piece(const void *p, bool valid)
{
    uint4 x = {};
    if (valid)
        x = __ldcs((const uint4 *)p);
    return x;
}

/* ---- a warp's part --------------------------------------------------------------------
 */

/* What a warp or a block found of a tile's rows: outputs not yet divided by the sums. */
template <int Dim>
struct decode_part {
    float o[TILE][Dim + 4], largest[TILE], sum[TILE];
};

/* Of T, Dim rounded up to whole 64; Odd: with a soft cap or a mask. Lane = 4*g + t has
 * rows g and g + 8. What stands between the wait for the kernel before and the result is
 * one instruction behind the other in a few warps, so that all addresses and bounds are
 * found before the wait, with what is taken for the length until then. */
template <typename T, int Dim, bool Odd>
struct decode_warp {
    const decode_job &job;
    const struct attention_plan &p;
    const T *past_k, *past_v, *k, *v;      /* the lane's first element of a row */
    const T *query[2], *at_k[2], *at_v[4]; /* of rows that it reads; NULL: none */
    int32_t keys_there, split, offset;     /* as in attention_reach */
    int32_t batch, kv, first, g, t;
    int32_t begin[2], end[2];
    uint32_t q[Dim / 16][4];
    uint4 keys[2][Dim / 32], values[4][Dim / 64];
    float o[Dim / 8][4], largest[2], sum[2];

    __device__ inline decode_warp(const decode_job &job, int32_t batch, int32_t kv,
                                  int32_t first)
        : job(job), p(job.a.plan), batch(batch), kv(kv), first(first)
    {
        g = threadIdx.x % 32 / 4;
        t = threadIdx.x % 4;
        past_k =
            (const T *)job.a.past_k + batch * p.past_k.batch + kv * p.past_k.head + t * 8;
        past_v =
            (const T *)job.a.past_v + batch * p.past_v.batch + kv * p.past_v.head + g * 8;
        k = (const T *)job.a.k + batch * p.k.batch + kv * p.k.head + t * 8;
        v = (const T *)job.a.v + batch * p.v.batch + kv * p.v.head + g * 8;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int32_t row = first + g + r * 8;
            query[r] = row < job.rows
                           ? (const T *)job.a.q + batch * p.q.batch +
                                 head_of(row) * p.q.head + query_of(row) * p.q.row + t * 8
                           : NULL;
        }
    }

    __device__ inline int32_t head_of(int32_t row) const
    {
        return kv * (int32_t)p.group + row % (int32_t)p.group;
    }
    __device__ inline int32_t query_of(int32_t row) const
    {
        return row / (int32_t)p.group;
    }

    /* Element `batch` of lengths, past the L1: it may change until the wait. */
    __device__ inline int32_t length() const
    {
        if (p.lengths_port < 0)
            return 0;
        const int64_t x = p.lengths_dtype == STRATA_INT32
                              ? (int64_t)__ldcg((const int32_t *)job.a.lengths + batch)
                              : (int64_t)__ldcg((const long long *)job.a.lengths + batch);
        return (int32_t)max((int64_t)0, min(x, p.keys));
    }

    /* attention_bounds, in 32 bits. */
    __device__ inline void bounds(int32_t query, int32_t *low, int32_t *high) const
    {
        const int32_t place = query + offset;
        *low = max(0, place - job.left);
        *high = max(*low, min(keys_there, place + job.right + 1));
    }

    /* What the batch row has of keys, and the rows see of them. */
    __device__ inline void place(int32_t length)
    {
        const attention_reach reach = attention_reach_of(&p, length);
        keys_there = (int32_t)reach.keys;
        split = (int32_t)reach.split;
        offset = (int32_t)reach.offset;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int32_t row = first + g + r * 8;
            begin[r] = end[r] = 0;
            if (query[r])
                bounds(query_of(row), &begin[r], &end[r]);
        }
    }

    __device__ inline void load_queries()
    {
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int c = 0; c < Dim / 32; c++) {
                const bool valid = query[r] && c * 32 + t * 8 < job.dim;
                const uint4 w = load_piece(query[r] + c * 32, valid);
                q[2 * c][r] = w.x;
                q[2 * c][2 + r] = w.y;
                q[2 * c + 1][r] = w.z;
                q[2 * c + 1][2 + r] = w.w;
            }
    }

    __device__ inline const T *row_of(const T *past, int32_t past_row, const T *fresh,
                                      int32_t row, int32_t j) const
    {
        return j >= keys_there ? NULL
               : j < split     ? past + (int64_t)j * past_row
                               : fresh + (int64_t)(j - split) * row;
    }

    /* Of 16 keys from `key` on the lane has K's rows g and g + 8, elements 8*t and on of
     * each 32; V's rows 2*t, 2*t + 1, 2*t + 8, 2*t + 9, elements 8*g and on of each 64.
     */
    __device__ inline void find(int32_t key)
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
            at_k[i] = row_of(past_k, job.past_k_row, k, job.k_row, key + g + i * 8);
#pragma unroll
        for (int i = 0; i < 4; i++)
            at_v[i] = row_of(past_v, job.past_v_row, v, job.v_row,
                             key + 2 * t + i % 2 + i / 2 * 8);
    }

    __device__ inline void load_keys()
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int c = 0; c < Dim / 32; c++)
                keys[i][c] =
                    load_piece(at_k[i] + c * 32, at_k[i] && c * 32 + t * 8 < job.dim);
    }

    __device__ inline void load_values()
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < Dim / 64; c++)
                values[i][c] =
                    load_piece(at_v[i] + c * 64, at_v[i] && c * 64 + g * 8 < job.v_dim);
    }

    __device__ inline void make_scores(float (&s)[2][4])
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            s[i][0] = s[i][1] = s[i][2] = s[i][3] = 0;
#pragma unroll
            for (int c = 0; c < Dim / 32; c++) {
                const uint4 w = keys[i][c];
                multiply(s[i], q[2 * c], w.x, w.y, T());
                multiply(s[i], q[2 * c + 1], w.z, w.w, T());
            }
        }
    }

    /* To units of exp2; what a row does not see becomes -infinity. */
    __device__ inline void finish(float (&s)[2][4], int32_t key) const
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int r = e / 2;
                const int32_t j = key + i * 8 + 2 * t + e % 2;
                const bool seen = j >= begin[r] && j < end[r];
                float x = s[i][e] * job.scale;
                if (Odd && seen)
                    x = odd(x, first + g + r * 8, j);
                s[i][e] = seen ? x : -INFINITY;
            }
    }

    __device__ inline float odd(float x, int32_t row, int32_t j) const
    {
        if (p.softcap > 0)
            x = (float)p.softcap * tanhf(x / (float)p.softcap);
        return LOG2_E * attention_masked(job.a, x, batch, head_of(row), query_of(row), j);
    }

    __device__ inline void count(float (&s)[2][4])
    {
        float shrink[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float most = fmaxf(fmaxf(s[0][2 * r], s[0][2 * r + 1]),
                               fmaxf(s[1][2 * r], s[1][2 * r + 1]));
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
            most = fmaxf(most, largest[r]);
            const float base = most == -INFINITY ? 0 : most;
            shrink[r] = exp2_near(largest[r] - base);
            largest[r] = most;
            float part = 0;
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    part += s[i][2 * r + e] = exp2_near(s[i][2 * r + e] - base);
            sum[r] = fmaf(sum[r], shrink[r], part);
        }
        if (__any_sync(0xffffffffu, shrink[0] != 1 || shrink[1] != 1)) {
#pragma unroll
            for (int i = 0; i < Dim / 8; i++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    o[i][e] *= shrink[e / 2];
        }
    }

    __device__ inline static uint32_t word(const uint4 &x, int i)
    {
        return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
    }

    __device__ inline void weigh(const float (&s)[2][4])
    {
        uint32_t w[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = pack_two(T(), s[i / 2][i % 2 * 2], s[i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int c = 0; c < Dim / 64; c++)
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const uint32_t pick = i % 2 ? 0x7632 : 0x5410;
                multiply(o[c * 8 + i], w,
                         __byte_perm(word(values[0][c], i / 2), word(values[1][c], i / 2),
                                     pick),
                         __byte_perm(word(values[2][c], i / 2), word(values[3][c], i / 2),
                                     pick),
                         T());
            }
    }

    /* Every `stride`-th 16 keys of [key, last), of which the first have been asked for.
     */
    __device__ inline void walk(int32_t key, int32_t last, int32_t stride)
    {
#pragma unroll
        for (int i = 0; i < Dim / 8; i++)
            o[i][0] = o[i][1] = o[i][2] = o[i][3] = 0;
        largest[0] = largest[1] = -INFINITY;
        sum[0] = sum[1] = 0;
        for (; key < last; key += stride) {
            float s[2][4];
            const bool more = key + stride < last;
            make_scores(s);
            if (more) {
                find(key + stride);
                load_keys();
            }
            finish(s, key);
            count(s);
            weigh(s);
            if (more)
                load_values();
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
            sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
        }
    }

    __device__ inline void store(decode_part<Dim> *to, int32_t rows) const
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = g + r * 8;
            if (row >= rows)
                continue;
            to->largest[row] = largest[r];
            to->sum[row] = sum[r];
#pragma unroll
            for (int i = 0; i < Dim / 8; i++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    to->o[row][i / 8 * 64 + (2 * t + e) * 8 + i % 8] = o[i][2 * r + e];
        }
    }
};

#endif /* PLUGINS_ATTENTION_DECODE_CUH */
