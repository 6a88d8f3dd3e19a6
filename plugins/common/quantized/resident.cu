/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes with weights that stay in shared memory: the kernel, and how many of
 * its blocks there are.
 */
#include "plugins/common/quantized/resident.cuh"

/* Across, down: warpgroups of a block beside and below each other, 64 x 64 each; row:
 * bytes of a piece of K; blocks of a multiprocessor at most. */
template <int Across_, int Down_, int Row_, int Blocks_>
struct resident_tile {
    static const int Across = Across_, Down = Down_, Row = Row_, Blocks = Blocks_;
    static const int Rows = 64 * Down, Columns = 64 * Across;
    static const int Threads = 128 * Across * Down;
    static const int ABytes = Rows * Row, BBytes = Columns * Row; /* of a piece */
    static const int Barriers = 1024, Before = 3072;              /* bytes */
    static_assert(Barriers + 12 * Columns <= Before, "room of steps and offsets");
};

#define RESIDENT_FIXED 4096 /* bytes: before the weights, and room to begin at 1024 */
#define RESIDENT_MOST 232448
#define RESIDENT_OF_ALL 233472 /* bytes of a multiprocessor, 1024 of each block its own  \
                                */

/* ---- shared memory ------------------------------------------------------------------
 */

template <class C>
struct resident_memory {
    uint32_t barriers, b, ring;
    /* Scales of columns, then biases, then offsets, in the order that lanes read them: of
     * 64 columns, word w of lane t's row is the 4w + t-th. */
    float *steps;

    __device__ inline resident_memory(uint8_t *memory, const resident_job &job)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        barriers = shared_address(memory) + lost;
        steps = (float *)(memory + lost + C::Barriers);
        b = barriers + C::Before;
        ring = b + job.steps * C::BBytes;
    }
    __device__ inline uint32_t full(int stage) const
    {
        return barriers + stage * 16;
    }
    __device__ inline uint32_t empty(int stage) const
    {
        return full(stage) + 8;
    }
    __device__ inline uint32_t weights(void) const
    {
        return full(RESIDENT_STAGES);
    }
    __device__ inline uint32_t a(int stage) const
    {
        return ring + stage * C::ABytes;
    }
    __device__ inline void init(const resident_job &job) const
    {
        for (int s = 0; s < job.stages; s++) {
            barrier_init(full(s), 1);
            barrier_init(empty(s), C::Threads / 32);
        }
        barrier_init(weights(), 1);
        barrier_publish();
    }
    /* The block's weights and what its sums begin with and are finished with: nobody
     * before this kernel writes them. */
    __device__ inline void fetch(const resident_job &job, int32_t column) const
    {
        for (int i = threadIdx.x; i < C::Columns; i += C::Threads) {
            const int at = i / 64 * 64 + i % 16 / 4 * 16 + i % 64 / 16 * 4 + i % 4;
            steps[at] = __ldg(job.quick_scale + column + i);
            steps[C::Columns + at] = __ldg(job.quick_bias + column + i);
            steps[2 * C::Columns + at] =
                __int_as_float(job.offset ? __ldg(job.offset + column + i) : 0);
        }
        if (threadIdx.x != 0)
            return;
        barrier_expect(weights(), job.steps * C::BBytes);
        for (int i = 0; i < job.steps * C::Across; i++)
            copy_matrix(b + i * 64 * C::Row, &job.b, weights(),
                        i / C::Across * (int32_t)C::Row,
                        column + i % C::Across * RESIDENT_LANES, 0);
    }
};

/* A place in the ring, and the parity of its round. */
struct resident_stage {
    int32_t at = 0;
    uint32_t parity = 0;

    __device__ inline void advance(int32_t stages)
    {
        if (++at == stages) {
            at = 0;
            parity ^= 1;
        }
    }
};

/* What thread 0 asks the copy engine for, as far as stages are free. */
template <class C>
struct resident_producer {
    const resident_job &job;
    const resident_memory<C> &memory;
    int32_t row, step = 0;
    int32_t free;
    resident_stage stage;

    __device__ inline resident_producer(const resident_job &job,
                                        const resident_memory<C> &memory, int32_t row)
        : job(job), memory(memory), row(row), free(job.stages)
    {
    }
    /* All that is free. Where other warps still read, it waits for them. */
    __device__ inline void ask(void)
    {
        for (; free > 0 && row < job.m; free--) {
            barrier_wait(memory.empty(stage.at), stage.parity ^ 1);
            barrier_expect(memory.full(stage.at), C::ABytes);
            copy_matrix(memory.a(stage.at), &job.a, memory.full(stage.at), step * C::Row,
                        row, 0);
            stage.advance(job.stages);
            if (++step == job.steps) {
                step = 0;
                row += job.by * C::Rows;
            }
        }
    }
};

