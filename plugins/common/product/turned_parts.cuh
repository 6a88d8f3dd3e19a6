/* SPDX-License-Identifier: Apache-2.0
 *
 * Products whose sums lie turned: rows are channels, columns pixels, and results of a
 * pixel are to be neighbours. Instructions of as many columns as fill a chip.
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

#endif /* PLUGINS_COMMON_PRODUCT_TURNED_PARTS_CUH */
