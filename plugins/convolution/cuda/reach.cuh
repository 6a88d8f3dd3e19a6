/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of few pixels: windows of 3x3, a stride and a pad of 1, on Hopper's tensor
 * cores. Tiles of few pixels read more weights than they have work for, and the way into
 * a multiprocessor is the limit; so a block reads nothing twice. It has 64 filters, rows
 * of an image or several small ones, and 128 channels. What the windows reach stays in
 * shared memory, rows of `pitch` pixels, one more than the image's, in which there is 0:
 * an element of the windows is the same memory from another pixel on. All weights have
 * room beside, so all is asked for at once. Filters are the factor whose rows become the
 * sums' rows. Blocks of a cluster have the other channels.
 *
 * Two warpgroups take every second piece of the weights; then each adds the other's sums
 * of half of the pixels, and of these the other blocks' of its share.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_REACH_CUH
#define PLUGINS_CONVOLUTION_CUDA_REACH_CUH

#include "plugins/convolution/cuda/reach_load.cuh"

#if __CUDA_ARCH__ >= 900
/* ---- a warpgroup's way --------------------------------------------------------------
 */

template <int N, int D>
struct reach_worker {
    typedef reach_tile<N, D> Tile;
    typedef float sums[Tile::Eights][4];
    typedef float share[Tile::Own][4];
    typedef float halves[Tile::Own * D][4];
    enum { EACH = (Tile::Own + 1) / 2 }; /* eights of channels of pixels, of a thread */
    const reach_block<D> &b;
    const int group, thread;
    int64_t at[EACH]; /* where they lie, in pixels, or -1 */
    int32_t channel;  /* their first */

    __device__ inline reach_worker(const reach_block<D> &b, int group)
        : b(b), group(group), thread((int)threadIdx.x % 128)
    {
        find();
    }

    /* Own pixels begin there. */
    __device__ inline int32_t first(void) const
    {
        return (group * Tile::Half + (int32_t)b.rank * Tile::Own) * 8;
    }

