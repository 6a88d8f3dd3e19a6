/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves of matrices of 8 x 8 halves between shared memory and registers that turn them.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TURNED_MOVES_CUH
#define PLUGINS_COMMON_PRODUCT_TURNED_MOVES_CUH

#include <cstdint>

/* Four 8 x 8 matrices, of which rows in shared memory are columns: lane i gives the
 * address of row i%8 of matrix i/8; or two, lanes 0 to 15. */
static __device__ inline void load_turned(uint32_t (&x)[4], uint32_t from)
{
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
        : "r"(from)
        : "memory");
}

static __device__ inline void load_turned(uint32_t (&x)[2], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n"
                 : "=r"(x[0]), "=r"(x[1])
                 : "r"(from)
                 : "memory");
}

static __device__ inline void store_turned(uint32_t to, const uint32_t (&x)[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(
            to),
        "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
        : "memory");
}

static __device__ inline void store_turned(uint32_t to, const uint32_t (&x)[2])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};\n" ::"r"(to),
        "r"(x[0]), "r"(x[1])
        : "memory");
}

#endif /* PLUGINS_COMMON_PRODUCT_TURNED_MOVES_CUH */
