/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few queries over many keys, what a lane reads, whatever its warp makes of
 * it: 16 keys of a product.
 *
 * K and V go from memory to registers as they lie, 16 bytes an access: elements of a
 * product's depth may stand in any order if they do so in both factors, and so may
 * outputs until they are stored.
 */
#ifndef PLUGINS_ATTENTION_DECODE_READER_CUH
#define PLUGINS_ATTENTION_DECODE_READER_CUH

#include "plugins/attention/job.cuh"
#include "plugins/common/product/pair.cuh"

enum {
    WARPS = 8,
    STEP = 16, /* keys of a product */
    TILE = 16, /* rows at most: queries times heads that share K and V */
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
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "l"(p));
    return x;
}

/* ---- what any lane reads --------------------------------------------------------------
 */

/* What a warp or a block found of a tile's rows: outputs not yet divided by the sums. */
template <int Dim>
struct decode_part {
    float o[TILE][Dim + 4], largest[TILE], sum[TILE];
};

/* What a block has of a tile's keys [from, last): splits blocks share them, `by` keys are
 * a step of all, and the warp's first is `key`; it has `steps`, of the next two. */
struct decode_share {
    int32_t from, last, splits, key, by, steps;
};

enum decode_kind {
    DECODE_WHOLE,  /* as many elements as there is room for */
    DECODE_PLAIN,  /* fewer */
    DECODE_UNUSUAL /* and with a soft cap or a mask */
};

/* Of T, elements of a head rounded up to Size, whole 64. Lane = 4*g + t. What stands
 * between the wait for the kernel before and the result is one instruction behind the
 * other in a few warps, so that all addresses and bounds are found before the wait, with
 * what is taken for the length until then. */
template <typename Element, int Size, decode_kind Kind>
struct decode_reader {
    typedef Element T;
    enum { Dim = Size, Whole = Kind == DECODE_WHOLE, Odd = Kind == DECODE_UNUSUAL };
    const decode_job &job;
    const struct attention_plan &p;
    const T *past_k, *past_v, *k, *v;  /* the lane's first element of a row */
    int32_t keys_there, split, offset; /* as in attention_reach */
    int32_t batch, kv, first, g, t;
    int32_t row[2]; /* whose scores the lane has; of a lane with one that twice */
    int32_t begin[2], end[2];

    __device__ inline decode_reader(const decode_job &job, int32_t batch, int32_t kv,
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
    }

    __device__ inline int32_t head_of(int32_t row) const
    {
        return kv * (int32_t)p.group + row % (int32_t)p.group;
    }
    __device__ inline int32_t query_of(int32_t row) const
    {
        return row / (int32_t)p.group;
    }

    /* The lane's first element of a row of queries; NULL: there is none. */
    __device__ inline const T *queries_of(int32_t row) const
    {
        return row < job.rows
                   ? (const T *)job.a.q + batch * p.q.batch + head_of(row) * p.q.head +
                         query_of(row) * p.q.row + t * 8
                   : NULL;
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
            begin[r] = end[r] = 0;
            if (row[r] < job.rows)
                bounds(query_of(row[r]), &begin[r], &end[r]);
        }
    }

    __device__ inline const T *row_of(const T *past, int32_t past_row, const T *fresh,
                                      int32_t row, int32_t j) const
    {
        return j < split ? past + (int64_t)j * past_row
                         : fresh + (int64_t)(j - split) * row;
    }

    /* Of 16 keys from `key` on the lane has K's rows g and g + 8, elements 8*t and on of
     * each 32; V's rows 2*t, 2*t + 1, 2*t + 8, 2*t + 9, elements 8*g and on of each 64.
     * Behind the last key that a row sees there is that one again, so that what is read
     * is there, and counts for nobody. */
    __device__ inline void find(int32_t key, int32_t last, const T *(&at_k)[2],
                                const T *(&at_v)[4]) const
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
            at_k[i] = row_of(past_k, job.past_k_row, k, job.k_row,
                             min(key + g + i * 8, last - 1));
#pragma unroll
        for (int i = 0; i < 4; i++)
            at_v[i] = row_of(past_v, job.past_v_row, v, job.v_row,
                             min(key + 2 * t + i % 2 + i / 2 * 8, last - 1));
    }

    __device__ inline void load_keys(uint4 (&to)[2][Dim / 32],
                                     const T *const (&at_k)[2]) const
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int c = 0; c < Dim / 32; c++)
                to[i][c] =
                    load_piece(at_k[i] + c * 32, Whole || c * 32 + t * 8 < job.dim);
    }

    __device__ inline void load_values(uint4 (&to)[4][Dim / 64],
                                       const T *const (&at_v)[4]) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < Dim / 64; c++)
                to[i][c] =
                    load_piece(at_v[i] + c * 64, Whole || c * 64 + g * 8 < job.v_dim);
    }

    /* Of row[r] a product with key j in units of exp2; -infinity: it is not seen. */
    __device__ inline float score(float product, int r, int32_t j) const
    {
        const bool seen = j >= begin[r] && j < end[r];
        float x = product * job.scale;
        if (Odd && seen)
            x = odd(x, row[r], j);
        return seen ? x : -INFINITY;
    }

    __device__ inline float odd(float x, int32_t row, int32_t j) const
    {
        if (p.softcap > 0)
            x = (float)p.softcap * tanhf(x / (float)p.softcap);
        return LOG2_E * attention_masked(job.a, x, batch, head_of(row), query_of(row), j);
    }

    __device__ inline static uint32_t word(const uint4 &x, int i)
    {
        return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
    }
};

#endif /* PLUGINS_ATTENTION_DECODE_READER_CUH */