/* ---- a warpgroup --------------------------------------------------------------------
 */

template <class C>
struct resident_warpgroup {
    typedef int32_t sums[8][4];
    const resident_job &job;
    const resident_memory<C> &memory;
    const int across, down; /* its place among the block's */
    const int32_t column;   /* of the thread's first result */
    uint32_t halves;        /* QUICK_HALVES */
    resident_stage stage;
    resident_producer<C> producer;

    __device__ inline resident_warpgroup(const resident_job &job,
                                         const resident_memory<C> &memory, int group,
                                         int32_t row, int32_t column)
        : job(job), memory(memory), across(group % C::Across), down(group / C::Across),
          column(column + across * 64 + (int32_t)threadIdx.x % 4 * 16),
          producer(job, memory, row)
    {
        /* Loaded, as it were: a constant is no operand beside another. */
        halves = __shfl_sync(0xffffffff, QUICK_HALVES, 0);
    }

    __device__ inline void ask(void)
    {
        if (threadIdx.x == 0)
            producer.ask();
        __syncwarp();
    }

    __device__ inline void release(int at)
    {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(memory.empty(at));
        producer.free++;
        ask();
    }

    /* A thread's steps of word 0, then every fourth. */
    __device__ inline const float4 *steps(void) const
    {
        return (const float4 *)memory.steps + across * 16 + threadIdx.x % 4;
    }

    /* Sums begin with the offsets: added later, they would make products wait. */
    __device__ inline void begin(sums &sum) const
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const float4 four = steps()[C::Columns / 2 + w * 4];
            sum[w * 2][0] = sum[w * 2][2] = __float_as_int(four.x);
            sum[w * 2][1] = sum[w * 2][3] = __float_as_int(four.y);
            sum[w * 2 + 1][0] = sum[w * 2 + 1][2] = __float_as_int(four.z);
            sum[w * 2 + 1][1] = sum[w * 2 + 1][3] = __float_as_int(four.w);
        }
    }

    /* T: of A's elements. */
    template <typename T>
    __device__ inline void multiply(sums &sum)
    {
        int32_t before = -1;
        begin(sum);
        for (int32_t step = 0; step < job.steps; step++) {
            barrier_wait(memory.full(stage.at), stage.parity);
            const uint64_t a =
                rows_descriptor<C::Row>(memory.a(stage.at) + down * 64 * C::Row);
            const uint64_t b = rows_descriptor<C::Row>(
                memory.b + (step * C::Across + across) * 64 * C::Row);
            hold(sum);
            multiply_begin();
#pragma unroll
            for (int d = 0; d < C::Row / PRODUCT_STEP; d++)
                product<T, 64>::scores(sum, a + d * PRODUCT_STEP / 16,
                                       b + d * PRODUCT_STEP / 16, 1);
            multiply_commit();
            multiply_wait<1>();
            if (before >= 0)
                release(before);
            before = stage.at;
            stage.advance(job.stages);
        }
        multiply_wait<0>();
        hold(sum);
        release(before);
    }

    __device__ inline int32_t row_of(int32_t tile, int r) const
    {
        return tile + down * 64 + (int32_t)threadIdx.x / 32 % 4 * 16 +
               (int32_t)threadIdx.x % 32 / 4 + r * 8;
    }

    template <class Way>
    __device__ inline void load_addend(uint4 &addend, int32_t row) const
    {
        if (Way::Joined && row < job.m && column < job.n)
            addend = *(const uint4 *)((const uint8_t *)job.addend + row * job.addend_row +
                                      column);
    }

    /* A thread's sixteen sums of a row. */
    template <class Way>
    __device__ inline void finish(const sums &sum, const uint4 &addend, int r,
                                  int32_t row) const
    {
        float v[16];
        uint32_t words[4][1];
#pragma unroll
        for (int e = 0; e < 16; e++)
            v[e] = __int2float_rn(sum[e / 2][r * 2 + e % 2]);
        quantized_words<Way>(
            job, v, [&](int e) { return column + e; },
            [&](int w) {
                return w == 0   ? addend.x
                       : w == 1 ? addend.y
                       : w == 2 ? addend.z
                                : addend.w;
            },
            [&](int w) {
                return quantized_steps{steps()[w * 4], steps()[C::Columns / 4 + w * 4]};
            },
            halves, words);
        if (row < job.m && column < job.n)
            *(uint4 *)((uint8_t *)job.to + row * job.to_row + column) =
                make_uint4(words[0][0], words[1][0], words[2][0], words[3][0]);
    }

    template <class Way>
    __device__ inline void run(int32_t tile)
    {
        const int32_t by = job.by * C::Rows;
        uint4 addend[2] = {};
        for (int r = 0; r < 2; r++)
            load_addend<Way>(addend[r], row_of(tile, r));
        for (; tile < job.m; tile += by) {
            sums sum;
            if (job.is_unsigned)
                multiply<uint8_t>(sum);
            else
                multiply<int8_t>(sum);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                finish<Way>(sum, addend[r], r, row_of(tile, r));
                load_addend<Way>(addend[r], row_of(tile + by, r));
            }
        }
    }
};

