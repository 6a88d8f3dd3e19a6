/* SPDX-License-Identifier: Apache-2.0
 *
 * Hopper's instructions: products of a warpgroup, the copy engine, and the barriers in
 * shared memory that it reports to. For sm_90a.
 */
#ifndef PLUGINS_COMMON_PRODUCT_WGMMA_CUH
#define PLUGINS_COMMON_PRODUCT_WGMMA_CUH

#include "kernels/element.cuh"
#include "plugins/common/product/order.cuh"

#include <cuda.h>
#include <cuda_fp8.h>

/* ---- barriers in shared memory --------------------------------------------------------
 */

static __device__ inline void barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* To be called by who initialised barriers, before others use them. The fence is of
 * shared memory alone: one of all memory waits for that, too. */
static __device__ inline void barrier_publish(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

static __device__ inline void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

/* Arrives, and lets the phase end only once `bytes` more have been copied. */
static __device__ inline void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier),
        "r"(bytes)
        : "memory");
}

static __device__ inline bool barrier_passed(uint32_t barrier, uint32_t parity)
{
    uint32_t passed;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(passed)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return passed != 0;
}

/* An address of this block's shared memory as one of the cluster's block `rank`. */
static __device__ inline uint32_t address_of_rank(uint32_t address, uint32_t rank)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

/* The same barrier, of the cluster's block `rank`. Orders no writes: what is told by it
 * is that reads have ended. */
static __device__ inline void barrier_arrive_at(uint32_t barrier, uint32_t rank)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];\n" ::"r"(
                     address_of_rank(barrier, rank))
                 : "memory");
}

/* Two floats to a block of the cluster, whose barrier expects their bytes. */
static __device__ inline void send_two(uint32_t to, uint32_t barrier, float x, float y)
{
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, "
        "%2}, [%3];\n" ::"r"(to),
        "f"(x), "f"(y), "r"(barrier)
        : "memory");
}

/* The same of four. */
static __device__ inline void send_four(uint32_t to, uint32_t barrier,
                                        const float (&v)[4])
{
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, "
        "%2, %3, %4}, [%5];\n" ::"r"(to),
        "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "r"(barrier)
        : "memory");
}

/* A barrier of all threads of the cluster's blocks, in two parts. What was published
 * before may be used behind it; it orders no other writes. */
static __device__ inline void cluster_arrive(void)
{
    asm volatile("barrier.cluster.arrive.relaxed;\n" ::: "memory");
}

static __device__ inline void cluster_wait(void)
{
    asm volatile("barrier.cluster.wait;\n" ::: "memory");
}

/* The same barrier where blocks end: what a thread has told another block, as by
 * barrier_arrive_at, has come there before that block ends, and its shared memory with
 * it. */
static __device__ inline void cluster_leave(void)
{
    asm volatile("barrier.cluster.arrive.release;\n" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory");
}

/* Until the phase of that parity has ended. */
static __device__ inline void barrier_wait(uint32_t barrier, uint32_t parity)
{
#ifdef HOPPER_TRAP /* a hang shall end as an error, for tests */
    const long long start = clock64();
    while (!barrier_passed(barrier, parity))
        if (clock64() - start > (1ll << 31))
            asm volatile("trap;");
#else
    while (!barrier_passed(barrier, parity))
        ;
#endif
}

/* Barriers by number, of some of a block's warps. */
static __device__ inline void named_sync(uint32_t name, uint32_t threads)
{
    asm volatile("bar.sync %0, %1;\n" ::"r"(name), "r"(threads) : "memory");
}

static __device__ inline void named_arrive(uint32_t name, uint32_t threads)
{
    asm volatile("bar.arrive %0, %1;\n" ::"r"(name), "r"(threads) : "memory");
}

/* ---- the copy engine ------------------------------------------------------------------
 */

/* A box of a tensor of four dims to shared memory. */
static __device__ inline void copy_box(uint32_t to, const CUtensorMap *map,
                                       uint32_t barrier, int32_t x, int32_t row,
                                       int32_t head, int32_t batch)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes [%0], [%1, {%2, %3, %4, %5}], [%6];\n" ::"r"(to),
                 "l"(map), "r"(x), "r"(row), "r"(head), "r"(batch), "r"(barrier)
                 : "memory");
}

/* The same of three dims: of a matrix of a batch. */
static __device__ inline void copy_matrix(uint32_t to, const CUtensorMap *map,
                                          uint32_t barrier, int32_t x, int32_t row,
                                          int32_t batch)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(to),
                 "l"(map), "r"(x), "r"(row), "r"(batch), "r"(barrier)
                 : "memory");
}

/* To the same places of every block of the cluster whose bit is set. */
static __device__ inline void copy_matrix_to(uint32_t to, const CUtensorMap *map,
                                             uint32_t barrier, int32_t x, int32_t row,
                                             int32_t batch, uint16_t blocks)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::"
        "bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;\n" ::"r"(to),
        "l"(map), "r"(x), "r"(row), "r"(batch), "r"(barrier), "h"(blocks)
        : "memory");
}