    __device__ inline void find(void)
    {
        const reach_job &job = b.job;
        const int32_t end = min(group * Tile::Half * 8 + Tile::Half * 8, job.pixels);
        channel = b.filter + thread % 8 * 8;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int32_t own = thread / 8 + i * 16, n = first() + own;
            const uint32_t row = divide_by((uint32_t)n, job.pitch);
            const uint32_t of = divide_by(row, job.high);
            const int32_t column = n - (int32_t)(row * job.pitch.d);
            const int32_t h = b.top + (int32_t)(row - of * job.high.d);
            const int64_t image = b.image + (int64_t)of;
            const bool inside = own < Tile::Own * 8 && n < end && column < job.width &&
                                h < job.height && image < job.m && channel < job.n;
            at[i] = inside ? (image * job.height + h) * job.width + column : -1;
        }
    }

    __device__ inline void release(int32_t slot) const
    {
        if (thread % 32 == 0)
            barrier_arrive(b.barrier(REACH_PIECE_EMPTY + slot));
    }

    __device__ inline void multiply(sums &sum) const
    {
        const uint32_t pitch = b.job.pitch.d;
        const int32_t pieces = b.job.panels * REACH_ELEMENTS, slots = b.job.slots;
        int32_t panel = 0, e = group, slot = group, last = 0;
        uint32_t parity = 0;
        hold(sum);
#pragma unroll 1
        for (int32_t t = group; t < pieces; t += REACH_GROUPS) {
            const uint32_t pixel = (uint32_t)(e / 3) * pitch + (uint32_t)(e % 3);
            barrier_wait(b.barrier(REACH_PIECE_FULL + slot), parity);
            barrier_wait(b.barrier(REACH_INPUT_FULL + panel), 0);
            const uint64_t x = reach_rows(b.piece(slot));
            const uint64_t y = reach_rows(b.input(panel) + pixel * PRODUCT_ROW);
            multiply_begin();
#pragma unroll
            for (int d = 0; d < 4; d++)
                reach_product<N>::add(sum, x + d * 2, y + d * 2);
            multiply_commit();
            multiply_wait<1>();
            if (t > group && t + slots < pieces + REACH_GROUPS)
                release(last);
            last = slot;
            slot += REACH_GROUPS;
            e += REACH_GROUPS;
            if (slot >= slots)
                slot -= slots, parity ^= 1;
            if (e >= REACH_ELEMENTS)
                e -= REACH_ELEMENTS, panel++;
        }
        multiply_wait<0>();
        hold(sum);
    }

    /* To the other warpgroup what this one has of its half of the eights. */
    template <int Group>
    __device__ inline void give(const sums &sum) const
    {
        enum { OTHER = (1 - Group) * Tile::Half };
        const uint32_t to = b.joined(1 - Group) + thread * 16;
#pragma unroll
        for (int n = 0; n < Tile::Half; n++)
            if (OTHER + n < Tile::Eights)
                asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(
                                 to + n * REACH_SUMS),
                             "f"(sum[OTHER + n < Tile::Eights ? OTHER + n : 0][0]),
                             "f"(sum[OTHER + n < Tile::Eights ? OTHER + n : 0][1]),
                             "f"(sum[OTHER + n < Tile::Eights ? OTHER + n : 0][2]),
                             "f"(sum[OTHER + n < Tile::Eights ? OTHER + n : 0][3])
                             : "memory");
    }

    /* To this half of the eights what the other warpgroup gave. */
    template <int Group>
    __device__ inline void take(halves &half, const sums &sum) const
    {
        enum { MINE = Group * Tile::Half };
        const uint32_t from = b.joined(Group) + thread * 16;
#pragma unroll
        for (int n = 0; n < Tile::Own * D; n++) {
            half[n][0] = half[n][1] = half[n][2] = half[n][3] = 0;
            if (n >= Tile::Half || MINE + n >= Tile::Eights)
                continue;
            const float4 x = load_sums(from + n * REACH_SUMS);
            const float(&v)[4] = sum[MINE + n < Tile::Eights ? MINE + n : 0];
            half[n][0] = v[0] + x.x, half[n][1] = v[1] + x.y;
            half[n][2] = v[2] + x.z, half[n][3] = v[3] + x.w;
        }
    }

    /* Both warpgroups meet at the same instructions, not at one of each branch. */
    __device__ inline void join_groups(halves &half, const sums &sum) const
    {
        named_sync(REACH_ALL, REACH_GROUPS * 128); /* weights are no longer read */
        if (group == 0)
            give<0>(sum);
        else
            give<1>(sum);
        named_sync(REACH_ALL, REACH_GROUPS * 128);
        if (group == 0)
            take<0>(half, sum);
        else
            take<1>(half, sum);
    }

    /* A share to each of the cluster's blocks, and what they send of this one's. */
    __device__ inline void join_blocks(share &own, const halves &half) const
    {
        enum { BYTES = Tile::Own * REACH_SUMS };
        const uint32_t sent = b.sent(group, (D - 1) * BYTES) + thread * 16;
        const uint32_t barrier = b.barrier(REACH_SENT + group);
#pragma unroll
        for (int q = 0; q < D; q++) {
            const bool mine = q == (int)b.rank;
#pragma unroll
            for (int n = 0; n < Tile::Own; n++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    own[n][k] = mine || q == 0 ? half[q * Tile::Own + n][k] : own[n][k];
            if (mine)
                continue;
            const uint32_t slot = b.rank - (b.rank > (uint32_t)q);
            const uint32_t to = address_of_rank(sent + slot * BYTES, q);
            const uint32_t tell = address_of_rank(barrier, q);
#pragma unroll
            for (int n = 0; n < Tile::Own; n++)
                send_four(to + n * REACH_SUMS, tell, half[q * Tile::Own + n]);
        }
        if (D > 1)
            barrier_wait(barrier, 0);
#pragma unroll
        for (int s = 0; s < D - 1; s++)
#pragma unroll
            for (int n = 0; n < Tile::Own; n++) {
                const float4 x = load_sums(sent + s * BYTES + n * REACH_SUMS);
                own[n][0] += x.x, own[n][1] += x.y;
                own[n][2] += x.z, own[n][3] += x.w;
            }
    }

    /* Where a thread's eights of channels lie among the results. */
    __device__ inline uint32_t place(int i) const
    {
        const uint32_t pixel = thread / 8 + i * 16;
        return b.results(group) + pixel * PRODUCT_ROW + (thread % 8 ^ pixel % 8) * 16;
    }

    __device__ inline void fetch(uint4 (&added)[EACH]) const
    {
        const __half *from = (const __half *)b.job.addend;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            added[i] = from && at[i] >= 0
                           ? *(const uint4 *)(from + at[i] * b.job.addend_row + channel)
                           : make_uint4(0, 0, 0, 0);
    }

    /* Halves of two channels' pairs of pixels; x: of the addend. */
    __device__ inline void finish_eight(uint32_t (&y)[2], const float (&sum)[4],
                                        const uint32_t (&x)[2], const float (&bias)[2],
                                        int32_t first) const
    {
        float v[4];
#pragma unroll
        for (int e = 0; e < 4; e++)
            v[e] = product_begin(1, sum[e], bias[e / 2]);
        product_finish<__half>(
            b.job, v, x, [&](int e) { return first + e / 2 * 8; }, y);
    }

    /* Results to shared memory, where the addend was. */
    __device__ inline void write(const share &own) const
    {
        const uint32_t lane = thread % 32, warp = thread / 32;
        const int32_t first = b.filter + (int32_t)(warp * 16 + lane / 4);
        const bool simple = !b.job.scale && b.job.real == b.job.n &&
                            product_bounds::are(b.job.activation);
        const product_bounds bounds(b.job.activation);
        float bias[2];
#pragma unroll
        for (int i = 0; i < 2; i++)
            bias[i] = b.job.bias && !b.job.scale && first + i * 8 < b.job.real
                          ? __ldg(b.job.bias + first + i * 8)
                          : 0.0f;
        const uint32_t to = b.results(group) + lane % 8 * PRODUCT_ROW +
                            ((warp * 2 + lane / 8 % 2) ^ lane % 8) * 16;
#pragma unroll
        for (int n = 0; n < Tile::Own; n++) {
            uint32_t x[2] = {}, y[2];
            if (b.job.addend)
                load_turned(x, to + n * REACH_EIGHT);
            if (simple)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const float2 add = unpack_two(__half(), x[e]);
                    y[e] = pack_two(__half(),
                                    bounds.of<true>(own[n][e * 2] + bias[e] + add.x),
                                    bounds.of<true>(own[n][e * 2 + 1] + bias[e] + add.y));
                }
            else
                finish_eight(y, own[n], x, bias, first);
            store_turned(to + n * REACH_EIGHT, y);
        }
    }

    /* Zeros behind the input, and until other warps have opened their barriers. */
    __device__ inline void begin(void) const
    {
        for (int32_t p = 0; p < b.job.panels; p++)
            for (int32_t i = b.job.box + (int32_t)threadIdx.x * 16; i < b.job.panel;
                 i += REACH_GROUPS * 128 * 16)
                reach_zero(b.input(p) + i);
        publish_shared();
        if (D > 1)
            cluster_arrive();
        named_sync(REACH_OPEN, REACH_THREADS);
    }

    __device__ inline void run(void) const
    {
        sums sum = {};
        halves half;
        share own;
        uint4 added[EACH];
        multiply(sum);
        fetch(added); /* the input has come, so what was before has ended */
        join_groups(half, sum);
        if (D > 1)
            cluster_wait();
        join_blocks(own, half);
        if (b.job.addend) {
#pragma unroll
            for (int i = 0; i < EACH; i++)
                asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(place(i)),
                             "r"(added[i].x), "r"(added[i].y), "r"(added[i].z),
                             "r"(added[i].w)
                             : "memory");
            named_sync(REACH_OWN + group, 128);
        }
        write(own);
        named_sync(REACH_OWN + group, 128);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const float4 v = load_sums(place(i));
            if (at[i] >= 0)
                *(float4 *)((__half *)b.job.to + at[i] * b.job.to_row + channel) = v;
        }
    }
};

/* ---- all of it -------------------------------------------------------------------- */

template <int N, int D>
static __global__ void __launch_bounds__(REACH_THREADS, 1)
    reach_kernel(const __grid_constant__ reach_job job, const void *weights)
{
    extern __shared__ uint8_t reach_shared[];
    const reach_block<D> b(job, reach_shared);
    const int role = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
    launch_next();
    if (role < REACH_GROUPS * 4) {
        const reach_worker<N, D> worker(b, role / 4);
        worker.begin();
        worker.run();
        return;
    }
    if (role == REACH_GROUPS * 4)
        reach_load_weights<N>(b, weights);
    else
        reach_load_input(b);
    if (D > 1)
        cluster_wait();
}
#else
template <int N, int D>
static __global__ void reach_kernel(const __grid_constant__ reach_job, const void *)
{
}
#endif

#endif /* PLUGINS_CONVOLUTION_CUDA_REACH_CUH */
