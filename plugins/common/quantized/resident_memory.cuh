/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes with weights that stay in shared memory: what a block keeps there,
 * and what it asks the copy engine for.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_RESIDENT_MEMORY_CUH
#define PLUGINS_COMMON_QUANTIZED_RESIDENT_MEMORY_CUH

#include "plugins/common/quantized/resident.cuh"

#define RESIDENT_BARRIERS 1024 /* bytes */
#define RESIDENT_DOUBTS 16     /* words that a warp puts aside */
#define RESIDENT_BLOCKS 2      /* of a multiprocessor: of three, registers spill */

/* Four neighbouring sums of a pixel of which one is in doubt (quick.cuh), and where their
 * word goes. */
struct resident_doubt {
    int4 sums;
    uint8_t *to;
    int32_t column, unused;
};

/* Bytes before the weights: barriers, steps, addends, what is in doubt. */
static constexpr int32_t resident_before(int32_t columns, int32_t threads)
{
    return (RESIDENT_BARRIERS + 8 * columns +
            RESIDENT_ADDENDS * threads * 2 * (int32_t)sizeof(uint4) +
            threads / 32 * RESIDENT_DOUBTS * (int32_t)sizeof(resident_doubt) + 1023) /
           1024 * 1024;
}

/* Across, down: warpgroups of a block beside and below each other, 64 x 64 each; row:
 * bytes of a piece of K; patch: a warpgroup's rows are the windows of eight by eight
 * pixels. */
template <int Across_, int Down_, int Row_, bool Patch_>
struct resident_tile {
    static const bool Patch = Patch_;
    static const int Across = Across_, Down = Down_, Row = Row_;
    static const int Rows = 64 * Down, Columns = 64 * Across;
    static const int Threads = 128 * Across * Down;
    static const int BBytes = Columns * Row; /* of a piece */
    static const int Before = resident_before(Columns, Threads);
};

/* ---- shared memory --------------------------------------------------------------- */

template <class C>
struct resident_memory {
    uint32_t barriers, addends, b, ring;
    /* Scales of columns, then biases, in the order that lanes read them: of 64 columns,
     * word w of lane t's row is the 4w + t-th. */
    float *steps;
    resident_doubt *doubts; /* RESIDENT_DOUBTS of each warp */

    __device__ inline resident_memory(uint8_t *memory, const resident_job &job)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        barriers = shared_address(memory) + lost;
        steps = (float *)(memory + lost + RESIDENT_BARRIERS);
        uint4 *four = (uint4 *)(steps + 2 * C::Columns);
        addends = shared_address(four);
        doubts = (resident_doubt *)(four + RESIDENT_ADDENDS * 2 * C::Threads);
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
    __device__ inline uint32_t a(const resident_job &job, int stage) const
    {
        return ring + stage * job.stage;
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
    /* What values in doubt will read comes into the first cache. */
    static __device__ inline void near(const float *from)
    {
        if (from)
            load_here(from);
    }
    /* The block's weights and what its sums are finished with: nobody before this kernel
     * writes them. */
    __device__ inline void fetch(const resident_job &job, int32_t column) const
    {
        for (int i = threadIdx.x; i < C::Columns; i += C::Threads) {
            const int at = i / 64 * 64 + i % 16 / 4 * 16 + i % 64 / 16 * 4 + i % 4;
            steps[at] = __ldg(job.quick_scale + column + i);
            steps[C::Columns + at] = __ldg(job.quick_bias + column + i);
            near(job.scale + column + i);
            near(job.bias + column + i);
        }
        near(job.scale_out);
        near(job.addend ? job.scale_addend : NULL);
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

struct resident_place {
    int32_t image, row, column; /* of the output */
};

static __device__ inline resident_place resident_place_of(const resident_patch &patch,
                                                          int32_t at)
{
    const uint32_t image = divide_by((uint32_t)at, patch.patches);
    const uint32_t rest = (uint32_t)at - image * patch.patches.d;
    const uint32_t row = divide_by(rest, patch.across);
    return {(int32_t)image, (int32_t)row * RESIDENT_SIDE,
            (int32_t)(rest - row * patch.across.d) * RESIDENT_SIDE};
}

/* The first row of a unit that is a tile of rows. */
template <class C>
static __device__ inline int32_t resident_first(const resident_job &job, int32_t unit)
{
    return (job.origin + job.sign * unit) * C::Rows;
}

/* What thread 0 asks the copy engine for, as far as stages are free: of a unit a piece
 * after the other, or its patches. */
template <class C>
struct resident_producer {
    const resident_job &job;
    const resident_memory<C> &memory;
    int32_t unit, step = 0;
    int32_t free;
    resident_stage stage;

    __device__ inline resident_producer(const resident_job &job,
                                        const resident_memory<C> &memory, int32_t unit)
        : job(job), memory(memory), unit(unit), free(job.stages)
    {
    }
    __device__ inline void copy(uint32_t to, uint32_t barrier) const
    {
        if constexpr (C::Patch)
            copy_patches(to, barrier);
        else if (job.window.on)
            copy_pixels(to, barrier);
        else
            copy_matrix(to, &job.a, barrier, step * C::Row, resident_first<C>(job, unit),
                        0);
    }
    /* Every second pixel, or so: the copy engine finds those behind the first. All that
     * says where is read here: the compiler would fetch it in every unit of every warp.
     */
    __device__ inline void copy_pixels(uint32_t to, uint32_t barrier) const
    {
        const product_window *window = &job.window;
        asm volatile("" : "+l"(window));
        const product_window &w = *window;
        const uint32_t row = (uint32_t)resident_first<C>(job, unit);
        const uint32_t image = divide_by(row, w.pixels);
        const uint32_t pixel = row - image * w.pixels.d;
        const uint32_t y = divide_by(pixel, w.width), x = pixel - y * w.width.d;
        copy_window(to, &job.a, barrier, step * C::Row, (int32_t)x * w.stride_w,
                    (int32_t)y * w.stride_h, (int32_t)image, 0, 0);
    }
    __device__ inline void copy_patches(uint32_t to, uint32_t barrier) const
    {
#pragma unroll
        for (int d = 0; d < C::Down; d++) {
            const resident_place p = resident_place_of(job.patch, unit * C::Down + d);
            copy_box(to + d * job.patch.room, &job.a, barrier, 0,
                     p.column - job.patch.begin_w, p.row - job.patch.begin_h, p.image);
        }
    }
    /* All that is free but the rest, which other warps may still read: it waits for
     * them. */
    __device__ inline void ask(void)
    {
        for (; free > job.rest && unit < job.units; free--) {
            barrier_wait(memory.empty(stage.at), stage.parity ^ 1);
            barrier_expect(memory.full(stage.at), job.expected);
            copy(memory.a(job, stage.at), memory.full(stage.at));
            stage.advance(job.stages);
            if (C::Patch || ++step == job.steps) {
                step = 0;
                unit += job.by;
            }
        }
    }
};

#endif /* PLUGINS_COMMON_QUANTIZED_RESIDENT_MEMORY_CUH */
