/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on Hopper's tensor cores, what a warpgroup does with its 64 queries.
 */
#ifndef PLUGINS_ATTENTION_CONSUMER_CUH
#define PLUGINS_ATTENTION_CONSUMER_CUH

#include "plugins/attention/scores.cuh"

enum { TURN = 1, GROUP = 5 }; /* named barriers: one of a warpgroup each, from there on */

/* A warpgroup's 64 queries. */
template <class C>
struct hopper_consumer {
    const hopper_job &job;
    const hopper_memory<C> &memory;
    const int group;
    uint32_t q; /* address of its rows */
    hopper_part part;
    int32_t tiles; /* of all warpgroups that share their queries */
    hopper_rows rows;
    hopper_stage<C::QStages> queries;
    hopper_stage<C::Stages> k, v;

    __device__ inline hopper_consumer(const hopper_job &job,
                                      const hopper_memory<C> &memory, int group)
        : job(job), memory(memory), group(group)
    {
    }

    /* Rows of the block before this warpgroup's. */
    __device__ inline int32_t rows_before(void) const
    {
        return C::Shared ? 0 : group * 64;
    }

    __device__ inline int32_t first_row(void) const
    {
        return part.row + rows_before() +
               (int32_t)(threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4);
    }

    __device__ inline void start_rows(void)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int32_t row = first_row() + r * 8;
            int32_t begin, end;
            hopper_bounds(job, part, row, &begin, &end);
            rows.low[r] = begin;
            rows.span[r] = row < job.plan.length ? (uint32_t)(end - begin) : 0;
            rows.largest[r] = row < job.plan.length ? -INFINITY : 0;
            rows.sum[r] = 0;
        }
    }

    /* Of a block without a ring, before its tensors are there. */
    __device__ inline void start(const hopper_part &of)
    {
        part = of;
        start_rows();
    }

    /* Warpgroups issue their products one after the other, round and round. */
    __device__ inline void await_turn(void) const
    {
        if (C::Ring && C::Groups > 1)
            named_sync(TURN + group, 256);
    }
    __device__ inline void pass_turn(void) const
    {
        if (C::Ring && C::Groups > 1)
            named_arrive(TURN + (group + 1) % C::Groups, 256);
    }

    __device__ inline void await(int value, const hopper_stage<C::Stages> &stage) const
    {
        barrier_wait(memory.full(value, stage.at), stage.parity);
    }
    __device__ inline void release(int value, hopper_stage<C::Stages> &stage) const
    {
        if (C::Ring && threadIdx.x % 32 == 0)
            barrier_arrive(memory.empty(value, stage.at));
        stage.advance();
    }

    /* Whether a mask is the same for all queries. */
    __device__ inline bool masks_rows(void) const
    {
        return C::Odd && job.mask && job.plan.mask.row == 0;
    }

    template <bool Masked>
    __device__ inline void softmax(float (&s)[C::Keys / 8][4], float (&shrink)[2],
                                   int32_t tile, const mask_row &mask)
    {
        const int32_t column = tile * C::Keys + (int32_t)(threadIdx.x % 4 * 2);
        if (C::Odd) {
            const uint32_t shared =
                memory.masks + (group * 4 + threadIdx.x % 128 / 32) * C::Keys * 4;
            if (masks_rows())
                mask.share(shared);
            finish_odd(s, job, part, rows, job.scale, first_row(), column,
                       masks_rows() ? shared : 0);
        }
        softmax_tile<C, Masked && !C::Odd>(s, rows, shrink, C::Odd ? 1 : job.scale,
                                           column);
    }

    /* Rows of V behind the last key may hold anything, also NaN, which P's zeros would
     * not hide. */
    __device__ inline void clear_unused(int32_t tile) const
    {
        const int32_t from = part.keys - tile * C::Keys;
        if (!job.lengths || from >= C::Keys)
            return;
        await(1, v);
        for (int i = from * 8 + (int)threadIdx.x % 128; i < C::Keys * 8; i += 128)
            for (int p = 0; p < C::Panels; p++)
                asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};\n" ::"r"(
                                 memory.tile(1, v.at) + p * C::Keys * PANEL_ROW + i * 16),
                             "r"(0)
                             : "memory");
        publish_shared();
        named_sync(GROUP + group, 128);
    }

    /* The scores of a tile; issues the outputs of the one before, whose P is given. */
    __device__ inline void multiply(float (&o)[C::Dim / 8][4], float (&s)[C::Keys / 8][4],
                                    const uint32_t (&p)[C::Keys / 16][4])
    {
        await(0, k);
        await_turn();
        hold(s);
        multiply_scores<C>(s, q, memory.tile(0, k.at));
        await(1, v);
        hold(o);
        multiply_outputs<C>(o, p, memory.tile(1, v.at));
        pass_turn();
        multiply_wait<1>();
        hold(s);
        release(0, k);
    }

    /* Until those outputs are there. */
    __device__ inline void await_outputs(float (&o)[C::Dim / 8][4])
    {
        multiply_wait<0>();
        hold(o);
        release(1, v);
    }

    template <bool Masked>
    __device__ inline void step(float (&o)[C::Dim / 8][4], float (&s)[C::Keys / 8][4],
                                uint32_t (&p)[C::Keys / 16][4], int32_t tile)
    {
        float shrink[2];
        mask_row mask;
        if (masks_rows())
            mask.load(job, part, tile);
        multiply(o, s, p);
        softmax<Masked>(s, shrink, tile, mask);
        await_outputs(o);
        scale_rows(o, shrink);
        round_tile<C>(p, s);
    }

    /* The same of a tile that all queries see, by the maxima of the tiles before: only
     * where a row's exponentials grow too large, or are far, is its maximum found. The
     * branch is also what keeps ptxas from awaiting the outputs before the exponentials.
     * P lies in two arrays in turns, for the product still reads one. */
    __device__ inline void step_seen(float (&o)[C::Dim / 8][4],
                                     float (&s)[C::Keys / 8][4],
                                     const uint32_t (&p)[C::Keys / 16][4],
                                     uint32_t (&next)[C::Keys / 16][4])
    {
        float shrink[2], sum[2];
        multiply(o, s, p);
        exponentials<C>(next, sum, s,
                        {exponent_near(rows.largest[0], job.scale),
                         exponent_near(rows.largest[1], job.scale)});
        const bool good = sum[0] < SUM_LIMIT && sum[1] < SUM_LIMIT &&
                          !is_far(rows.largest[0], job.scale) &&
                          !is_far(rows.largest[1], job.scale);
        const bool grown = !__all_sync(0xffffffffu, good);
        if (grown) {
            find_largest<C>(s, rows, shrink, job.scale);
            exponentials<C>(next, sum, s,
                            {exponent_below(rows.largest[0], job.scale),
                             exponent_below(rows.largest[1], job.scale)});
        }
        await_outputs(o);
        if (grown) {
            scale_rows(o, shrink);
            rows.sum[0] *= shrink[0];
            rows.sum[1] *= shrink[1];
        }
        rows.sum[0] += sum[0];
        rows.sum[1] += sum[1];
    }

    __device__ inline void walk_seen(float (&o)[C::Dim / 8][4],
                                     float (&s)[C::Keys / 8][4],
                                     uint32_t (&p)[C::Keys / 16][4], int32_t &tile)
    {
        uint32_t other[C::Keys / 16][4];
        for (; tile > part.whole; tile -= 2) {
            step_seen(o, s, p, other);
            step_seen(o, s, other, p);
        }
        if (tile == part.whole) {
            step_seen(o, s, p, other);
            copy_words(p, other);
            tile--;
        }
    }

    /* The tiles from `tile` down to the first, behind one whose P is given. */
    __device__ inline void walk_rest(float (&o)[C::Dim / 8][4],
                                     float (&s)[C::Keys / 8][4],
                                     uint32_t (&p)[C::Keys / 16][4], int32_t tile)
    {
        for (; !C::Odd && tile >= part.whole_end; tile--)
            step<true>(o, s, p, tile);
        if constexpr (C::Ring && !C::Odd)
            walk_seen(o, s, p, tile);
        else
            for (; !C::Odd && tile >= part.whole; tile--)
                step<false>(o, s, p, tile);
        for (; tile >= part.first; tile--)
            step<true>(o, s, p, tile);
    }

    /* Sums of all tiles; there is at least one. */
    __device__ inline void walk(float (&o)[C::Dim / 8][4])
    {
        float s[C::Keys / 8][4], shrink[2];
        uint32_t p[C::Keys / 16][4];
        const int32_t tile = part.last - 1;
        mask_row mask;
        if (masks_rows())
            mask.load(job, part, tile);
        await(0, k);
        hold(s);
        multiply_scores<C>(s, q, memory.tile(0, k.at));
        multiply_wait<0>();
        hold(s);
        release(0, k);
        clear_unused(tile);
        if (C::One && !C::Odd && tile >= part.whole && tile < part.whole_end)
            softmax<false>(s, shrink, tile, mask);
        else
            softmax<true>(s, shrink, tile, mask);
        round_tile<C>(p, s);
        if constexpr (!C::One)
            walk_rest(o, s, p, tile - 1);
        await(1, v);
        hold(o);
        multiply_outputs<C>(o, p, memory.tile(1, v.at));
        await_outputs(o);
    }

    /* ---- warpgroups that share their queries ---- */

    /* A warpgroup's first stage of tiles; its last ends where the next one's begins. */
    __device__ inline int32_t share_of(int of) const
    {
        return tiles * of / C::Groups;
    }

    /* This one's tiles. */
    __device__ inline void take_share(void)
    {
        tiles = part.last - part.first;
        k.at = v.at = share_of(group);
        part.first = part.last - share_of(group + 1);
        part.last -= share_of(group);
        part.whole = min(max(part.whole, part.first), part.last);
        part.whole_end = min(max(part.whole_end, part.whole), part.last);
    }

    /* What a warpgroup has, to where its first stage of tiles was: a thread's pieces of
     * 16 bytes, maxima and sums behind them. */
    __device__ inline uint32_t left_at(int of) const
    {
        return memory.tile(0, share_of(of)) + threadIdx.x % 128 * 16;
    }
    __device__ inline void leave(const float (&o)[C::Dim / 8][4]) const
    {
        const uint32_t to = left_at(group);
#pragma unroll
        for (int j = 0; j < C::Dim / 8; j++)
            store_four(to + j * 2048, o[j]);
        const float ends[4] = {rows.largest[0], rows.largest[1], rows.sum[0],
                               rows.sum[1]};
        store_four(to + C::Dim / 8 * 2048, ends);
    }

    /* Another one's to this one's. */
    __device__ inline void join(float (&o)[C::Dim / 8][4], int of)
    {
        const uint32_t from = left_at(of);
        float x[4], shrink[2], grow[2];
        load_four(x, from + C::Dim / 8 * 2048);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float most = fmaxf(rows.largest[r], x[r]);
            shrink[r] = shrink_to(most, rows.largest[r], job.scale);
            grow[r] = shrink_to(most, x[r], job.scale);
            rows.largest[r] = most;
            rows.sum[r] = fmaf(rows.sum[r], shrink[r], x[2 + r] * grow[r]);
        }