/* Grid: column tiles times `by`, which is at most the row tiles. */
template <class C>
static __global__ void __launch_bounds__(C::Threads, C::Blocks)
    resident_kernel(const __grid_constant__ resident_job job)
{
    extern __shared__ uint8_t shared[];
    const resident_memory<C> memory(shared, job);
    const int32_t column = (int32_t)blockIdx.x % job.column_tiles * C::Columns;
    const int32_t row = (int32_t)blockIdx.x / job.column_tiles * C::Rows;
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
    resident_warpgroup<C> warpgroup(job, memory, group, row, column);
    wait_for_previous();
    warpgroup.ask();
    barrier_wait(memory.weights(), 0);
    quantized_join_way<false, true>(
        job, [&](auto way) { warpgroup.template run<decltype(way)>(row); });
}

/* ---- launching ----------------------------------------------------------------------
 */

template <class C>
static const product_launch resident_launch_of = {
    .kernel = (const void *)resident_kernel<C>,
    .rows = C::Rows,
    .columns = C::Columns,
    .threads = C::Threads,
    .bytes = RESIDENT_MOST,
    .depth = C::Row,
    .box = 64,
    .panel = 64,
    .pair = 0,
    .splits = 0,
    .blocks = C::Blocks,
};

#define TILE(across, down, blocks)                                                       \
    {                                                                                    \
        &resident_launch_of<resident_tile<across, down, 128, blocks>>,                   \
            &resident_launch_of<resident_tile<across, down, 64, blocks>>                 \
    }

static const product_launch *const launches[RESIDENT_TILES][2] = {
    [RESIDENT_64x64] = TILE(1, 1, 6),
    [RESIDENT_64x128] = TILE(2, 1, 3),
    [RESIDENT_128x64] = TILE(1, 2, 3),
};

const product_launch *resident_launch(int tile, bool thin)
{
    return launches[tile][thin];
}

/* Stages of a block's ring where that many blocks share a multiprocessor. */
static int64_t stages_of(const product_launch &l, int64_t steps, int64_t blocks)
{
    const int64_t room = RESIDENT_OF_ALL / blocks - 1024;
    const int64_t kept = RESIDENT_FIXED + steps * l.columns * l.depth;
    const int64_t stages = (room - kept) / (l.rows * l.depth);
    return room < kept ? 0 : stages < RESIDENT_STAGES ? stages : RESIDENT_STAGES;
}

/* Blocks of a multiprocessor: as many as have room for the tile after theirs. */
static int64_t blocks_of(const product_launch &l, int64_t steps)
{
    const int64_t least = steps < 3 ? steps + 1 : 4;
    int64_t blocks = l.blocks;
    while (blocks > 0 && stages_of(l, steps, blocks) < least)
        blocks--;
    return blocks;
}

const char *resident_refusal(const product_launch &l, int64_t steps)
{
    return blocks_of(l, steps) == 0 ? "its weights do not stay in shared memory" : NULL;
}

cudaError_t resident_run(resident_job *job, const product_launch &l,
                         int32_t multiprocessors, cudaStream_t stream)
{
    product_launch of = l;
    const int64_t blocks = blocks_of(l, job->steps);
    job->stages = (int32_t)stages_of(l, job->steps, blocks);
    job->row_tiles = (job->m + l.rows - 1) / l.rows;
    job->column_tiles = (job->n + l.columns - 1) / l.columns;
    const int64_t room = blocks * multiprocessors / job->column_tiles;
    job->by = (int32_t)(room < 1 ? 1 : room < job->row_tiles ? room : job->row_tiles);
    of.bytes = RESIDENT_FIXED + job->steps * l.columns * l.depth +
               job->stages * l.rows * l.depth;
    return launch_clusters(*job, of, 1, (int64_t)job->by * job->column_tiles, stream);
}
