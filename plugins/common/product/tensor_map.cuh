/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptions of tensors for the copy engine, made on the host.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TENSOR_MAP_CUH
#define PLUGINS_COMMON_PRODUCT_TENSOR_MAP_CUH

#include <cuda.h>
#include <cuda_runtime.h>
#include <pthread.h>

#include <strata/plugin.h>

enum { TENSOR_MAP_RANK = 5 };

typedef CUresult (*tensor_map_encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t,
                                      void *, const cuuint64_t *, const cuuint64_t *,
                                      const cuuint32_t *, const cuuint32_t *,
                                      CUtensorMapInterleave, CUtensorMapSwizzle,
                                      CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* The driver's entry, NULL if it has none, and its version. */
static tensor_map_encode tensor_map_entry;
static int tensor_map_driver;
static pthread_once_t tensor_map_once = PTHREAD_ONCE_INIT;

static void tensor_map_find(void)
{
    void *entry = NULL;
    cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                         cudaEnableDefault, &result) == cudaSuccess &&
        result == cudaDriverEntryPointSuccess)
        tensor_map_entry = (tensor_map_encode)entry;
    if (cudaDriverGetVersion(&tensor_map_driver) != cudaSuccess)
        tensor_map_driver = 0;
}

/* Boxes of FP16 or BF16, innermost dim first and 64 of it, swizzled by 128 bytes.
 * strides: of dims 1 on, in elements, multiples of 8. bytes: from the first element to
 * the last. */
static bool tensor_map_halves(CUtensorMap *map, const void *data, int32_t dtype, int rank,
                              const uint64_t *dims, const int64_t *strides,
                              const uint32_t *box, int64_t bytes)
{
    cuuint64_t sizes[TENSOR_MAP_RANK], steps[TENSOR_MAP_RANK];
    cuuint32_t boxes[TENSOR_MAP_RANK];
    const cuuint32_t every[TENSOR_MAP_RANK] = {1, 1, 1, 1, 1};
    for (int d = 0; d < rank; d++) {
        sizes[d] = dims[d];
        boxes[d] = box[d];
        steps[d] = d + 1 < rank ? (cuuint64_t)strides[d] * 2 : 0;
    }
    if (pthread_once(&tensor_map_once, tensor_map_find) != 0 || !tensor_map_entry ||
        tensor_map_entry(map,
                         dtype == STRATA_FP16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                              : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                         (cuuint32_t)rank, (void *)data, sizes, steps, boxes, every,
                         CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                         CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        return false;
    /* Drivers up to 13.1 want this bit off in maps of small tensors; so does CUTLASS. */
    if (tensor_map_driver <= 13010 && bytes < 131072)
        ((uint64_t *)map)[1] &= ~(UINT64_C(1) << 21);
    return true;
}

#endif /* PLUGINS_COMMON_PRODUCT_TENSOR_MAP_CUH */