#pragma unroll
        for (int j = 0; j < C::Dim / 8; j++) {
            load_four(x, from + j * 2048);
#pragma unroll
            for (int e = 0; e < 4; e++)
                o[j][e] = fmaf(o[j][e], shrink[e / 2], x[e] * grow[e / 2]);
        }
    }

    /* All of them's to the first one's; whether this is it. */
    __device__ inline bool gather(float (&o)[C::Dim / 8][4])
    {
        const uint32_t left = memory.q_empty(0); /* nobody else has a use for it here */
        if (group > 0 && part.first < part.last) {
            named_sync(GROUP + group, 128); /* its tiles are read */
            leave(o);
        }
        barrier_arrive(left);
        if (group > 0)
            return false;
        barrier_wait(left, 0);
        for (int of = 1; of < C::Groups; of++)
            if (share_of(of) < share_of(of + 1))
                join(o, of);
        return true;
    }

    /* Through the warp's rows of Q, which nobody needs now, to whole pieces. */
    __device__ inline void store(float (&o)[C::Dim / 8][4])
    {
        const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
        const uint32_t at = q + warp * 16 * PANEL_ROW;
        float by[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float sum = quad_sum(rows.sum[r]);
            by[r] = sum == 0 ? 0 : 1 / sum; /* 0: all keys are masked */
        }
        named_sync(GROUP + group, 128);
#pragma unroll
        for (int j = 0; j < C::Dim / 8; j++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint32_t row = lane / 4 + r * 8;
                const uint32_t to = at + j / 8 * C::Rows * PANEL_ROW + row * PANEL_ROW +
                                    ((j % 8) ^ (row & 7)) * 16 + lane % 4 * 4;
                asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(to),
                             "r"(pack_two(typename C::Element(), o[j][2 * r] * by[r],
                                          o[j][2 * r + 1] * by[r]))
                             : "memory");
            }
        __syncwarp();
        const attention_view &y = job.plan.y;
        const int32_t row0 = part.row + rows_before() + (int32_t)warp * 16;
        typename C::Element *to = (typename C::Element *)job.y + part.batch * y.batch +
                                  part.head * y.head + row0 * y.row;
