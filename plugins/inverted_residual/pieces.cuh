/* SPDX-License-Identifier: Apache-2.0
 *
 * What the blocks of an inverted residual are made of: barriers that count bytes, copies
 * into shared memory, products of 16 x 8 x 16, activations.
 */
#ifndef PLUGINS_INVERTED_RESIDUAL_PIECES_CUH
#define PLUGINS_INVERTED_RESIDUAL_PIECES_CUH

#include "plugins/common/copy_ahead.cuh"
#include "plugins/common/stages/tail.cuh"

#if __CUDA_ARCH__ >= 900
/* ---- barriers and copies --------------------------------------------------------- */

static __device__ inline uint32_t inverted_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

static __device__ inline void inverted_open(uint64_t *barrier)
{
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;\n" ::"r"(inverted_address(barrier))
        : "memory");
}

static __device__ inline void inverted_expect(uint64_t *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(
                     inverted_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

static __device__ inline void inverted_await(uint64_t *barrier, int parity)
{
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}\n" ::"r"(inverted_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* A piece of memory into shared memory, which the barrier counts. */
static __device__ inline void inverted_fetch(void *to, const void *from, int bytes,
                                             uint64_t *barrier)
{
    inverted_expect(barrier, bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];\n" ::"r"(inverted_address(to)),
                 "l"(from), "r"(bytes), "r"(inverted_address(barrier))
                 : "memory");
}

/* 16 bytes, or zeros. */
static __device__ inline void inverted_copy(uint32_t to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

/* A place in the shared memory of a block of the cluster, and its barrier, which counts
 * what comes; or the same place in this block's own. */
struct inverted_peer {
    uint32_t own, there, counts;

    __device__ inline inverted_peer(const void *place, const uint64_t *barrier, int block)
    {
        own = inverted_address(place);
        asm("mapa.shared::cluster.u32 %0, %1, %2;\n"
            : "=r"(there)
            : "r"(own), "r"(block));
        asm("mapa.shared::cluster.u32 %0, %1, %2;\n"
            : "=r"(counts)
            : "r"(inverted_address(barrier)), "r"(block));
    }

    __device__ inline void tell(int bytes, const float4 &v) const
    {
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                     "[%0], {%1, %2, %3, %4}, [%5];\n" ::"r"(there + bytes),
                     "r"(__float_as_uint(v.x)), "r"(__float_as_uint(v.y)),
                     "r"(__float_as_uint(v.z)), "r"(__float_as_uint(v.w)), "r"(counts)
                     : "memory");
    }

    __device__ inline void keep(int bytes, const float4 &v) const
    {
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(own + bytes),
                     "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                     : "memory");
    }
};

/* ---- products -------------------------------------------------------------------- */

static __device__ inline void inverted_load(uint32_t (&to)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from));
}

static __device__ inline void inverted_multiply(float (&d)[4], const uint32_t (&a)[4],
                                                uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Two numbers as what lies between is kept: an infinity would make NaN of the sums that
 * follow, so what is out of range is the largest number. A NaN stays one. */
static __device__ inline uint32_t inverted_halves(float low, float high)
{
    uint32_t both;
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

static __device__ inline float inverted_bounded(float x, const stage_tail &f)
{
    asm("max.NaN.f32 %0, %0, %1; min.NaN.f32 %0, %0, %2;"
        : "+f"(x)
        : "f"(f.low), "f"(f.high));
    return x;
}

template <int N>
static __device__ inline void inverted_activate(float (&v)[N], const stage_tail &f)
{
    if (f.kind == STAGE_BOUNDS) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = inverted_bounded(v[i], f);
    } else if (f.kind == STAGE_SILU) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] *= sigmoid(v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] *= clamp(fmaf(v[i], 1 / 6.0f, 0.5f), 0, 1);
    }
}
#endif

#endif /* PLUGINS_INVERTED_RESIDUAL_PIECES_CUH */