/* Rows of channels x.. of a window's element (r, s), from the window that begins at (h,
 * w) of an image on. */
static __device__ inline void copy_window(uint32_t to, const CUtensorMap *map,
                                          uint32_t barrier, int32_t x, int32_t w,
                                          int32_t h, int32_t image, int32_t s, int32_t r)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::"
        "bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};\n" ::"r"(to),
        "l"(map), "r"(x), "r"(w), "r"(h), "r"(image), "r"(barrier), "h"((uint16_t)s),
        "h"((uint16_t)r)
        : "memory");
}

/* A box of a matrix of a batch from shared memory. */
static __device__ inline void store_matrix(const CUtensorMap *map, uint32_t from,
                                           int32_t x, int32_t row, int32_t batch)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, "
                 "%3}], [%4];\n" ::"l"(map),
                 "r"(x), "r"(row), "r"(batch), "r"(from)
                 : "memory");
}

/* The same of four dims. */
static __device__ inline void store_box(const CUtensorMap *map, uint32_t from, int32_t x,
                                        int32_t column, int32_t row, int32_t batch)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, "
                 "%3, %4}], [%5];\n" ::"l"(map),
                 "r"(x), "r"(column), "r"(row), "r"(batch), "r"(from)
                 : "memory");
}

/* Rows of channels x.. to the pixels of an image from (h, w) on, by a map of windows of
 * one element each, which says where a line of pixels ends. */
static __device__ inline void store_window(const CUtensorMap *map, uint32_t from,
                                           int32_t x, int32_t w, int32_t h, int32_t image)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
                 "[%0, {%1, %2, %3, %4}], [%5];\n" ::"l"(map),
                 "r"(x), "r"(w), "r"(h), "r"(image), "r"(from)
                 : "memory");
}

static __device__ inline void copy_group_commit(void)
{
    asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}

/* Until all that this thread stored so has been read from shared memory. */
static __device__ inline void copy_group_wait_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");
}

static __device__ inline void prefetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

/* ---- words in shared memory -----------------------------------------------------------
 */

static __device__ inline void store_two(uint32_t to, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(to), "f"(x), "f"(y)
                 : "memory");
}

static __device__ inline void store_two(uint32_t to, int32_t x, int32_t y)
{
    store_two(to, __int_as_float(x), __int_as_float(y));
}

static __device__ inline void store_four(uint32_t to, const float (&x)[4])
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(to), "f"(x[0]),
                 "f"(x[1]), "f"(x[2]), "f"(x[3])
                 : "memory");
}

static __device__ inline void load_four(float (&x)[4], uint32_t from)
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                 : "r"(from)
                 : "memory");
}

/* ---- matrices of 8 x 8 ----------------------------------------------------------------
 */

/* Four of them, rows of 16 bytes: lanes of eight have the addresses of one's rows. A lane
 * has two neighbours of row lane / 4 of each. */
static __device__ inline void load_matrices(uint32_t (&x)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from)
                 : "memory");
}

static __device__ inline void store_matrices(uint32_t to, const uint32_t (&x)[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(to),
        "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
        : "memory");
}

/* ---- products -------------------------------------------------------------------------
 */

/* Nothing that reads or writes these moves across. */
template <int N>
static __device__ inline void hold(float (&d)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile(""
                     : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]),
                       "+f"(d[i][3])::"memory");
}

template <int N>
static __device__ inline void hold(int32_t (&d)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile(""
                     : "+r"(d[i][0]), "+r"(d[i][1]), "+r"(d[i][2]),
                       "+r"(d[i][3])::"memory");
}

/* Rows of 128 bytes, swizzled by 128 bytes, groups of 8 rows 1024 bytes apart. `panel`:
 * bytes from one panel of 64 columns to the next, where columns are what is summed over
 * in neither factor. */
static __device__ inline uint64_t panel_descriptor(uint32_t address, uint32_t panel)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)(panel >> 4 & 0x3fff) << 16 |
           UINT64_C(64) << 32 | UINT64_C(1) << 62;
}

/* Rows of 128 bytes or of 64, swizzled by as many, along which both factors are summed.
 */
template <int Row>
static __device__ inline uint64_t rows_descriptor(uint32_t address)
{
    static_assert(Row == 128 || Row == 64, "swizzles");
    return (uint64_t)(address >> 4 & 0x3fff) | UINT64_C(1) << 16 |
           (uint64_t)(8 * Row >> 4) << 32 |
           (Row == 128 ? UINT64_C(1) : UINT64_C(2)) << 62;
}

/* d = a*b + (add ? d : 0) of 64 x N, a depth of 16. Scores: both factors in shared
 * memory, the depth along their rows. Outputs: a in registers, the depth down the rows of
 * b. */
template <typename T, int N>
struct product;

#define N_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define N_32 N_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define N_48 N_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define N_64 N_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define N_80 N_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define N_88 N_80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define N_96 N_88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define N_128                                                                            \
    N_96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
         "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%"  \
         "127"