#pragma unroll
        for (uint32_t i = lane; i < 16 * C::Dim / 8; i += 32) {
            const uint32_t row = i / (C::Dim / 8), piece = i % (C::Dim / 8);
            const uint32_t from = at + piece / 8 * C::Rows * PANEL_ROW + row * PANEL_ROW +
                                  ((piece % 8) ^ (row & 7)) * 16;
            uint4 x;
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
                         : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                         : "r"(from)
                         : "memory");
            if (row0 + (int32_t)row < job.plan.length && piece * 8 < job.plan.v_dim)
                *(uint4 *)(to + row * y.row + piece * 8) = x;
        }
    }

    /* The next part, if there is one. */
    __device__ inline bool run(void)
    {
        float o[C::Dim / 8][4] = {};
        barrier_wait(memory.q_full(queries.at), queries.parity);
        q = memory.q + queries.at * C::QBytes + rows_before() * PANEL_ROW;
        if constexpr (C::Ring) {
            part = memory.parts[queries.at];
            if (part.batch < 0)
                return false;
            start_rows();
        }
        if constexpr (C::Shared)
            take_share();
        if (part.first < part.last)
            walk(o);
        if constexpr (C::Shared)
            if (!gather(o))
                return false;
        store(o);
        if (!C::Ring)
            return false;
        publish_shared(); /* the copy engine writes where outputs lay */
        barrier_arrive(memory.q_empty(queries.at));
        queries.advance();
        return true;
    }
};

#endif /* PLUGINS_ATTENTION_CONSUMER_CUH */
