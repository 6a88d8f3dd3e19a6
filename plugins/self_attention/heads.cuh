/* SPDX-License-Identifier: Apache-2.0
 *
 * SelfAttention on Hopper's tensor cores, what a warpgroup does with 64 tokens of a
 * sequence and the columns of one head: their product, then attention. Its queries stay
 * in registers, as a thread's sums lie as the next product wants a factor; keys and
 * values go to shared memory, as halves, where both warpgroups read all of them.
 */
#ifndef PLUGINS_SELF_ATTENTION_HEADS_CUH
#define PLUGINS_SELF_ATTENTION_HEADS_CUH

#include "plugins/attention/scores.cuh"
#include "plugins/self_attention/hopper.cuh"

enum { SELF_BOTH = 1 }; /* a named barrier, of both warpgroups */

/* d = a*b + (add ? d : 0) of 64 x 128, a depth of 16: a in registers, the depth along the
 * rows of b. */
#define SELF_SCORES(type, name)                                                          \
    static __device__ inline void self_scores(                                           \
        type, float(&d)[16][4], const uint32_t(&x)[4], uint64_t y, int32_t add)          \
    {                                                                                    \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"                        \
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32." name "." name        \
                     " {" N_64 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}\n"          \
                     : O_64("+f", d)                                                     \
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y), "r"(add));    \
    }
SELF_SCORES(__half, "f16")
SELF_SCORES(__nv_bfloat16, "bf16")

/* Two to a word, held to what halves can say: an infinite key or value would make no
 * numbers of queries that do not see it. */
static __device__ inline uint32_t pack_held(__half, float x, float y)
{
    uint32_t two;
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;\n" : "=r"(two) : "f"(y), "f"(x));
    return two;
}

static __device__ inline uint32_t pack_held(__nv_bfloat16 type, float x, float y)
{
    return pack_two(type, x, y);
}

template <class C>
struct self_consumer {
    typedef typename C::Element T;
    typedef float sums[C::Columns / 8][4];
    typedef uint32_t halves[SELF_DIM / 16][4]; /* of a part: a factor of depths of 16 */
    const self_job &job;
    const self_memory<C> &memory;
    const int group;
    const uint32_t rank;
    self_stage<C> stage;

    __device__ inline self_consumer(const self_job &job, const self_memory<C> &memory,
                                    int group, uint32_t rank)
        : job(job), memory(memory), group(group), rank(rank)
    {
    }

    static __device__ inline int lane(void)
    {
        return (int)threadIdx.x % 32;
    }

    /* The warp's first token. */
    __device__ inline int32_t first_token(void) const
    {
        return group * 64 + (int32_t)threadIdx.x % 128 / 32 * 16;
    }

    __device__ inline void release(int32_t at) const
    {
        if (lane() != 0)
            return;
        barrier_arrive(memory.empty(at));
        if (C::Pair)
            barrier_arrive_at(memory.empty(at), rank ^ 1);
    }

    /* A thread's biases of the unit's columns to shared memory. */
    __device__ inline void fetch_bias(const self_place &p) const
    {
        const int c = (int)threadIdx.x;
        if (c < C::Columns)
            memory.biases[c] =
                job.bias
                    ? __ldg(job.bias + (c / SELF_DIM * job.heads + p.head) * SELF_DIM +
                            c % SELF_DIM)
                    : 0;
    }

    /* ---- queries, keys and values ---- */

    __device__ inline void multiply(sums &sum)
    {
        int32_t before = -1;
        for (int32_t step = 0; step < job.steps; step++) {
            barrier_wait(memory.full(stage.at), stage.parity);
            const uint64_t a =
                rows_descriptor<SELF_ROW>(memory.a(stage.at) + group * 64 * SELF_ROW);
            const uint64_t b = rows_descriptor<SELF_ROW>(memory.b(stage.at));
            hold(sum);
            multiply_begin();
#pragma unroll
            for (int d = 0; d < SELF_ROW / SELF_STEP; d++)
                product<T, C::Columns>::scores(sum, a + d * SELF_STEP / 16,
                                               b + d * SELF_STEP / 16, step > 0 || d > 0);
            multiply_commit();
            multiply_wait<1>();
            if (before >= 0)
                release(before);
            before = stage.at;
            stage.advance();
        }
        multiply_wait<0>();
        hold(sum);
        if (before >= 0)
            release(before);
    }

