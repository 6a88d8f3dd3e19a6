/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes with weights that stay in shared memory: the kernel.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_RESIDENT_KERNEL_CUH
#define PLUGINS_COMMON_QUANTIZED_RESIDENT_KERNEL_CUH

#include "plugins/common/quantized/resident_memory.cuh"

/* A descriptor whose groups of eight rows are `group` bytes apart, of the address and
 * what else its lower half has. */
template <int Row>
static __device__ inline uint64_t resident_descriptor(uint32_t low, uint32_t group)
{
    const uint64_t between = UINT64_C(0x3fff) << 32;
    return (rows_descriptor<Row>(0) & UINT64_C(0xffffffff00000000) & ~between) |
           (uint64_t)(group >> 4) << 32 | low;
}

/* The lower half, in which units of 16 bytes are counted. */
template <int Row>
static __device__ inline uint32_t resident_low(uint32_t address)
{
    return (uint32_t)rows_descriptor<Row>(address);
}

/* 16 bytes to shared memory, for this thread. */
static __device__ inline void resident_copy(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from)
                 : "memory");
}

static __device__ inline uint4 resident_read(uint32_t from)
{
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(from)
                 : "memory");
    return x;
}

/* Ends a group of such. */
static __device__ inline void resident_commit(void)
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/* Until at most N groups have not come. */
template <int N>
static __device__ inline void resident_copied(void)
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

/* A warp's sums in doubt once more, as the definition says, a lane each. */
static __device__ __noinline__ void
resident_settle(const resident_job *job, const resident_doubt *doubts, int many)
{
    __syncwarp(); /* what was put aside, and stored before */
    if ((int)threadIdx.x % 32 < many) {
        const resident_doubt &d = doubts[threadIdx.x % 32];
        const uint32_t addend = job->addend ? *(const uint32_t *)(d.to + job->beside) : 0;
        *(uint32_t *)d.to = quantized_four(job, d.sums, d.column, addend) &
                            first_bytes(job->real - d.column);
    }
    __syncwarp();
}

/* ---- a warpgroup ----------------------------------------------------------------- */

/* Of a unit, where a thread's first results go, and rows from there to the end: its
 * second one is the eighth after it. */
struct resident_rows {
    uint8_t *to;
    int32_t left;

    __device__ inline bool has(int r) const
    {
        return left > r * RESIDENT_SIDE;
    }
};

template <class C>
struct resident_warpgroup {
    typedef int32_t sums[8][4];
    const resident_job &job;
    const resident_memory<C> &memory;
    const int across, down; /* its place among the block's */
    const int32_t column;   /* of the thread's first result */
    const int row;          /* of the first of its two rows of a tile's 64 */
    uint32_t a, b;          /* of its pixels and weights: descriptors' lower halves */
    uint32_t addends;       /* the thread's of the unit that is next */
    uint32_t halves;        /* QUICK_HALVES */
    int thread;
    int aside = 0; /* words in doubt, of the warp */
    resident_stage stage;
    resident_producer<C> producer;

    __device__ inline resident_warpgroup(const resident_job &job,
                                         const resident_memory<C> &memory, int group,
                                         int32_t unit, int32_t column)
        : job(job), memory(memory), across(group % C::Across), down(group / C::Across),
          column(column + across * 64 + (int32_t)threadIdx.x % 4 * 16),
          row(threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4),
          producer(job, memory, unit)
    {
        a = resident_low<C::Row>(memory.ring +
                                 down * (C::Patch ? job.patch.room : 64 * C::Row));
        b = resident_low<C::Row>(memory.b + across * 64 * C::Row);
        addends = memory.addends + threadIdx.x * (uint32_t)sizeof(uint4);
        /* Loaded, as it were: a constant is no operand beside another, and a thread's
         * number would be asked for again. */
        halves = __shfl_sync(0xffffffff, QUICK_HALVES, 0);
        thread = __shfl_sync(0xffffffff, (int)threadIdx.x, (int)threadIdx.x % 32);
    }

    __device__ inline void ask(void)
    {
        if (thread >= 32)
            return;
        if (thread == 0)
            producer.ask();
        __syncwarp();
    }

    /* Others are asked for it once the unit is finished, when most of them have released
     * it, too, unless the ring holds too little for that. */
    __device__ inline void release(int at)
    {
        if (thread % 32 == 0)
            barrier_arrive(memory.empty(at));
        producer.free++;
        if (!job.late)
            ask();
    }

