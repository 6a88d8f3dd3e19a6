/* SPDX-License-Identifier: Apache-2.0
 *
 * How few_bits.cu keeps a constant B of few bits, and how it reads that. Panels of 16
 * columns have blocks of 128 values along k (of 8 bits: 64), and a block 2 x 32 pieces of
 * 16 bytes, two a lane: of column lane/4, and of the one 8 behind it. Each 32 values of k
 * are two tensor-core products; a lane has 8 neighbouring ones of them, in words whose
 * bits stand as registers of two halves want them:
 *
 *   4 bits  a word for 8 values: value 2i from bit 4i on, 2i + 1 from bit 16 + 4i on
 *   8 bits  two words, a byte each
 *
 * Values are positive: 8 or 128 stands for 0, and behind the matrix's end. A float whose
 * last bits they are is that much, and a power of two, above what they stand for.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_FEW_BITS_CUH
#define PLUGINS_MATRIX_MULTIPLY_FEW_BITS_CUH

#include <stdint.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define FEW_COLUMNS 16 /* of a panel */
#define FEW_PAIR 32    /* of k: two products */
#define FEW_PIECES 64  /* of 16 bytes, a block */

template <int Bits>
struct few_block {
    static const int depth = Bits == 4 ? 128 : 64;
    static const int pairs = depth / FEW_PAIR;
    static const int words = Bits == 4 ? 1 : 2; /* of a pair, a lane */
};

/* The matrix as the network has it: bytes, two values along k in each of 4 bits. */
struct few_source {
    const uint8_t *bytes;
    int64_t k, n, rows; /* rows of bytes along k */
    int32_t turned;     /* it lies as n x rows */
};

template <int Bits>
static __device__ inline uint32_t few_value(const few_source &s, int64_t k, int64_t n)
{
    if (k >= s.k || n >= s.n)
        return Bits == 4 ? 8 : 128;
    const int64_t row = Bits == 4 ? k / 2 : k;
    const uint32_t byte = s.bytes[s.turned ? n * s.rows + row : row * s.n + n];
    return Bits == 4 ? byte >> (k % 2 > 0 ? 4 : 0) & 15 : byte ^ 128;
}

/* Word `at` of the packed matrix, whose panels have `blocks` blocks. */
template <int Bits>
static __device__ inline uint32_t few_word(const few_source &s, int64_t blocks,
                                           int64_t at)
{
    const int word = (int)(at % 4), lane = (int)(at / 4 % 32), half = (int)(at / 128 % 2);
    const int64_t block = at / (4 * FEW_PIECES) % blocks;
    const int64_t n = at / (4 * FEW_PIECES) / blocks * FEW_COLUMNS + half * 8 + lane / 4;
    const int words = few_block<Bits>::words;
    const int64_t k = block * few_block<Bits>::depth + word / words * FEW_PAIR +
                      lane % 4 * 8 + word % words * 4;
    uint32_t bits = 0;
    for (int e = 0; e < 32 / Bits; e++) {
        const int shift = Bits == 8 ? 8 * e : e / 2 * 4 + e % 2 * 16;
        bits |= few_value<Bits>(s, k + e, n) << shift;
    }
    return bits;
}

/* ---- words to floats ------------------------------------------------------------- */

static __device__ inline uint32_t few_bits_of(__half2 x)
{
    return *(const uint32_t *)&x;
}

static __device__ inline uint32_t few_bits_of(__nv_bfloat162 x)
{
    return *(const uint32_t *)&x;
}

static __device__ inline __half2 few_halves(uint32_t bits)
{
    return *(const __half2 *)&bits;
}

static __device__ inline __nv_bfloat162 few_bfloats(uint32_t bits)
{
    return *(const __nv_bfloat162 *)&bits;
}

/* (bits & mask) | base, as one instruction: with two constants a compiler makes two. */
static __device__ inline uint32_t few_insert(uint32_t bits, uint32_t mask, uint32_t base)
{
#ifdef __CUDA_ARCH__
    uint32_t x;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;\n" : "=r"(x) : "r"(bits), "r"(mask), "r"(base));
    return x;
#else
    return (bits & mask) | base;
#endif
}

