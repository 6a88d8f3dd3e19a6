/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few queries over many keys, what a warp does, 16 keys a product.
 */
#ifndef PLUGINS_ATTENTION_DECODE_CUH
#define PLUGINS_ATTENTION_DECODE_CUH

#include "plugins/attention/decode_reader.cuh"

/* ---- many rows ------------------------------------------------------------------------
 */

/* Of up to 16 rows. They are rows of all products, keys and elements of outputs the
 * columns. The lane has rows g and g + 8. */
template <class Reader>
struct decode_warp : Reader {
    typedef typename Reader::T T;
    enum { Dim = Reader::Dim, Rows = 16 };
    const T *query[2], *at_k[2], *at_v[4]; /* of rows that it reads; no query: NULL */
    uint32_t q[Dim / 16][4];
    uint4 keys[2][Dim / 32], values[4][Dim / 64];
    float o[Dim / 8][4], largest[2], sum[2];
    using Reader::first, Reader::g, Reader::job, Reader::row, Reader::t, Reader::word;

    __device__ inline decode_warp(const decode_job &job, int32_t batch, int32_t kv,
                                  int32_t first)
        : Reader(job, batch, kv, first)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            row[r] = first + g + r * 8;
            query[r] = Reader::queries_of(row[r]);
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

    __device__ inline void find(int32_t key, int32_t last, int32_t)
    {
        Reader::find(key, last, at_k, at_v);
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

    __device__ inline void finish(float (&s)[2][4], int32_t key) const
    {
#pragma unroll
        for (int i = 0; i < 8; i++)
            s[i / 4][i % 4] = Reader::score(s[i / 4][i % 4], i % 4 / 2,
                                            key + i / 4 * 8 + 2 * t + i % 2);
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

    /* All steps, of which `find` has found the first. */
    __device__ inline void walk(const decode_share &share)
    {
#pragma unroll
        for (int i = 0; i < Dim / 8; i++)
            o[i][0] = o[i][1] = o[i][2] = o[i][3] = 0;
        largest[0] = largest[1] = -INFINITY;
        sum[0] = sum[1] = 0;
        if (share.steps > 0) {
            Reader::load_keys(keys, at_k);
            Reader::load_values(values, at_v);
        }
        for (int32_t key = share.key; key < share.last; key += share.by) {
            float s[2][4];
            const bool more = key + share.by < share.last;
            make_scores(s);
            if (more) {
                find(key + share.by, share.last, share.by);
                Reader::load_keys(keys, at_k);
            }
            finish(s, key);
            count(s);
            weigh(s);
            if (more)
                Reader::load_values(values, at_v);
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
            const int at = g + r * 8;
            if (at >= rows)
                continue;
            to->largest[at] = largest[r];
            to->sum[at] = sum[r];
#pragma unroll
            for (int i = 0; i < Dim / 8; i++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    to->o[at][i / 8 * 64 + (2 * t + e) * 8 + i % 8] = o[i][2 * r + e];
        }
    }
};

/* ---- few rows -------------------------------------------------------------------------
 */

/* Of up to 8 rows, as a token has that runs by itself. They are rows of the products with
 * keys, and columns of those with values, whose rows are elements of outputs: scores are
 * where the second product wants them. The lane has row g of queries and scores, and of
 * outputs rows 2*t and 2*t + 1; a warp has 32 keys at a time, all on their way together.
 */
template <class Reader>
struct decode_few : Reader {
    typedef typename Reader::T T;
    enum { Dim = Reader::Dim, Rows = 8, Steps = 2 };
    const T *query, *at_k[Steps][2], *at_v[Steps][4]; /* no query: NULL */
    uint32_t q[Dim / 16][4];
    uint4 keys[Steps][2][Dim / 32], values[Steps][4][Dim / 64];
    float o[Dim / 16][4], largest, sum;
    using Reader::first, Reader::g, Reader::job, Reader::row, Reader::t, Reader::word;

    __device__ inline decode_few(const decode_job &job, int32_t batch, int32_t kv,
                                 int32_t first)
        : Reader(job, batch, kv, first)
    {
        row[0] = row[1] = first + g;
        query = Reader::queries_of(row[0]);
    }

    /* Rows 8 to 15 of the products are none. */
    __device__ inline void load_queries()
    {
#pragma unroll
        for (int c = 0; c < Dim / 32; c++) {
            const uint4 w = load_piece(
                query + c * 32, query && (Reader::Whole || c * 32 + t * 8 < job.dim));
            q[2 * c][0] = w.x;
            q[2 * c][2] = w.y;
            q[2 * c + 1][0] = w.z;
            q[2 * c + 1][2] = w.w;
            q[2 * c][1] = q[2 * c][3] = q[2 * c + 1][1] = q[2 * c + 1][3] = 0;
        }
    }

    /* 16 keys from `key` on, and 16 from `key + stride` on. */
    __device__ inline void find(int32_t key, int32_t last, int32_t stride)
    {
#pragma unroll
        for (int h = 0; h < Steps; h++)
            Reader::find(key + h * stride, last, at_k[h], at_v[h]);
    }

    template <int N>
    __device__ inline void load()
    {
#pragma unroll
        for (int h = 0; h < N; h++)
            Reader::load_keys(keys[h], at_k[h]);
#pragma unroll
        for (int h = 0; h < N; h++)
            Reader::load_values(values[h], at_v[h]);
    }

    /* s: of keys 2*t and 2*t + 1 of each 8, `key` the first. */
    __device__ inline void make_scores(float (&s)[2][2], const uint4 (&k)[2][Dim / 32],
                                       int32_t key) const
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float d[4] = {0, 0, 0, 0};
#pragma unroll
            for (int c = 0; c < Dim / 32; c++) {
                multiply(d, q[2 * c], k[i][c].x, k[i][c].y, T());
                multiply(d, q[2 * c + 1], k[i][c].z, k[i][c].w, T());
            }
#pragma unroll
            for (int e = 0; e < 2; e++)
                s[i][e] = Reader::score(d[e], 0, key + i * 8 + 2 * t + e);
        }
    }

    /* What outputs so far shrink by. */
    template <int N>
    __device__ inline float count(float (&s)[N][2][2])
    {
        float most = -INFINITY, part = 0;
#pragma unroll
        for (int i = 0; i < N * 2; i++)
            most = fmaxf(most, fmaxf(s[i / 2][i % 2][0], s[i / 2][i % 2][1]));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        most = fmaxf(most, largest);
        const float base = most == -INFINITY ? 0 : most;
        const float shrink = exp2_near(largest - base);
        largest = most;
#pragma unroll
        for (int i = 0; i < N * 4; i++) {
            float &x = s[i / 4][i / 2 % 2][i % 2];
            part += x = exp2_near(x - base);
        }
        sum = fmaf(sum, shrink, part);
        return shrink;
    }

    __device__ inline void shrink_outputs(float by)
    {
        if (!__any_sync(0xffffffffu, by != 1))
            return;
        const float two[2] = {__shfl_sync(0xffffffffu, by, t * 8),
                              __shfl_sync(0xffffffffu, by, t * 8 + 4)};
#pragma unroll
        for (int i = 0; i < Dim / 16; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                o[i][e] *= two[e % 2];
    }

    /* Of each 64 elements of outputs o[j] has 8*g + 2*j of both rows, then the next. */
    __device__ inline void weigh(const float (&s)[2][2], const uint4 (&v)[4][Dim / 64])
    {
        const uint32_t low = pack_two(T(), s[0][0], s[0][1]),
                       high = pack_two(T(), s[1][0], s[1][1]);
#pragma unroll
        for (int i = 0; i < Dim / 16; i++) {
            const int c = i / 4, j = i % 4;
            const uint32_t x = word(v[0][c], j), y = word(v[1][c], j),
                           z = word(v[2][c], j), w = word(v[3][c], j);
            const uint32_t a[4] = {__byte_perm(x, y, 0x5410), __byte_perm(x, y, 0x7632),
                                   __byte_perm(z, w, 0x5410), __byte_perm(z, w, 0x7632)};
            multiply(o[i], a, low, high, T());
        }
    }

    /* What has been asked for of keys [key, last), N steps or one less; Empty: nothing
     * has been taken before. */
    template <int N, bool Empty>
    __device__ inline void take(int32_t key, int32_t last, int32_t stride, bool all)
    {
        float s[N][2][2];
#pragma unroll
        for (int h = 0; h < N; h++) {
            s[h][0][0] = s[h][0][1] = s[h][1][0] = s[h][1][1] = -INFINITY;
            if (h + 1 < N || all)
                make_scores(s[h], keys[h], key + h * stride);
        }
        const float by = count(s);
        if (!Empty)
            shrink_outputs(by);
#pragma unroll
        for (int h = 0; h < N; h++)
            if (h + 1 < N || all)
                weigh(s[h], values[h]);
    }

    /* The first steps, which `find` has found. */
    template <int N>
    __device__ inline void begin(const decode_share &s)
    {
        load<N>();
        take<N, true>(s.key, s.last, s.by, true);
    }

    /* One step and two have code of their own: what has one asks for no other. */
    __device__ inline void walk(const decode_share &s)
    {
#pragma unroll
        for (int i = 0; i < Dim / 16; i++)
            o[i][0] = o[i][1] = o[i][2] = o[i][3] = 0;
        largest = -INFINITY;
        sum = 0;
        if (s.steps == 1)
            begin<1>(s);
        else if (s.steps == 2)
            begin<2>(s);
#pragma unroll 1
        for (int32_t key = s.key + Steps * s.by; key < s.last; key += Steps * s.by) {
            find(key, s.last, s.by);
            load<Steps>();
            take<Steps, false>(key, s.last, s.by, key + s.by < s.last);
        }
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    }

    __device__ inline void store(decode_part<Dim> *to, int32_t rows) const
    {
        if (t == 0 && g < rows) {
            to->largest[g] = largest;
            to->sum[g] = sum;
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            if (2 * t + r >= rows)
                continue;
#pragma unroll
            for (int i = 0; i < Dim / 16; i += 2)
                *(float4 *)&to->o[2 * t + r][i / 4 * 64 + g * 8 + i % 4 * 2] =
                    make_float4(o[i][r], o[i][2 + r], o[i + 1][r], o[i + 1][2 + r]);
        }
    }
};

#endif /* PLUGINS_ATTENTION_DECODE_CUH */
