/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on Hopper's tensor cores: FP16 and BF16, heads of up to 128 elements, keys in
 * one piece, any of causal, window and lengths. For long sequences with a ring of tiles,
 * for short ones with all of them at once.
 */
#include "plugins/attention/hopper.cuh"

#include "plugins/common/product/tensor_map.cuh"

enum { TURN = 1, GROUP = 5 }; /* named barriers: one of a warpgroup each, from there on */

/* ---- consumers ------------------------------------------------------------------------
 */

/* A warpgroup's 64 queries. */
template <class C>
struct hopper_consumer {
    const hopper_job &job;
    const hopper_memory<C> &memory;
    const int group;
    uint32_t q; /* address of its rows */
    hopper_part part;
    hopper_rows rows;
    hopper_stage<C::QStages> queries;
    hopper_stage<C::Stages> k, v;

    __device__ inline hopper_consumer(const hopper_job &job,
                                      const hopper_memory<C> &memory, int group)
        : job(job), memory(memory), group(group)
    {
    }

    __device__ inline int32_t first_row(void) const
    {
        return part.row + group * 64 +
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
            rows.largest[r] = -INFINITY;
            rows.sum[r] = 0;
        }
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
            finish_odd(s, job, part, rows, first_row(), column,
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

    /* The scores of a tile, the outputs of the one before. */
    template <bool Masked>
    __device__ inline void step(float (&o)[C::Dim / 8][4], float (&s)[C::Keys / 8][4],
                                uint32_t (&p)[C::Keys / 16][4], int32_t tile)
    {
        float shrink[2];
        mask_row mask;
        if (masks_rows())
            mask.load(job, part, tile);
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
        softmax<Masked>(s, shrink, tile, mask);
        multiply_wait<0>();
        hold(o);
        release(1, v);
#pragma unroll
        for (int j = 0; j < C::Dim / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                o[j][e] *= shrink[e / 2];
        round_tile<C>(p, s);
    }

    /* Sums of all tiles; there is at least one. */
    __device__ inline void walk(float (&o)[C::Dim / 8][4])
    {
        float s[C::Keys / 8][4], shrink[2];
        uint32_t p[C::Keys / 16][4];
        int32_t tile = part.last - 1;
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
        softmax<true>(s, shrink, tile, mask);
        round_tile<C>(p, s);
        tile--;
        for (; !C::Odd && tile >= part.whole_end; tile--)
            step<true>(o, s, p, tile);
        for (; !C::Odd && tile >= part.whole; tile--)
            step<false>(o, s, p, tile);
        for (; tile >= part.first; tile--)
            step<true>(o, s, p, tile);
        await(1, v);
        hold(o);
        multiply_outputs<C>(o, p, memory.tile(1, v.at));
        multiply_wait<0>();
        hold(o);
        release(1, v);
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
            by[r] = rows.largest[r] == -INFINITY ? 0 : 1 / sum;
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
        const int32_t row0 = part.row + group * 64 + (int32_t)warp * 16;
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

    /* The next part. */
    __device__ inline void run(void)
    {
        float o[C::Dim / 8][4] = {};
        barrier_wait(memory.q_full(queries.at), queries.parity);
        part = memory.parts[queries.at];
        q = memory.q + queries.at * C::QBytes + group * 64 * PANEL_ROW;
        start_rows();
        if (part.first < part.last)
            walk(o);
        store(o);
        if (!C::Ring)
            return;
        publish_shared(); /* the copy engine writes where outputs lay */
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            barrier_arrive(memory.q_empty(queries.at));
        queries.advance();
    }
};

template <class C>
static __global__ void __launch_bounds__(C::Threads, C::Blocks)
    hopper_kernel(const __grid_constant__ hopper_job job)
{
    extern __shared__ uint8_t shared[];
    const hopper_memory<C> memory(shared);
    const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    const uint32_t parts = job.tiles * job.heads;
    if (threadIdx.x == 0) {
        prefetch_map(&job.q);
        prefetch_map(&job.k);
        prefetch_map(&job.v);
        memory.init();
    }
    __syncthreads();
    wait_for_previous();
    launch_next();
    if constexpr (!C::Ring) {
        if (threadIdx.x == 0)
            hopper_producer<C>(job, memory).run(hopper_part_of<C>(job, blockIdx.x));
        hopper_consumer<C>(job, memory, group).run();
    } else if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(C::Producer));
        if (threadIdx.x == 0) {
            hopper_producer<C> producer(job, memory);
            for (uint32_t n = 0, i; (i = hopper_index(job, n)) < parts; n++)
                producer.run(hopper_part_of<C>(job, i));
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(C::Consumer));
        hopper_consumer<C> consumer(job, memory, group - 1);
        if (group == C::Groups && C::Groups > 1)
            consumer.pass_turn();
        for (uint32_t n = 0, i; (i = hopper_index(job, n)) < parts; n++)
            consumer.run();
    }
}

/* ---- launching ------------------------------------------------------------------------
 */

struct hopper_launch {
    const void *kernel;
    int32_t dim, rows, keys, threads;
    int32_t fixed, stage; /* bytes: without tiles, of one pair of K and V */
    int32_t stages;       /* 0: as many as there are tiles */
    bool odd;
};

template <class C>
static const hopper_launch launch_of = {
    .kernel = (const void *)hopper_kernel<C>,
    .dim = C::Dim,
    .rows = C::Rows,
    .keys = C::Keys,
    .threads = C::Threads,
    .fixed = 2048 + C::MaskBytes + C::QStages *C::QBytes,
    .stage = C::StageBytes,
    .stages = C::Ring ? C::Stages : 0,
    .odd = C::Odd,
};

/* Boxes of box_rows x PANEL of a tensor's heads. */
static bool map_heads(CUtensorMap *map, const void *data, const attention_view *v,
                      int32_t dtype, int64_t dim, int64_t rows, int64_t heads,
                      int64_t batch, int32_t box_rows)
{
    const int64_t bytes =
        ((batch - 1) * v->batch + (heads - 1) * v->head + (rows - 1) * v->row + dim) * 2;
    const uint64_t dims[4] = {(uint64_t)dim, (uint64_t)rows, (uint64_t)heads,
                              (uint64_t)batch};
    const int64_t strides[3] = {v->row, v->head, v->batch};
    const uint32_t box[4] = {PANEL, (uint32_t)box_rows, 1, 1};
    return tensor_map_boxes(map, data, dtype, 4, dims, strides, box, bytes);
}

#define L2_KEPT (32 << 20) /* bytes of K and V that stay in L2 while heads share them */

static uint32_t section_of(const struct attention_plan *p, int64_t heads)
{
    if (p->causal)
        return (uint32_t)heads; /* the order of work counts for more */
    const int64_t bytes = p->keys * (p->dim + p->v_dim) * 2;
    const int64_t kv = bytes > 0 ? L2_KEPT / bytes : heads;
    const int64_t section = (kv < 1 ? 1 : kv) * p->group;
    return (uint32_t)(section < heads ? section : heads);
}

static cudaError_t attention_hopper_as(const hopper_launch *l, const attention_job *a,
                                       cudaStream_t stream)
{
    const struct attention_plan &p = a->plan;
    const bool present = a->present_k != NULL;
    const void *k = present ? a->present_k : a->k, *v = present ? a->present_v : a->v;
    hopper_job job;
    job.plan = p;
    job.lengths = a->lengths;
    job.mask = a->mask;
    job.y = a->y;
    job.tiles = (uint32_t)((p.length + l->rows - 1) / l->rows);
    job.heads = (uint32_t)(p.batch * p.heads);
    job.section = section_of(&p, job.heads);
    job.left = p.window_left >= 0 && p.window_left < HOPPER_FAR ? (int32_t)p.window_left
                                                                : 2 * HOPPER_FAR;
    job.right = p.window_right >= 0 && p.window_right < HOPPER_FAR
                    ? (int32_t)p.window_right
                    : 2 * HOPPER_FAR - 2;
    if (p.causal)
        job.right = 0;
    job.scale = (float)(l->odd ? p.scale : p.scale * 1.4426950408889634);
    if (!map_heads(&job.q, a->q, &p.q, p.q.dtype, p.dim, p.length, p.heads, p.batch,
                   l->rows) ||
        !map_heads(&job.k, k, present ? &p.present_k : &p.k, p.q.dtype, p.dim, p.keys,
                   p.kv_heads, p.batch, l->keys) ||
        !map_heads(&job.v, v, present ? &p.present_v : &p.v, p.q.dtype, p.v_dim, p.keys,
                   p.kv_heads, p.batch, l->keys))
        return cudaErrorNotSupported;
    const int64_t tiles = (p.keys + l->keys - 1) / l->keys;
    const int64_t bytes = l->fixed + (l->stages ? l->stages : tiles) * l->stage;
    cudaError_t e = cudaFuncSetAttribute(
        l->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    int device = 0, units = 0;
    if (e == cudaSuccess)
        e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device);
    if (e != cudaSuccess)
        return e;
    const uint32_t parts = job.tiles * job.heads;
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(l->stages && parts > (uint32_t)units ? (uint32_t)units : parts);
    config.blockDim = dim3(l->threads);
    config.dynamicSmemBytes = (size_t)bytes;
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = 1;
    void *arguments[] = {&job};
    return cudaLaunchKernelExC(&config, l->kernel, arguments);
}

/* ---- the choice -----------------------------------------------------------------------
 */

/* Tiles of FP16 and BF16 by what they take, the first that fits. */
struct hopper_choice {
    int32_t dim;
    bool odd;
    const hopper_launch *ring[2], *at_once[2];
};

#define TILES(...)                                                                       \
    {                                                                                    \
        &launch_of<hopper_tile<__half, __VA_ARGS__>>,                                    \
            &launch_of<hopper_tile<__nv_bfloat16, __VA_ARGS__>>                          \
    }
static const hopper_choice choices[] = {
    {64, false, TILES(64, 128, 3, 4, 1), TILES(64, 128, 1, 0, 3)},
    {96, false, TILES(96, 128, 2, 2, 1), TILES(96, 128, 1, 0, 2)},
    {128, false, TILES(128, 128, 2, 2, 1), TILES(128, 128, 1, 0, 2)},
    {64, true, TILES(64, 128, 2, 4, 1, 0, true), TILES(64, 128, 1, 0, 2, 0, true)},
    {128, true, TILES(128, 128, 2, 2, 1, 0, true), TILES(128, 128, 2, 2, 1, 0, true)},
};

#define FEW_BLOCKS 264         /* two of each multiprocessor */
#define SMALL_BYTES (75 << 10) /* three of them on one */
#define MOST_BYTES 232448      /* of a block */

/* All keys at once where several blocks fit side by side, or there are few. */
static const hopper_launch *launch_for(const struct attention_plan *p)
{
    const int64_t dim = p->dim > p->v_dim ? p->dim : p->v_dim;
    const bool odd = p->mask.port >= 0 || p->softcap > 0,
               bf16 = p->q.dtype == STRATA_BF16;
    const hopper_choice *c = choices;
    while (c->odd != odd || c->dim < dim)
        c++;
    const hopper_launch *l = c->at_once[bf16];
    const int64_t tiles = (p->keys + l->keys - 1) / l->keys,
                  blocks = p->batch * p->heads * ((p->length + l->rows - 1) / l->rows);
    const int64_t most = blocks <= FEW_BLOCKS ? MOST_BYTES : SMALL_BYTES;
    const bool fits = tiles <= HOPPER_TILES && l->fixed + tiles * l->stage <= most;
    return fits ? l : c->ring[bf16];
}

const char *attention_hopper_refuses(const struct attention_plan *p)
{
    if (p->past_k.port >= 0 && p->present_k.port < 0)
        return "wants the keys in one piece: takes a past only with a present";
    return p->scale > 0 ? NULL : "takes scales above 0";
}

cudaError_t attention_hopper(const attention_job *job, cudaStream_t stream)
{
    return attention_hopper_as(launch_for(&job->plan), job, stream);
}
