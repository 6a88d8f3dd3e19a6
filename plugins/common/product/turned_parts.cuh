/* SPDX-License-Identifier: Apache-2.0
 *
 * Products whose sums lie turned: rows are channels, columns pixels, and results of a
 * pixel are to be neighbours. Instructions of as many columns as fill a chip, and moves
 * of matrices of 8 x 8 that turn them.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TURNED_PARTS_CUH
#define PLUGINS_COMMON_PRODUCT_TURNED_PARTS_CUH

#include "plugins/common/product/wgmma.cuh"

#define N_52 N_48 ",%48,%49,%50,%51"
#define N_72 N_64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define N_76 N_72 ",%72,%73,%74,%75"
#define O_52(f, d) O_48(f, d), O_1(f, d, 12)
#define O_72(f, d) O_64(f, d), O_2(f, d, 16)
#define O_76(f, d) O_72(f, d), O_1(f, d, 18)

PRODUCTS(104, 52, 52, 53, 54, 55, 56)
PRODUCTS(144, 72, 72, 73, 74, 75, 76)
PRODUCTS(152, 76, 76, 77, 78, 79, 80)

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

#endif /* PLUGINS_COMMON_PRODUCT_TURNED_PARTS_CUH */