    /* A thread's steps of word 0, then every fourth. */
    __device__ inline const float4 *steps(void) const
    {
        return (const float4 *)memory.steps + across * 16 + threadIdx.x % 4;
    }

    /* T: of A's elements. */
    template <typename T, class Way>
    __device__ inline void multiply(sums &sum)
    {
        if constexpr (C::Patch)
            multiply_patch<T, !Way::Between>(sum);
        else
            multiply_rows<T>(sum);
    }

    __device__ inline uint32_t pixels(void) const
    {
        return a + (uint32_t)stage.at * ((uint32_t)job.stage / 16);
    }

    /* The products of a piece, once it is there. */
    template <typename T>
    __device__ inline void multiply_piece(sums &sum, int32_t step)
    {
        enum { UNITS = C::Row / 16, GROUP = 8 * C::Row };
        const uint32_t x = pixels(), y = b + step * (C::Across * 64 * UNITS);
        barrier_wait(memory.full(stage.at), stage.parity);
        hold(sum);
        multiply_begin();
#pragma unroll
        for (int d = 0; d < C::Row / PRODUCT_STEP; d++)
            product<T, 64>::scores(
                sum, resident_descriptor<C::Row>(x + d * PRODUCT_STEP / 16, GROUP),
                resident_descriptor<C::Row>(y + d * PRODUCT_STEP / 16, GROUP),
                d > 0 || step > 0);
        multiply_commit();
    }

    /* A piece is released once the next one's products are under way. */
    template <typename T>
    __device__ inline void multiply_rows(sums &sum)
    {
        int32_t at = stage.at;
        multiply_piece<T>(sum, 0);
        stage.advance(job.stages);
        for (int32_t step = 1; step < job.steps; step++) {
            multiply_piece<T>(sum, step);
            multiply_wait<1>();
            release(at);
            at = stage.at;
            stage.advance(job.stages);
        }
        multiply_wait<0>();
        hold(sum);
        release(at);
    }

    /* All elements of the kernel by one patch, from another pixel on for each: eight
     * groups of eight rows, a row of the patch from one to the next. Steps and width of
     * the kernel as the job has them, or constants. */
    template <typename T, int Steps, int Width>
    __device__ inline void multiply_elements(sums &sum)
    {
        enum { GROUP = 8 * C::Row };
        const resident_patch &patch = job.patch;
        const int32_t steps = Steps ? Steps : job.steps;
        const int32_t width = Width ? Width : patch.kernel_w;
        uint32_t x = pixels(), y = b;
        multiply_begin();
#pragma unroll(Steps ? Steps : 1)
        for (int32_t i = 0, s = 0; i < steps; i++, y += C::BBytes / 16) {
#pragma unroll
            for (int d = 0; d < C::Row / PRODUCT_STEP; d++)
                product<T, 64>::scores(
                    sum,
                    resident_descriptor<C::Row>(x + d * PRODUCT_STEP / 16, patch.group),
                    resident_descriptor<C::Row>(y + d * PRODUCT_STEP / 16, GROUP),
                    d > 0 || i > 0);
            x += patch.step_w;
            if (++s == width) {
                s = 0;
                x += patch.down;
            }
        }
        multiply_commit();
    }

    /* Constant: windows of 3x3 have products of their own, for which the longest way to
     * finish leaves no registers. */
    template <typename T, bool Constant>
    __device__ inline void multiply_patch(sums &sum)
    {
        barrier_wait(memory.full(stage.at), stage.parity);
        hold(sum);
        if (Constant && job.steps == 9 && job.patch.kernel_w == 3)
            multiply_elements<T, 9, 3>(sum);
        else
            multiply_elements<T, 0, 0>(sum);
        multiply_wait<0>();
        hold(sum);
        const int32_t at = stage.at;
        stage.advance(job.stages);
        release(at);
    }

    /* Of a patch a thread's second row is that of the image below its first. */
    __device__ inline resident_rows rows_of(int32_t unit) const
    {
        uint8_t *to = (uint8_t *)job.to + column;
        if constexpr (!C::Patch) {
            const int32_t first = resident_first<C>(job, unit) + down * 64 + row;
            const int32_t none = job.backwards ? INT32_MIN : 0; /* and stays below 1 */
            return {to + first * job.to_row, column < job.n ? job.m - first : none};
        }
        const resident_place p = resident_place_of(job.patch, unit * C::Down + down);
        const int32_t y = p.row + row / 8, x = p.column + row % 8;
        const bool has = unit < job.units && x < job.patch.width && column < job.n;
        const int32_t first = (p.image * job.patch.height + y) * job.patch.width + x;
        return {to + first * job.to_row,
                has && first < job.m ? (job.patch.height - y) * RESIDENT_SIDE : 0};
    }