    /* Sixteen columns of a part from column 16 * d of the head on, with their bias. */
    template <int Part>
    __device__ inline void round(uint32_t (&x)[4], const sums &sum, int d) const
    {
        enum { EACH = SELF_BOX / 8 }; /* eights of a part in a box */
        const float2 *bias =
            (const float2 *)memory.biases + Part * (SELF_DIM / 2) + lane() % 4;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int eight = d * 2 + h;
            const float2 b = bias[eight * 4];
            const float(&s)[4] =
                sum[eight / EACH * (SELF_PARTS * EACH) + Part * EACH + eight % EACH];
            x[h * 2] = pack_held(T(), s[0] + b.x, s[1] + b.y);
            x[h * 2 + 1] = pack_held(T(), s[2] + b.x, s[3] + b.y);
        }
    }

    /* Where this lane's row of a matrix of 8 x 8 lies: piece 2 * d and the next one of
     * the warp's rows, which begin at `rows`. */
    static __device__ inline uint32_t piece(uint32_t rows, int d)
    {
        return rows + lane() % 16 * SELF_ROW + ((d * 2 + lane() / 16) ^ lane() % 8) * 16;
    }

    /* The queries to registers, the others to shared memory. */
    __device__ inline void place(const sums &sum, halves &q) const
    {
        const uint32_t begin = (uint32_t)first_token() * SELF_ROW;
#pragma unroll
        for (int d = 0; d < SELF_DIM / 16; d++) {
            uint32_t x[4];
            round<0>(q[d], sum, d);
            round<1>(x, sum, d);
            store_matrices(piece(memory.keys + begin, d), x);
            round<2>(x, sum, d);
            store_matrices(piece(memory.values + begin, d), x);
        }
        publish_shared();
    }

    /* ---- attention ---- */

    __device__ inline void multiply_queries(float (&s)[C::Keys / 8][4],
                                            const halves &q) const
    {
        const uint64_t b = rows_descriptor<SELF_ROW>(memory.keys);
        hold(s);
        multiply_begin();
#pragma unroll
        for (int d = 0; d < SELF_DIM / 16; d++)
            self_scores(T(), s, q[d], b + d * SELF_STEP / 16, d > 0);
        multiply_commit();
        multiply_wait<0>();
        hold(s);
    }

    /* Bounds of the keys that the thread's two tokens see. */
    __device__ inline hopper_rows start_rows(void) const
    {
        hopper_rows rows;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int32_t token = first_token() + lane() / 4 + r * 8;
            const int32_t low = min(max(token - job.left, 0), job.tokens);
            const int32_t end = max(min(token + job.right + 1, job.tokens), low);
            rows.low[r] = low;
            rows.span[r] = (uint32_t)(end - low);
            rows.largest[r] = -INFINITY;
            rows.sum[r] = 0;
        }
        return rows;
    }

    /* Scores to rounded exponentials, with each row's sum. */
    __device__ inline void soften(uint32_t (&p)[C::Keys / 16][4],
                                  float (&s)[C::Keys / 8][4], hopper_rows &rows) const
    {
        float shrink[2]; /* of what was before: nothing */
        if (!job.open)
            close_unseen(s, rows, lane() % 4 * 2);
        find_largest<C>(s, rows, shrink, job.scale);
        exponentials<C>(p, rows.sum, s,
                        {exponent_below(rows.largest[0], job.scale),
                         exponent_below(rows.largest[1], job.scale)});
    }

    __device__ inline void multiply_values(float (&o)[C::Dim / 8][4],
                                           const uint32_t (&p)[C::Keys / 16][4]) const
    {
        hold(o);
        multiply_outputs<C>(o, p, memory.values);
        multiply_wait<0>();
        hold(o);
    }

    /* Outputs through the warp's rows of shared memory to whole pieces. */
    __device__ inline void store(const float (&o)[C::Dim / 8][4], const hopper_rows &rows,
                                 const self_place &p) const
    {
        const uint32_t at = memory.outputs + (uint32_t)first_token() * SELF_ROW;
        float by[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float sum = quad_sum(rows.sum[r]);
            by[r] = sum == 0 ? 0 : reciprocal_near(sum); /* 0: it sees no key */
        }
        __syncwarp(); /* what lay there has been read */
#pragma unroll
        for (int d = 0; d < SELF_DIM / 16; d++) {
            uint32_t x[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float(&v)[4] = o[d * 2 + i / 2];
                x[i] =
                    pack_two(T(), v[i % 2 * 2] * by[i % 2], v[i % 2 * 2 + 1] * by[i % 2]);
            }
            store_matrices(piece(at, d), x);
        }
        __syncwarp();
        send(at, p);
    }

    __device__ inline void send(uint32_t from, const self_place &p) const
    {
        enum { PIECES = SELF_ROW / 16 };
        const int32_t first = first_token();
        T *to =
            (T *)job.y + p.sequence * job.y_batch + first * job.y_row + p.head * SELF_DIM;
        if (p.sequence >= job.sequences)
            return;
#pragma unroll
        for (int i = 0; i < 16 * PIECES / 32; i++) {
            const int row = i * (32 / PIECES) + lane() / PIECES, x = lane() % PIECES;
            float v[4];
            load_four(v, from + row * SELF_ROW + (x ^ row % 8) * 16);
            if (first + row < job.tokens)
                *(float4 *)(to + row * job.y_row + x * 8) =
                    make_float4(v[0], v[1], v[2], v[3]);
        }
    }

    /* A unit's. Behind the first barrier both warpgroups are done with the keys and
     * values of the unit before, and the biases of this one are there; behind the second
     * all keys and values are, and nobody reads the biases again. */
    __device__ inline void run_unit(const self_place &p)
    {
        halves q;
        {
            sums sum;
            multiply(sum);
            named_sync(SELF_BOTH, SELF_GROUPS * 128);
            place(sum, q);
        }
        named_sync(SELF_BOTH, SELF_GROUPS * 128);
        hopper_rows rows = start_rows();
        uint32_t weights[C::Keys / 16][4];
        float o[C::Dim / 8][4] = {};
        {
            float s[C::Keys / 8][4];
            multiply_queries(s, q);
            soften(weights, s, rows);
        }
        multiply_values(o, weights);
        store(o, rows, p);
    }

    __device__ inline void run(int32_t first, int32_t by)
    {
        for (int32_t unit = first; unit < job.units; unit += by) {
            const self_place p = self_place_of<C>(job, unit, rank);
            fetch_bias(p);
            if (unit == first)
                wait_for_previous(); /* who still reads what results overwrite */
            run_unit(p);
        }
    }
};

#endif /* PLUGINS_SELF_ATTENTION_HEADS_CUH */