#define O_1(f, d, i) f(d[i][0]), f(d[i][1]), f(d[i][2]), f(d[i][3])
#define O_2(f, d, i) O_1(f, d, i), O_1(f, d, i + 1)
#define O_16(f, d) O_2(f, d, 0), O_2(f, d, 2)
#define O_32(f, d) O_16(f, d), O_2(f, d, 4), O_2(f, d, 6)
#define O_48(f, d) O_32(f, d), O_2(f, d, 8), O_2(f, d, 10)
#define O_64(f, d) O_48(f, d), O_2(f, d, 12), O_2(f, d, 14)
#define O_80(f, d) O_64(f, d), O_2(f, d, 16), O_2(f, d, 18)
#define O_88(f, d) O_80(f, d), O_2(f, d, 20)
#define O_96(f, d) O_88(f, d), O_2(f, d, 22)
#define O_128(f, d) O_96(f, d), O_2(f, d, 24), O_2(f, d, 26), O_2(f, d, 28), O_2(f, d, 30)

/* a, b, c, e, f: the numbers of the operands that follow the sums. */
#define PRODUCT(type, name, n, count, a, b, c, e, f)                                     \
    template <>                                                                          \
    struct product<type, n> {                                                            \
        static __device__ inline void scores(float (&d)[n / 8][4], uint64_t x,           \
                                             uint64_t y, int32_t add)                    \
        {                                                                                \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #c ", 0;\n"                \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name \
                         " {" N_##count "}, %" #a ", %" #b ", p, 1, 1, 0, 0;\n}\n"       \
                         : O_##count("+f", d)                                            \
                         : "l"(x), "l"(y), "r"(add));                                    \
        }                                                                                \
        static __device__ inline void outputs(float (&d)[n / 8][4],                      \
                                              const uint32_t (&x)[4], uint64_t y)        \
        {                                                                                \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name \
                         " {" N_##count "}, {%" #a ", %" #b ", %" #c ", %" #e "}, %" #f  \
                                        ", 1, 1, 1, 1;\n"                                \
                         : O_##count("+f", d)                                            \
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y));          \
        }                                                                                \
    };
#define PRODUCTS(...)                                                                    \
    PRODUCT(__half, "f16", __VA_ARGS__)                                                  \
    PRODUCT(__nv_bfloat16, "bf16", __VA_ARGS__)

PRODUCTS(32, 16, 16, 17, 18, 19, 20)
PRODUCTS(64, 32, 32, 33, 34, 35, 36)
PRODUCTS(96, 48, 48, 49, 50, 51, 52)
PRODUCTS(128, 64, 64, 65, 66, 67, 68)
PRODUCTS(160, 80, 80, 81, 82, 83, 84)
PRODUCTS(176, 88, 88, 89, 90, 91, 92)
PRODUCTS(192, 96, 96, 97, 98, 99, 100)
PRODUCTS(256, 128, 128, 129, 130, 131, 132)

/* Of a type that lies along the depth alone, which is 32 bytes; both factors in shared
 * memory. Whole numbers have exact sums in 32 bits. E4M3 have sums in FP32, of which the
 * chip keeps 14 bits: it aligns what it adds, a sum and 32 products, to the largest and
 * cuts off the rest. Floats are TF32: the chip does not look at their last 13 bits. */
#define PRODUCT_OF_ROWS(type, types, flags, sum, hold, n, count, a, b, c)                \
    template <>                                                                          \
    struct product<type, n> {                                                            \
        static __device__ inline void scores(sum (&d)[n / 8][4], uint64_t x, uint64_t y, \
                                             int32_t add)                                \
        {                                                                                \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #c ", 0;\n"                \
                         "wgmma.mma_async.sync.aligned.m64n" #n types " {" N_##count     \
                         "}, %" #a ", %" #b ", p" flags ";\n}\n"                         \
                         : O_##count(hold, d)                                            \
                         : "l"(x), "l"(y), "r"(add));                                    \
        }                                                                                \
    };
#define PRODUCTS_OF_ROWS(...)                                                            \
    PRODUCT_OF_ROWS(int8_t, "k32.s32.s8.s8", "", int32_t, "+r", __VA_ARGS__)             \
    PRODUCT_OF_ROWS(uint8_t, "k32.s32.u8.s8", "", int32_t, "+r", __VA_ARGS__)            \
    PRODUCT_OF_ROWS(__nv_fp8_e4m3, "k32.f32.e4m3.e4m3", ", 1, 1", float, "+f",           \
                    __VA_ARGS__)                                                         \
    PRODUCT_OF_ROWS(float, "k8.f32.tf32.tf32", ", 1, 1", float, "+f", __VA_ARGS__)

PRODUCTS_OF_ROWS(32, 16, 16, 17, 18)
PRODUCTS_OF_ROWS(64, 32, 32, 33, 34)
PRODUCTS_OF_ROWS(96, 48, 48, 49, 50)
PRODUCTS_OF_ROWS(128, 64, 64, 65, 66)
PRODUCTS_OF_ROWS(192, 96, 96, 97, 98)
PRODUCTS_OF_ROWS(256, 128, 128, 129, 130)

#endif /* PLUGINS_COMMON_PRODUCT_WGMMA_CUH */