    /* The same of the block's unit `on` units behind one that has `rows`. */
    __device__ inline resident_rows rows_behind(const resident_rows &rows, int32_t unit,
                                                int on) const
    {
        if constexpr (C::Patch)
            return rows_of(unit + on * job.by);
        return {rows.to + on * job.to_step, rows.left - on * job.step};
    }

    /* A thread's own of two rows, so that nobody else need know when they have come. */
    __device__ inline void load_addends(const uint8_t *from, int32_t left, uint32_t to)
    {
        const resident_rows rows = {NULL, left};
        if (rows.has(0))
            resident_copy(to, from);
        if (rows.has(1))
            resident_copy(to + C::Threads * (uint32_t)sizeof(uint4), from + job.apart);
        resident_commit();
    }

    /* Those of the unit RESIDENT_ADDENDS behind one that has `rows`. */
    __device__ inline void load_ahead(const resident_rows &rows, int32_t unit)
    {
        if constexpr (C::Patch) {
            const resident_rows then = rows_behind(rows, unit, RESIDENT_ADDENDS);
            load_addends(then.to + job.beside, then.left, addends);
        } else {
            load_addends(rows.to + job.ahead, rows.left - RESIDENT_ADDENDS * job.step,
                         addends);
        }
    }

    /* Puts four sums aside where `doubt`. A value in doubt takes as long as a tile: the
     * other warps would wait for it, and the next tile's loads for them. */
    __device__ inline void put_aside(bool doubt, int4 sums, uint8_t *to, int32_t first)
    {
        resident_doubt *own = memory.doubts + threadIdx.x / 32 * RESIDENT_DOUBTS;
        uint32_t left = __ballot_sync(0xffffffff, doubt);
        while (left) {
            const int place = aside + __popc(left & ((1u << threadIdx.x % 32) - 1));
            const bool put = doubt && place < RESIDENT_DOUBTS;
            if (put)
                own[place] = {sums, to, first, 0};
            aside = min(aside + __popc(left), RESIDENT_DOUBTS);
            doubt &= !put;
            left = __ballot_sync(0xffffffff, doubt);
            if (aside == RESIDENT_DOUBTS) {
                resident_settle(&job, own, aside);
                aside = 0;
            }
        }
    }

    static __device__ inline int4 four_of(const sums &sum, int r, int w)
    {
        return {sum[w * 2][r * 2], sum[w * 2][r * 2 + 1], sum[w * 2 + 1][r * 2],
                sum[w * 2 + 1][r * 2 + 1]};
    }

    static __device__ inline uint32_t word_of(const uint4 &four, int w)
    {
        return w == 0 ? four.x : w == 1 ? four.y : w == 2 ? four.z : four.w;
    }

