/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of reach.cuh: its job, what lies where in shared memory, its products.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_REACH_BLOCK_CUH
#define PLUGINS_CONVOLUTION_CUDA_REACH_BLOCK_CUH

#include "plugins/common/product/hopper.cuh"
#include "plugins/common/product/turned_moves.cuh"
#include "plugins/common/product/turned_store.cuh"
#include "plugins/common/product/written.cuh"

enum {
    REACH_ELEMENTS = 9,
    REACH_PANELS = 4,   /* 64 channels each, of a block, at most */
    REACH_SLOTS = 18,   /* of the weights' ring, at most */
    REACH_PIECE = 8192, /* bytes: 64 filters, 64 channels of an element */
    REACH_GROUPS = 2,   /* warpgroups that multiply */
    REACH_THREADS = REACH_GROUPS * 128 + 64,
    REACH_SPLITS = 4,     /* blocks that share the channels, at most */
    REACH_EIGHT = 1024,   /* bytes of eight pixels in a panel */
    REACH_SUMS = 2048,    /* bytes of the sums of eight pixels */
    REACH_WEIGHTS = 1024, /* place in shared memory */
    REACH_JOINED = 16384, /* of the weights' memory, bytes of a warpgroup: its sums */
    REACH_RESULTS = 8192  /* and behind these its results */
};

static_assert(REACH_SLOTS % REACH_GROUPS == 0, "a slot is one warpgroup's");

struct reach_job : product_job {   /* a: boxes of 64 channels of what windows reach */
    divisor pitch, high;           /* pixels of a row; rows of an image of a block */
    divisor parts, filters;        /* of an image; groups of 64 filters */
    int32_t height, width, images; /* images: of a block */
    int32_t pixels;                /* of a block: rows of pitch, without the last zero */
    int32_t panels, stored;        /* of a block; of a group of filters */
    int32_t box, panel;            /* bytes: of a box, of a panel */
    int32_t slots, input;          /* of the weights' ring; place */
    int32_t sums;                  /* place of what other blocks send */
};

/* Eights of pixels: of a block, of a warpgroup, of a warpgroup's share. */
template <int N, int D>
struct reach_tile {
    static const int Eights = N / 8;
    static const int Half = (Eights + 1) / 2;
    static const int Own = (Half + D - 1) / D;
    static_assert(Own * REACH_EIGHT <= REACH_RESULTS, "results");
    static_assert(Half * REACH_SUMS <= REACH_JOINED, "sums");
};

#if __CUDA_ARCH__ >= 900
#define N_52 N_48 ",%48,%49,%50,%51"
#define O_52(f, d) O_48(f, d), O_1(f, d, 12)
#define N_60 N_52 ",%52,%53,%54,%55,%56,%57,%58,%59"
#define O_60(f, d) O_52(f, d), O_2(f, d, 13)

template <int N>
struct reach_product;
#define REACH_PRODUCT(n, count, a, b, c)                                                 \
    template <>                                                                          \
    struct reach_product<n> {                                                            \
        static __device__ inline void add(float (&d)[n / 8][4], uint64_t x, uint64_t y)  \
        {                                                                                \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.f16.f16"        \
                         " {" N_##count "}, %" #a ", %" #b ", 1, 1, 1, 0, 0;\n"          \
                         : O_##count("+f", d)                                            \
                         : "l"(x), "l"(y));                                              \
        }                                                                                \
    };
REACH_PRODUCT(104, 52, 52, 53, 54)
REACH_PRODUCT(120, 60, 60, 61, 62)

enum reach_barrier {
    REACH_PIECE_FULL = 0,
    REACH_PIECE_EMPTY = REACH_PIECE_FULL + REACH_SLOTS,
    REACH_INPUT_FULL = REACH_PIECE_EMPTY + REACH_SLOTS,
    REACH_SENT = REACH_INPUT_FULL + REACH_PANELS, /* a warpgroup each */
    REACH_BARRIERS = REACH_SENT + REACH_GROUPS
};

template <int D>
struct reach_block {
    const reach_job &job;
    uint32_t shared, rank;
    int32_t filter, image, top; /* the first */

    __device__ inline reach_block(const reach_job &job, uint8_t *memory) : job(job)
    {
        const uint32_t block = blockIdx.x / D, unit = divide_by(block, job.filters);
        const uint32_t of = divide_by(unit, job.parts);
        rank = blockIdx.x % D;
        shared = (shared_address(memory) + 1023) / 1024 * 1024;
        filter = (int32_t)(block - unit * job.filters.d) * 64;
        image = (int32_t)of * job.images;
        top = (int32_t)((unit - of * job.parts.d) * job.high.d);
    }
    __device__ inline uint32_t barrier(int which) const
    {
        return shared + which * 8;
    }
    __device__ inline uint32_t piece(int which) const
    {
        return shared + REACH_WEIGHTS + which * REACH_PIECE;
    }
    __device__ inline uint32_t input(int panel) const
    {
        return shared + job.input + panel * job.panel;
    }
    __device__ inline uint32_t joined(int group) const
    {
        return shared + REACH_WEIGHTS + group * REACH_JOINED;
    }
    __device__ inline uint32_t results(int group) const
    {
        return shared + REACH_WEIGHTS + REACH_GROUPS * REACH_JOINED +
               group * REACH_RESULTS;
    }
    __device__ inline uint32_t sent(int group, int bytes) const
    {
        return shared + job.sums + group * bytes;
    }
};

/* Rows of 128 bytes, swizzled by as many. */
static __device__ inline uint64_t reach_rows(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | UINT64_C(1) << 16 | UINT64_C(64) << 32 |
           UINT64_C(1) << 62;
}

static __device__ inline void reach_zero(uint32_t to)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};\n" ::"r"(to), "r"(0)
                 : "memory");
}

static __device__ inline void reach_copy(uint32_t to, const void *from, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];\n" ::"r"(to),
                 "l"(from), "n"((int)REACH_PIECE), "r"(barrier)
                 : "memory");
}

enum { REACH_OPEN = 1, REACH_ALL, REACH_OWN };
#endif

#endif /* PLUGINS_CONVOLUTION_CUDA_REACH_BLOCK_CUH */