/* 1024 + v, and 1024 + 16v where the bits stand four higher. */
static __device__ inline void few_floats(uint32_t (&x)[4], const uint32_t (&w)[1], __half)
{
    const __half2 low = __half2half2(__ushort_as_half(0x6408));  /* 1032 */
    const __half2 high = __half2half2(__ushort_as_half(0xd480)); /* -72 */
    const __half2 part = __half2half2(__ushort_as_half(0x2c00)); /* 1/16 */
    const uint32_t later = w[0] >> 8;
    x[0] =
        few_bits_of(__hsub2(few_halves(few_insert(w[0], 0x000f000f, 0x64006400)), low));
    x[1] = few_bits_of(
        __hfma2(few_halves(few_insert(w[0], 0x00f000f0, 0x64006400)), part, high));
    x[2] =
        few_bits_of(__hsub2(few_halves(few_insert(later, 0x000f000f, 0x64006400)), low));
    x[3] = few_bits_of(
        __hfma2(few_halves(few_insert(later, 0x00f000f0, 0x64006400)), part, high));
}

/* 128 + v: of seven bits four are free. */
static __device__ inline void few_floats(uint32_t (&x)[4], const uint32_t (&w)[1],
                                         __nv_bfloat16)
{
    const __nv_bfloat162 zero = __bfloat162bfloat162(__ushort_as_bfloat16(0x4308));
#pragma unroll
    for (int i = 0; i < 4; i++)
        x[i] = few_bits_of(__hsub2(
            few_bfloats(few_insert(w[0] >> 4 * i, 0x000f000f, 0x43004300)), zero));
}

/* 1024 + v */
static __device__ inline void few_floats(uint32_t (&x)[4], const uint32_t (&w)[2], __half)
{
    const __half2 zero = __half2half2(__ushort_as_half(0x6480)); /* 1152 */
#pragma unroll
    for (int i = 0; i < 4; i++)
        x[i] = few_bits_of(__hsub2(
            few_halves(__byte_perm(w[i / 2], 0x64646464, i % 2 ? 0x4342 : 0x4140)),
            zero));
}

/* 2^23 + v in FP32: a BF16 has no room for eight bits beside its first. */
static __device__ inline void few_floats(uint32_t (&x)[4], const uint32_t (&w)[2],
                                         __nv_bfloat16)
{
    const float zero = 8388736; /* 2^23 + 128 */
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t first = i % 2 ? 0x7442 : 0x7440;
        const float low = __uint_as_float(__byte_perm(w[i / 2], 0x4b000000, first));
        const float high = __uint_as_float(__byte_perm(w[i / 2], 0x4b000000, first + 1));
        x[i] = few_bits_of(__floats2bfloat162_rn(low - zero, high - zero));
    }
}

static __device__ inline float2 few_pair_of(uint32_t bits, __half)
{
    return __half22float2(few_halves(bits));
}

static __device__ inline float2 few_pair_of(uint32_t bits, __nv_bfloat16)
{
    return __bfloat1622float2(few_bfloats(bits));
}

static __device__ inline uint32_t few_word_of(const uint4 &piece, int i)
{
    return i == 0 ? piece.x : i == 1 ? piece.y : i == 2 ? piece.z : piece.w;
}

/* The 8 values of a pair that a lane has of a column: registers of two. */
template <typename T, int Bits>
static __device__ inline void few_unpack(uint32_t (&x)[4], const uint4 &piece, int pair)
{
    uint32_t w[few_block<Bits>::words];
#pragma unroll
    for (int i = 0; i < few_block<Bits>::words; i++)
        w[i] = few_word_of(piece, pair * few_block<Bits>::words + i);
    few_floats(x, w, T());
}

#endif /* PLUGINS_MATRIX_MULTIPLY_FEW_BITS_CUH */