    /* Words of a thread's two rows, the first row's before. */
    template <class Way>
    __device__ inline void finish(const sums &sum, const uint4 (&addend)[2],
                                  uint32_t (&words)[2][4], uint32_t (&least)[2][4])
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const float4 scale = steps()[w * 4];
            const float4 bias = steps()[C::Columns / 4 + w * 4];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int4 four = four_of(sum, r, w);
                const float v[4] = {__int2float_rn(four.x), __int2float_rn(four.y),
                                    __int2float_rn(four.z), __int2float_rn(four.w)};
                words[r][w] = quick_four<Way::Joined, Way::Between>(
                    job.quick, v, scale, bias, word_of(addend[r], w) ^ job.flip, halves,
                    least[r][w]);
            }
        }
    }

    /* Pads are 0. */
    __device__ inline void clear_pads(uint32_t (&words)[2][4]) const
    {
        if (job.real < job.n)
#pragma unroll
            for (int i = 0; i < 8; i++)
                words[i / 4][i % 4] &= first_bytes(job.real - column - i % 4 * 4);
    }

    __device__ inline void store(const uint32_t (&words)[2][4],
                                 const resident_rows &rows) const
    {
        if (rows.has(0))
            *(uint4 *)rows.to =
                make_uint4(words[0][0], words[0][1], words[0][2], words[0][3]);
        if (rows.has(1))
            *(uint4 *)(rows.to + job.apart) =
                make_uint4(words[1][0], words[1][1], words[1][2], words[1][3]);
    }

    /* Of words that are stored, those in doubt: the i-th is bit 15 - i. */
    __device__ inline uint32_t doubts_of(const uint32_t (&least)[2][4],
                                         const resident_rows &rows) const
    {
        uint32_t eight[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            eight[i] = least[i / 4][i % 4];
        const uint32_t mask = quick_doubts(job.most, eight);
        return (mask | mask >> 16) &
               ((rows.has(0) ? 0xf000u : 0) | (rows.has(1) ? 0x0f00u : 0));
    }

    /* Those aside. */
    __device__ inline void sort_out(const sums &sum, const uint32_t (&least)[2][4],
                                    const resident_rows &rows)
    {
        uint32_t all = __vminu2(least[0][0], least[1][0]);
#pragma unroll
        for (int w = 1; w < 4; w++)
            all = __vimin3_u16x2(all, least[0][w], least[1][w]);
        if (!__any_sync(0xffffffff, (job.most - all) & 0x80008000u))
            return;
        const uint32_t mine = doubts_of(least, rows);
        const uint32_t any = __reduce_or_sync(0xffffffff, mine);
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (any >> (15 - i) & 1)
                put_aside(mine >> (15 - i) & 1, four_of(sum, i / 4, i % 4),
                          rows.to + (i / 4 ? job.apart : 0) + i % 4 * 4,
                          column + i % 4 * 4);
    }

    template <class Way>
    __device__ inline void finish_unit(const sums &sum, const resident_rows &rows,
                                       int32_t unit)
    {
        uint32_t words[2][4], least[2][4];
        uint4 addend[2] = {};
        if constexpr (Way::Joined) {
            resident_copied<RESIDENT_ADDENDS - 1>();
            addend[0] = resident_read(addends);
            addend[1] = resident_read(addends + C::Threads * (uint32_t)sizeof(uint4));
        }
        finish<Way>(sum, addend, words, least);
        if constexpr (Way::Joined)
            load_ahead(rows, unit);
        clear_pads(words);
        store(words, rows);
        sort_out(sum, least, rows);
    }

    /* The first units' addends. */
    __device__ inline void begin_addends(const resident_rows &rows, int32_t unit,
                                         uint32_t bytes)
    {
#pragma unroll
        for (int i = 0; i < RESIDENT_ADDENDS; i++) {
            const resident_rows then = rows_behind(rows, unit, i);
            load_addends(then.to + job.beside, then.left, addends + i * bytes);
        }
    }

    template <class Way>
    __device__ inline void run(int32_t unit)
    {
        enum { BUFFER = 2 * C::Threads * (int)sizeof(uint4) }; /* addends of a unit */
        static_assert(RESIDENT_ADDENDS == 2, "buffers take turns");
        resident_rows rows = rows_of(unit);
        int32_t other = BUFFER;
        if constexpr (Way::Joined)
            begin_addends(rows, unit, BUFFER);
        for (; unit < job.units; unit += job.by) {
            sums sum;
            if (job.is_unsigned)
                multiply<uint8_t, Way>(sum);
            else
                multiply<int8_t, Way>(sum);
            finish_unit<Way>(sum, rows, unit);
            rows = rows_behind(rows, unit, 1);
            ask();
            addends += other;
            other = -other;
        }
        resident_settle(&job, memory.doubts + threadIdx.x / 32 * RESIDENT_DOUBTS, aside);
    }
};

/* Grid: column tiles times `by`, which is at most the units. */
template <class C>
static __global__ void __launch_bounds__(C::Threads, RESIDENT_BLOCKS)
    resident_kernel(const __grid_constant__ resident_job job)
{
    extern __shared__ uint8_t shared[];
    const resident_memory<C> memory(shared, job);
    const int32_t column = (int32_t)blockIdx.x % job.column_tiles * C::Columns;
    const int32_t unit = (int32_t)blockIdx.x / job.column_tiles;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        prefetch_map(&job.a);
        prefetch_map(&job.b);
        memory.init(job);
    }
    __syncthreads();
    launch_next();
    memory.fetch(job, column);
    __syncthreads();
    resident_warpgroup<C> warpgroup(job, memory, group, unit, column);
    wait_for_previous();
    warpgroup.ask();
    barrier_wait(memory.weights(), 0);
    quantized_join_way<false, true>(
        job, [&](auto way) { warpgroup.template run<decltype(way)>(unit); });
}

#endif /* PLUGINS_COMMON_QUANTIZED_RESIDENT_KERNEL_CUH */
